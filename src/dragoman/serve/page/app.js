// The page: live translation, words to choose from, documents, corrections. No build step; state is in the fragment,
// history and settings are in this browser alone.
import { html, render, useEffect, useMemo, useState } from "./htm-preact.js";
import { DocumentView } from "./documents.js";
import { KeyPanel } from "./key.js";
import { ask, ROOT } from "./server.js";
import { stored } from "./stored.js";
import { TextView } from "./text_view.js";

function fromFragment() {
  const parts = location.hash.slice(1).split("/");
  try {
    return { source: parts[0] || "", target: parts[1] || "", text: decodeURIComponent(parts.slice(2).join("/")) };
  } catch {
    return { source: parts[0] || "", target: parts[1] || "", text: "" };
  }
}

function App() {
  const start = useMemo(fromFragment, []);
  const [languages, setLanguages] = useState([]);
  const [limits, setLimits] = useState(null);
  const [problem, setProblem] = useState("");
  const [view, setView] = useState("text");
  const [source, setSource] = useState(start.source || "auto");
  const [target, setTarget] = useState(start.target || "");
  const [text, setText] = useState(start.text);
  const [glossary, setGlossary] = useState(() => stored.read("glossary", ""));
  const [theme, setTheme] = useState(() => stored.read("theme", matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  const [key, setKey] = useState(() => stored.read("key", ""));

  useEffect(() => { document.documentElement.dataset.theme = theme; }, [theme]);
  useEffect(() => { stored.write("glossary", glossary); }, [glossary]);
  useEffect(() => {
    let stopped = false;
    async function load() {
      try {
        const [known, allowed] = await Promise.all(["v1/languages", "v1/limits"].map((path) => ask(path).then((a) => a.json())));
        if (stopped) return;
        setLanguages(known);
        setLimits(allowed);
        setProblem("");
        setTarget((now) => (known.some((one) => one.targets.includes(now)) ? now : known.find((one) => one.targets.length)?.targets[0] ?? ""));
        setSource((now) => (now === "auto" || known.some((one) => one.code === now && one.targets.length) ? now : "auto"));
      } catch (error) {
        if (stopped) return;
        setProblem(error.message);
        setTimeout(load, 2000);
      }
    }
    load();
    return () => { stopped = true; };
  }, [key]);
  useEffect(() => {
    const address = `#${source}/${target}/${encodeURIComponent(text)}`;
    if (target && location.hash !== address) history.replaceState(null, "", address);
  }, [source, target, text]);

  const targets = source === "auto" ? [...new Set(languages.flatMap((one) => one.targets))].sort() : languages.find((one) => one.code === source)?.targets ?? [];
  useEffect(() => { if (targets.length && !targets.includes(target)) setTarget(targets[0]); }, [source, targets.join()]);

  function turnTheme() {
    const next = theme === "dark" ? "light" : "dark";
    setTheme(next);
    stored.write("theme", next);
  }

  return html`
    <header>
      <h1><img src=${`${ROOT}favicon.ico`} alt="" /> Dragoman</h1>
      <nav aria-label="What to translate">
        <button aria-pressed=${view === "text"} onClick=${() => setView("text")}>Text</button>
        ${limits?.documents && html`<button aria-pressed=${view === "documents"} onClick=${() => setView("documents")}>Documents</button>`}
      </nav>
      <button onClick=${turnTheme} aria-pressed=${theme === "dark"}>Dark</button>
    </header>
    <main>
      ${problem && html`<p class="error" role="alert">${problem}</p>`}
      ${limits?.key_required && html`<${KeyPanel} value=${key} onChange=${(value) => { stored.write("key", value); setKey(value); }} />`}
      ${view === "text"
        ? html`<${TextView} ...${{ languages, targets, limits, source, setSource, target, setTarget, text, setText, glossary, setGlossary }} />`
        : html`<${DocumentView} ...${{ languages, limits, source, target, glossary }} />`}
    </main>
    <footer>
      <a href=${`${ROOT}docs`}>API</a>
      <span>Texts are translated on this server and kept nowhere; the history is in this browser.</span>
    </footer>`;
}

render(html`<${App} />`, document.getElementById("app"));
