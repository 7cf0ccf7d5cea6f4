// The translation on the page as a call of each API, in several languages of programs.
import { html, useState } from "./htm-preact.js";
import { t } from "./messages.js";
import { ROOT } from "./server.js";

const KEY = "KEY"; // stands for the key, which is not shown

// What is asked, in which order, and where the translation stands in the last answer. `made`: what an answer before holds.
const APIS = {
  Dragoman: ({ text, source, target, terms }) => ({
    scheme: "Bearer",
    calls: [{ path: "v1/translate", body: { text, source, target, ...(terms && { glossary: terms }) } }],
    result: ["text"],
  }),
  LibreTranslate: ({ text, source, target, hasKey }) => ({
    calls: [{ path: "translate", body: { q: text, source, target, ...(hasKey && { api_key: KEY }) } }],
    result: ["translatedText"],
  }),
  DeepL: ({ text, source, target, terms }) => {
    const languages = { target_lang: target.toUpperCase(), ...(source !== "auto" && { source_lang: source.toUpperCase() }) };
    const entries = Object.entries(terms ?? {}).map((pair) => pair.join("\t")).join("\n");
    const isKept = terms && source !== "auto"; // a glossary is of two languages
    return {
      scheme: "DeepL-Auth-Key",
      calls: [
        ...(isKept ? [{ path: "v2/glossaries", body: { name: "terms", source_lang: source, target_lang: target, entries, entries_format: "tsv" }, made: "glossary_id" }] : []),
        { path: "v2/translate", body: { text: [text], ...languages }, takes: isKept ? "glossary_id" : "" },
      ],
      result: ["translations", 0, "text"],
    };
  },
};

const headersOf = (call, hasKey) => ({ "Content-Type": "application/json", ...(hasKey && call.scheme && { Authorization: `${call.scheme} ${KEY}` }) });
const access = (result) => result.map((one) => `[${JSON.stringify(one)}]`).join("");
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function curl(api, hasKey) {
  return api.calls.map(({ path, body, made, takes }) => {
    const headers = Object.entries(headersOf(api, hasKey)).map(([name, value]) => `  -H ${quoted(`${name}: ${value}`)} \\\n`).join("");
    let data = quoted(JSON.stringify(body));
    if (takes) data = `${data.slice(0, -2)},"${takes}":"'"$${takes.toUpperCase()}"'"}'`;
    const call = `curl -s ${ROOT}${path} \\\n${headers}  -d ${data}`;
    return made ? `${made.toUpperCase()}=$(${call} |\n  sed -E 's/.*"${made}": ?"([^"]*)".*/\\1/')` : call;
  }).join("\n");
}

function python(api, hasKey) {
  const calls = api.calls.map(({ path, body, made, takes }) => {
    const given = takes ? `{**${JSON.stringify(body)}, "${takes}": ${takes}}` : JSON.stringify(body);
    const call = `ask(${JSON.stringify(path)}, ${given})`;
    return made ? `${made} = ${call}["${made}"]` : `print(${call}${access(api.result)})`;
  });
  return `import json
from urllib.request import Request, urlopen

def ask(path, body):
    headers = ${JSON.stringify(headersOf(api, hasKey))}
    return json.load(urlopen(Request("${ROOT}" + path, json.dumps(body).encode(), headers)))

${calls.join("\n")}`;
}

function javascript(api, hasKey) {
  const calls = api.calls.map(({ path, body, made, takes }) => {
    const given = takes ? `{ ...${JSON.stringify(body)}, ${takes} }` : JSON.stringify(body);
    const call = `await ask(${JSON.stringify(path)}, ${given})`;
    return made ? `const { ${made} } = ${call};` : `console.log((${call})${access(api.result)});`;
  });
  return `async function ask(path, body) {
  const headers = ${JSON.stringify(headersOf(api, hasKey))};
  const answer = await fetch("${ROOT}" + path, { method: "POST", headers, body: JSON.stringify(body) });
  return answer.json();
}
${calls.join("\n")}`;
}

const LANGUAGES = { curl, Python: python, JavaScript: javascript };

function Choices({ label, names, value, onChange }) {
  return html`<div class="row" role="group" aria-label=${label}>${names.map((name) => html`<button aria-pressed=${name === value} onClick=${() => onChange(name)} translate=${false}>${name}</button>`)}</div>`;
}

// `glossary`: the terms in use as JSON, or nothing; `hasKey`: a key is used.
export function ApiCall({ text, source, target, glossary, hasKey }) {
  const [name, setName] = useState("Dragoman");
  const [language, setLanguage] = useState("curl");
  const [copied, setCopied] = useState(false);
  const terms = glossary ? JSON.parse(glossary) : null;
  const code = LANGUAGES[language](APIS[name]({ text, source, target, terms, hasKey }), hasKey);

  async function copy() {
    try {
      await navigator.clipboard.writeText(code);
      setCopied(true);
      setTimeout(() => setCopied(false), 2000);
    } catch { // not over HTTPS, or not allowed
      getSelection().selectAllChildren(document.getElementById("api-call"));
    }
  }

  return html`<section class="panel"><h2>${t("The same from a program")}</h2>
    <div class="row spread"><${Choices} label=${t("API")} names=${Object.keys(APIS)} value=${name} onChange=${setName} />
      <${Choices} label=${t("Language of the program")} names=${Object.keys(LANGUAGES)} value=${language} onChange=${setLanguage} /></div>
    <pre id="api-call" tabindex="0" dir="ltr" translate=${false}>${code}</pre>
    ${terms && name === "LibreTranslate" && html`<p class="soft">${t("This API has no glossaries: the terms are left out.")}</p>`}
    ${terms && name === "DeepL" && source === "auto" && html`<p class="soft">${t("This API takes a glossary only with a source language: the terms are left out.")}</p>`}
    ${hasKey && html`<p class="soft">${t("Write your key in the place of {key}.", { key: KEY })}</p>`}
    <div class="row"><button onClick=${copy}>${copied ? t("Copied") : t("Copy")}</button></div></section>`;
}
