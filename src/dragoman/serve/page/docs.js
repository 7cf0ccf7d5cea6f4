// The routes of the server, read from its OpenAPI description.
import { html, render } from "./htm-preact.js";

const ROOT = new URL("../", import.meta.url).href;
const dark = matchMedia("(prefers-color-scheme: dark)").matches;
document.documentElement.dataset.theme = JSON.parse(localStorage.getItem("dragoman.theme") ?? "null") ?? (dark ? "dark" : "light");

const spec = await (await fetch(`${ROOT}spec`)).json();
const shown = (value) => (value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value, null, 1));
const routes = Object.entries(spec.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, one]) => ({ path, method, ...one })));
const groups = [...new Set(routes.map((one) => one.tags[0]))];

function exampleOf(schema) {
  const one = schema.$ref ? spec.components.schemas[schema.$ref.split("/").at(-1)] : schema;
  const part = one.anyOf?.[0] ?? one;
  if (one.examples) return one.examples[0];
  if ("default" in one) return one.default;
  if (one.allOf) return Object.assign({}, ...one.allOf.map(exampleOf));
  if (one.properties) return Object.fromEntries(Object.entries(one.properties).map(([name, of]) => [name, exampleOf(of)]));
  if (part !== one) return exampleOf(part);
  if (one.enum) return one.enum[0];
  return { array: [], object: {}, integer: 0, number: 0, boolean: false }[one.type] ?? (one.format === "binary" ? "(a file)" : "");
}

function shownOf(content) {
  const [one] = Object.values(content ?? {});
  return one && ("example" in one ? one.example : exampleOf(one.schema));
}

const body = (one) => shownOf(one.requestBody?.content);
const answer = (one) => shownOf(Object.values(one.responses)[0].content);

render(html`
  <header><h1><img src=${`${ROOT}favicon.ico`} alt="" /> Dragoman ${spec.info.version}: the API</h1><nav aria-label="Pages"><a class="button" href=${ROOT}>Translate</a><a class="button" href=${`${ROOT}spec`}>OpenAPI</a></nav></header>
  <main><p>${spec.info.description}</p>
  ${groups.map((group) => html`<section class="panel"><h2>${group}</h2>
    ${routes.filter((one) => one.tags[0] === group).map((one) => html`<details><summary><code>${one.method.toUpperCase()} ${one.path}</code>: ${one.summary}</summary>
      ${body(one) && html`<p class="soft">Sent</p><pre tabindex="0">${shown(body(one))}</pre>`}
      ${answer(one) && html`<p class="soft">Answered</p><pre tabindex="0">${shown(answer(one))}</pre>`}</details>`)}</section>`)}</main>`,
  document.getElementById("app"));
