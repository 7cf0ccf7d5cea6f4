// "Try it" for each route that the server has described: fields from its schema, the answer, and the same with curl.
import "./composition.js";
import { html, render, useState } from "./htm-preact.js";
import { t } from "./messages.js";

const ROOT = new URL("../", import.meta.url).href;
const kept = (name) => JSON.parse(localStorage.getItem(`dragoman.${name}`) ?? "null");
const dark = matchMedia("(prefers-color-scheme: dark)").matches;
document.documentElement.dataset.theme = kept("theme") ?? (dark ? "dark" : "light");

const spec = await (await fetch(`${ROOT}spec`)).json();
const schemaAt = (part) => (part?.$ref ? spec.components.schemas[part.$ref.split("/").at(-1)] : part);

// The fields of a schema: one that is made of others has those of all.
function fieldsOf(part) {
  const schema = schemaAt(part) ?? {};
  const own = Object.entries(schema.properties ?? {}).map(([name, field]) => ({ name, schema: schemaAt(field), required: schema.required?.includes(name) }));
  return [...(schema.allOf ?? []).flatMap(fieldsOf), ...own];
}

function kindOf(schema) {
  const choices = schema.enum ?? schema.anyOf?.find((one) => one.enum)?.enum;
  const types = [schema, ...(schema.anyOf ?? [])].map((one) => schemaAt(one).type);
  if (schema.format === "binary") return { input: "file" };
  if (choices) return { choices };
  if (types.includes("boolean")) return { choices: [true, false] };
  if (types.includes("string")) return { input: "text", mayBeList: types.includes("array") };
  if (types.includes("integer") || types.includes("number")) return { input: "number" };
  return { json: true };
}

const written = (value) => (typeof value === "string" ? value : JSON.stringify(value));
const example = (schema) => ("default" in schema ? "" : written(schema.examples?.[0] ?? ""));

function valueOf(field, text) {
  const { json, choices, input, mayBeList } = kindOf(field.schema);
  const isList = mayBeList && text.trimStart().startsWith("[");
  if (json || isList || (choices && typeof choices[0] !== "string")) {
    try { return JSON.parse(text); } catch { return text; } // the server says what is wrong with it
  }
  return input === "number" ? Number(text) : text;
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function Try({ path, method, operation }) {
  const [type, content] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  const places = (operation.parameters ?? []).map((one) => ({ ...one, place: one.in }));
  const fields = [...places, ...fieldsOf(content?.schema).map((one) => ({ ...one, place: "body" }))];
  const [values, setValues] = useState(() => Object.fromEntries(fields.map((one) => [one.name, example(one.schema)])));
  const [files, setFiles] = useState({});
  const [key, setKey] = useState(() => kept("key") ?? "");
  const [answer, setAnswer] = useState(null);
  const given = fields.filter((one) => values[one.name] !== "" && kindOf(one.schema).input !== "file");
  const inPlace = (place) => given.filter((one) => one.place === place);

  const query = new URLSearchParams(inPlace("query").map((one) => [one.name, values[one.name]])).toString();
  const address = ROOT + path.slice(1).replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(values[name] || name)) + (query && `?${query}`);
  const json = JSON.stringify(Object.fromEntries(inPlace("body").map((one) => [one.name, valueOf(one, values[one.name])])));
  const isForm = type === "multipart/form-data";
  const parts = isForm
    ? [...Object.values(files).map((file) => `-F ${quoted(`file=@${file.name}`)}`), ...inPlace("body").map((one) => `-F ${quoted(`${one.name}=${values[one.name]}`)}`)]
    : type ? ["-H 'Content-Type: application/json'", `-d ${quoted(json)}`] : [];
  const curl = ["curl", method === "get" || (method === "post" && type) ? "" : `-X ${method.toUpperCase()}`, quoted(address), key ? "-H 'Authorization: Bearer KEY'" : "", ...parts].filter(Boolean).join(" \\\n  ");

  async function send(event) {
    event.preventDefault();
    setAnswer({ status: "", text: t("Waiting …") });
    const headers = key ? { Authorization: `Bearer ${key}` } : {};
    let body;
    if (isForm) {
      body = new FormData();
      for (const [name, file] of Object.entries(files)) body.append(name, file);
      for (const one of inPlace("body")) body.append(one.name, values[one.name]);
    } else if (type) {
      headers["Content-Type"] = "application/json";
      body = json;
    }
    try {
      const response = await fetch(address, { method: method.toUpperCase(), headers, body });
      const text = await response.text();
      const isJson = response.headers.get("Content-Type")?.startsWith("application/json");
      setAnswer({ status: `${response.status} ${response.statusText}`, text: isJson ? JSON.stringify(JSON.parse(text), null, 1) : text });
    } catch (error) {
      setAnswer({ status: "", text: t("No answer: {message}", { message: error.message }) });
    }
  }

  return html`<form class="try" onSubmit=${send}><h3>${t("Try it")}</h3>
    ${fields.map((one) => html`<${Field} one=${one} value=${values[one.name]} set=${(value) => setValues((now) => ({ ...now, [one.name]: value }))} setFile=${(file) => setFiles((now) => ({ ...now, [one.name]: file }))} />`)}
    <label><span>${t("API key, if the server asks for one")}</span><input type="password" autocomplete="off" value=${key} onInput=${(event) => setKey(event.target.value.trim())} /></label>
    <button class="primary">${t("Send")}</button>
    <pre class="curl" tabindex="0" aria-label=${t("The same with curl")}>${curl}</pre>
    <div role="status">${answer && html`<p><strong>${answer.status}</strong></p><pre class="answer" tabindex="0">${answer.text}</pre>`}</div></form>`;
}

function Field({ one, value, set, setFile }) {
  const { input, choices } = kindOf(one.schema);
  const hint = "default" in one.schema ? written(one.schema.default) : "";
  const name = html`<span><code>${one.name}</code>${one.required ? " *" : ""} ${one.schema.description ? html`<small class="soft">${t.known(one.schema.description)}</small>` : ""}</span>`;
  if (input === "file") return html`<label>${name}<input type="file" required onChange=${(event) => setFile(event.target.files[0])} /></label>`;
  if (choices) {
    return html`<label>${name}<select value=${value} onChange=${(event) => set(event.target.value)}>
      <option value="">${hint ? t("{value} (default)", { value: hint }) : ""}</option>${choices.filter((each) => each !== "").map((each) => html`<option value=${written(each)}>${written(each)}</option>`)}</select></label>`;
  }
  return html`<label>${name}<input type=${input === "number" ? "number" : "text"} dir="auto" placeholder=${hint} value=${value} onInput=${(event) => set(event.target.value)} /></label>`;
}

for (const details of document.querySelectorAll("details[data-path]")) {
  const { path, method } = details.dataset;
  const show = () => {
    const place = document.createElement("div");
    details.querySelector("summary").after(place);
    render(html`<${Try} path=${path} method=${method} operation=${spec.paths[path][method]} />`, place);
  };
  if (details.open) show(); // by someone who was faster than this script
  else details.addEventListener("toggle", show, { once: true });
}
