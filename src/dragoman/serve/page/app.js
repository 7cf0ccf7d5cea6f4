// The page: live translation, words to choose from, documents, corrections. No build step; state is in the fragment,
// history and settings are in this browser alone.
import { html, render, useEffect, useMemo, useState } from "./htm-preact.js";
import { fromAddress, useAddress } from "./address.js";
import { Announcer } from "./announcer.js";
import { DocumentView, filesOf, useDocuments } from "./documents.js";
import { useGlossaries } from "./glossary.js";
import { KeyPanel } from "./key.js";
import { AUTO, serve } from "./languages.js";
import { LOCALES, t, useLocale } from "./messages.js";
import { getJson, Retry, ROOT, untilDone } from "./server.js";
import { useStored } from "./stored.js";
import { TextView } from "./text_view.js";

const isDark = matchMedia("(prefers-color-scheme: dark)").matches;

// The languages, by their names in `locale`, and limits of the server; until it tells them, what the next try waits for.
function useServer(key, locale) {
  const [server, setServer] = useState({ languages: [], limits: null, retry: null, problem: "" });
  useEffect(() => {
    const control = new AbortController();
    const load = () => Promise.all(["v1/languages", "v1/limits"].map((path) => getJson(path, control.signal)));
    untilDone(load, control.signal, (retry) => setServer((now) => ({ ...now, retry })))
      .then(([languages, limits]) => { serve(languages); setServer({ languages, limits, retry: null, problem: "" }); })
      .catch((problem) => { if (!control.signal.aborted) setServer((now) => ({ ...now, retry: null, problem: problem.message })); });
    return () => control.abort();
  }, [key, locale]);
  return server;
}

function useOnline() {
  const [isOnline, setOnline] = useState(navigator.onLine);
  useEffect(() => {
    const look = () => setOnline(navigator.onLine);
    for (const type of ["online", "offline"]) addEventListener(type, look);
    return () => { for (const type of ["online", "offline"]) removeEventListener(type, look); };
  }, []);
  return isOnline;
}

function App() {
  const start = useMemo(fromAddress, []);
  const [key, setKey] = useStored("key", "");
  const [locale, setLocale] = useLocale();
  const { languages, limits, retry, problem } = useServer(key, locale);
  const [view, setView] = useState("text");
  const [source, setSource] = useState(start.source || AUTO);
  const [target, setTarget] = useState(start.target);
  const [text, setText] = useState(start.text);
  const [isKeyOpen, setKeyOpen] = useState(false);
  const isOnline = useOnline();
  const glossaries = useGlossaries(limits);
  const [theme, setTheme] = useStored("theme", isDark ? "dark" : "light");
  const [options, setOptions] = useState({ columns: "", bilingual: false });
  const documents = useDocuments(limits, { source, target, glossary: glossaries.json, ...options });

  useEffect(() => { document.documentElement.dataset.theme = theme; }, [theme]);
  useAddress({ source, target, text }, (to) => {
    setSource(to.source || AUTO);
    if (to.target) setTarget(to.target);
    setText(to.text);
    setView("text");
  });

  const targets = source === AUTO ? [...new Set(languages.flatMap((one) => one.targets))].sort() : languages.find((one) => one.code === source)?.targets ?? [];
  useEffect(() => {
    if (!languages.length) return;
    if (source !== AUTO && !targets.length) setSource(AUTO);
    else if (targets.length && !targets.includes(target)) setTarget(targets[0]);
  }, [languages, source, target]);

  // A file that is dropped beside a place for it is a document, too; the browser would leave the page for it.
  useEffect(() => {
    function onDrag(event) {
      if (![...event.dataTransfer.types].includes("Files")) return;
      event.preventDefault();
      if (event.type !== "drop" || !limits?.documents) return;
      setView("documents");
      filesOf(event.dataTransfer, () => "").forEach(documents.send);
    }
    for (const type of ["dragover", "drop"]) addEventListener(type, onDrag);
    return () => { for (const type of ["dragover", "drop"]) removeEventListener(type, onDrag); };
  });
  useEffect(() => { if (!matchMedia("(pointer: coarse)").matches) document.getElementById("text")?.focus(); }, []);

  const bar = {
    languages, targets, source, setSource, target, setTarget, real: source === AUTO ? "" : source,
    swap: () => { setSource(target); setTarget(source); },
  };
  const sendDocument = (file) => { setView("documents"); documents.send(file); };
  const running = documents.jobs.filter((job) => job.state !== "done" && job.state !== "error").length;

  return html`
    <header>
      <h1><img src=${`${ROOT}favicon.ico`} alt="" /> Dragoman</h1>
      <nav aria-label=${t("What to translate")}>
        <button aria-pressed=${view === "text"} onClick=${() => setView("text")}>${t("Text")}</button>
        ${limits?.documents && html`<button aria-pressed=${view === "documents"} onClick=${() => setView("documents")}>${t("Documents")}${running ? ` (${running})` : ""}</button>`}
      </nav>
      <button onClick=${() => setTheme(theme === "dark" ? "light" : "dark")} aria-pressed=${theme === "dark"}>${t("Dark")}</button>
      <button onClick=${() => setKeyOpen(!isKeyOpen)} aria-expanded=${isKeyOpen}>${t("API key")}</button>
      <label class="hidden" for="locale">${t("Language of this page")}</label>
      <select id="locale" value=${locale} onChange=${(event) => setLocale(event.target.value)}>
        ${LOCALES.map((one) => html`<option value=${one.code} lang=${one.code} dir=${one.direction}>${one.name}</option>`)}</select>
    </header>
    <main>
      ${!isOnline && html`<p class="error" role="alert" id="offline">${t("You are offline: nothing can be translated until the network is back.")}</p>`}
      ${retry && isOnline && html`<p role="alert"><${Retry} retry=${retry} /></p>`}
      ${problem && html`<p class="error" role="alert">${problem}</p>`}
      ${(isKeyOpen || (limits?.key_required && !key)) && html`<${KeyPanel} required=${limits?.key_required} value=${key} onChange=${(value) => { setKey(value); setKeyOpen(true); }} />`}
      ${view === "text"
        ? html`<${TextView} ...${{ bar, languages, limits, text, setText, glossaries, hasKey: key !== "", sendDocument }} />`
        : html`<${DocumentView} ...${{ bar, limits, documents, options, setOptions }} />`}
    </main>
    <${Announcer} />
    <footer>
      <a href=${`${ROOT}docs?lang=${locale}`}>${t("API")}</a>
      ${limits?.explain && html`<a href=${`${ROOT}explain?lang=${locale}`}>${t("How a sentence is translated")}</a>`}
      <span>${t("Texts are translated on this server and kept nowhere; the history is in this browser.")}</span>
    </footer>`;
}

render(html`<${App} />`, document.getElementById("app"));
