// Glossaries of terms: several, named, kept in this browser. The server reads them, and says in which line no term is.
import { html, useEffect, useRef, useState } from "./htm-preact.js";
import { useComposing } from "./composition.js";
import { writing } from "./languages.js";
import { t } from "./messages.js";
import { ask } from "./server.js";
import { stored, useStored } from "./stored.js";

const PAUSE_MS = 400;
const NONE = { terms: {}, faults: [] };

const newId = () => `${Date.now().toString(36)}${Math.random().toString(36).slice(2)}`;
const newGlossary = (name, changes = {}) => ({ id: newId(), name, text: "", used: true, ...NONE, ...changes });
export const countTerms = (glossary) => (glossary ? Object.keys(JSON.parse(glossary)).length : 0);

async function read(name, data, { source, target } = {}) {
  const form = new FormData();
  form.append("file", new Blob([data]), name);
  if (source && source !== "auto") form.append("source", source);
  if (target) form.append("target", target);
  return (await ask("v1/glossary", { method: "POST", body: form })).json();
}

// The terms of all glossaries in use, as JSON for the server ("" for none), and how many there are.
function termsOf(glossaries, most) {
  const used = glossaries.filter((one) => one.used);
  const terms = Object.entries(Object.assign({}, ...used.map((one) => one.terms).reverse())); // the first glossary rules
  const sent = terms.slice(0, most);
  return { json: sent.length ? JSON.stringify(Object.fromEntries(sent)) : "", count: terms.length };
}

// All glossaries with what changes them. A text is read by the server a moment after it was typed.
export function useGlossaries(limits) {
  const [list, setList] = useStored("glossaries", null);
  const all = list ?? [newGlossary("", { id: "first", text: stored.read("glossary", "") })];
  const change = (id, changes) => setList((now) => (now ?? all).map((one) => (one.id === id ? { ...one, ...changes } : one)));
  const waiting = all.filter((one) => one.read !== one.text);
  const isComposing = useComposing();

  useEffect(() => {
    if (isComposing) return undefined;
    const timer = setTimeout(async () => {
      for (const { id, text } of waiting) {
        let known = NONE;
        try {
          if (text.trim()) known = await read("terms.txt", text);
        } catch (problem) {
          if (!problem.details?.line) return; // the server does not answer: the terms before stay in use
          known = { terms: {}, faults: [{ line: problem.details.line, text: problem.message }] };
        }
        setList((now) => (now ?? all).map((one) => (one.id === id && one.text === text ? { ...one, ...known, read: text } : one)));
      }
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [JSON.stringify(waiting.map((one) => [one.id, one.text])), isComposing]);

  return {
    all, change, ...termsOf(all, limits?.glossary_terms ?? 1000), most: limits?.glossary_terms ?? 1000,
    add: (glossary) => setList((now) => [...(now ?? all), glossary]),
    remove: (id) => setList((now) => (now ?? all).filter((one) => one.id !== id)),
  };
}

const nameOf = (glossary) => glossary.name || t("My terms");
const FAULTS = {
  "conflict": () => t("This term has another translation further up: choose one."),
  "wrong-shape": () => t("A line is a term, =, and its translation."),
};
const faultOf = (fault) => FAULTS[fault.code]?.() ?? fault.text;

const xml = (text) => text.replace(/[&<>]/g, (one) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[one]);
const inQuotes = (text) => `"${text.replaceAll('"', '""')}"`;
const KINDS = {
  csv: (terms) => `\ufeff${terms.map((pair) => pair.map(inQuotes).join(",")).join("\r\n")}\r\n`, // spreadsheets want the mark
  tsv: (terms) => `${terms.map((pair) => pair.join("\t")).join("\n")}\n`,
  tbx: (terms, languages) => `<?xml version="1.0" encoding="UTF-8"?>
<martif type="TBX-Basic" xml:lang="${languages[0]}"><martifHeader><fileDesc><sourceDesc><p>Dragoman</p></sourceDesc></fileDesc></martifHeader><text><body>
${terms.map((pair) => `<termEntry>${pair.map((term, place) => `<langSet xml:lang="${languages[place]}"><tig><term>${xml(term)}</term></tig></langSet>`).join("")}</termEntry>`).join("\n")}
</body></text></martif>
`,
};

function save(glossary, kind, { source, target }) {
  const data = KINDS[kind](Object.entries(glossary.terms), [source === "auto" ? "und" : source, target]);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([data]));
  link.download = `${nameOf(glossary)}.${kind}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// The lines of a text, those with a fault marked; it stands behind the field and is scrolled with it.
function Lines({ text, faults, box, language }) {
  const bad = new Set(faults.map((one) => one.line));
  return html`<div class="backdrop" ref=${box} aria-hidden="true" ...${writing(language)}>${text.split("\n").map((line, number) => [bad.has(number + 1) ? html`<mark class="over">${line || " "}</mark>` : line, "\n"])}</div>`;
}

function Editor({ glossary, change, languages }) {
  const box = useRef(null), field = useRef(null);
  const isRead = glossary.read === glossary.text;
  const faults = isRead ? glossary.faults : [];

  function show(number) {
    const lines = glossary.text.split("\n");
    const start = lines.slice(0, number - 1).join("\n").length + (number > 1 ? 1 : 0);
    field.current.focus();
    field.current.setSelectionRange(start, start + (lines[number - 1] ?? "").length);
  }

  return html`<div class="editor">
    <p><label>${t("Name")} <input id="glossary-name" value=${glossary.name} placeholder=${t("My terms")} onInput=${(event) => change(glossary.id, { name: event.target.value })} /></label></p>
    <label for="glossary">${t("A term, =, its translation; one a line, or rows of a spreadsheet")}</label>
    <div class="lines"><${Lines} text=${glossary.text} faults=${faults} box=${box} language=${languages.source} />
      <textarea id="glossary" ref=${field} ...${writing(languages.source)} spellcheck=${false} placeholder="Bier = ale" aria-invalid=${faults.length > 0} aria-describedby="faults" value=${glossary.text}
        onScroll=${(event) => { box.current.scrollTop = event.target.scrollTop; }} onInput=${(event) => change(glossary.id, { text: event.target.value })}></textarea></div>
    <ul class="notes" id="faults" aria-live="polite">${faults.map((one) => html`<li class="error"><button onClick=${() => show(one.line)}>${t("Line {line}", { line: one.line })}</button> ${faultOf(one)}</li>`)}</ul>
    <div class="row"><span class="soft">${t("Save as")}</span>${Object.keys(KINDS).map((kind) => html`<button onClick=${() => save(glossary, kind, languages)} disabled=${!Object.keys(glossary.terms).length} translate=${false}>${kind.toUpperCase()}</button>`)}</div></div>`;
}

export function Glossary({ glossaries, source, target }) {
  const { all, change, add, remove, count, most } = glossaries;
  const [chosen, setChosen] = useState(all[0]?.id);
  const [said, setSaid] = useState({ text: "" });
  const open = all.find((one) => one.id === chosen);

  function begin() {
    const one = newGlossary(t("Glossary {n}", { n: all.length + 1 }));
    add(one);
    setChosen(one.id);
  }

  async function load(event) {
    const [file] = event.target.files;
    if (!file) return;
    try {
      const known = await read(file.name, file, { source, target });
      if (!Object.keys(known.terms).length && source === "auto") throw new Error(t("No terms were found: choose the language of the text first."));
      const text = Object.entries(known.terms).map((pair) => pair.join("\t")).join("\n");
      const one = newGlossary(file.name.replace(/\.\w+$/, ""), { text });
      add(one);
      setChosen(one.id);
      const left = known.faults.map((fault) => `${t("Line {line}", { line: fault.line })}: ${faultOf(fault)}`);
      setSaid({ text: [t.n(Object.keys(known.terms).length, "{n} term was read.", "{n} terms were read."), ...left].join(" "), bad: left.length > 0 });
    } catch (problem) {
      setSaid({ text: problem.message, bad: true });
    }
    event.target.value = "";
  }

  return html`<section class="panel glossaries"><h2>${t("Glossaries, in this browser alone")}</h2>
    ${count > most && html`<p class="error" role="alert">${t("{n} terms are in use: only the first {most} are sent with a text.", { n: count, most })}</p>`}
    <ul>${all.map((one) => html`<li key=${one.id}>
      <label><input type="checkbox" checked=${one.used} onChange=${(event) => change(one.id, { used: event.target.checked })} /> <span dir="auto">${nameOf(one)}</span></label>
      <span class="soft">${t.n(Object.keys(one.terms).length, "{n} term", "{n} terms")}</span>
      <button aria-expanded=${one.id === chosen} onClick=${() => setChosen(one.id === chosen ? "" : one.id)} aria-label=${t("Edit {name}", { name: nameOf(one) })}>${t("Edit")}</button>
      <button onClick=${() => remove(one.id)} aria-label=${t("Delete {name}", { name: nameOf(one) })}>${t("Delete")}</button></li>`)}</ul>
    <div class="row"><button onClick=${begin}>${t("New glossary")}</button>
      <label class="button" for="glossary-file">${t("Import a file")}</label><input class="hidden" id="glossary-file" type="file" accept=".csv,.tsv,.tbx,.xlsx,.txt" onChange=${load} /></div>
    <p class=${said.bad ? "error" : "soft"} role="status">${said.text}</p>
    ${open && html`<${Editor} key=${open.id} glossary=${open} change=${change} languages=${{ source, target }} />`}</section>`;
}
