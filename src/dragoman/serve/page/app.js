// The page: live translation, words to choose from, documents, corrections. No build step; state is in the fragment,
// history and settings are in this browser alone.
import { html, render, useCallback, useEffect, useMemo, useRef, useState } from "./htm-preact.js";

const ROOT = new URL("../", import.meta.url).href; // the server may stand under a path
const PAUSE_MS = 400;
const HISTORY = 50;
const WORD = /[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0eff]|[\p{L}\p{M}\p{N}]+(?:['’-][\p{L}\p{M}\p{N}]+)*/gu;
const RTL = new Set(["ar", "fa", "he", "ur", "yi", "ps", "sd", "ug", "dv"]);

// Places are counted in characters as Python counts them, not in UTF-16 units.
const chars = (text) => Array.from(text);
const lengthOf = (text) => chars(text).length;
const cut = (text, from, to) => chars(text).slice(from, to).join("");

const kept = {
  read(name, otherwise) {
    try { return JSON.parse(localStorage.getItem(`dragoman.${name}`)) ?? otherwise; } catch { return otherwise; }
  },
  write(name, value) {
    try { localStorage.setItem(`dragoman.${name}`, JSON.stringify(value)); } catch { /* a private window */ }
  },
};

function nameOf(code, languages) {
  return languages.find((one) => one.code === code)?.name ?? code;
}

async function ask(path, options = {}) {
  const key = kept.read("key", "");
  const headers = { ...(key ? { Authorization: `Bearer ${key}` } : {}), ...options.headers };
  let answer;
  try {
    answer = await fetch(ROOT + path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is it still running?");
  }
  if (!answer.ok) {
    const told = await answer.json().catch(() => ({}));
    throw new Error(told.error ?? `The server answers ${answer.status}.`);
  }
  return answer;
}

const askJson = (path, body, signal) =>
  ask(path, { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" }, signal })
    .then((answer) => answer.json());

async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    waiting += value;
    const blocks = waiting.split("\n\n");
    waiting = blocks.pop();
    for (const block of blocks) {
      const [first, ...rest] = block.split("\n");
      yield { name: first.slice(7), data: JSON.parse(rest.map((line) => line.slice(6)).join("\n")) };
    }
  }
}

const EMPTY = { text: "", sentences: [], alternatives: [], alignments: [], confidence: [], warnings: [], notes: [], memory: [], source: "", detected: null };

function fromFragment() {
  const parts = location.hash.slice(1).split("/");
  try {
    return { source: parts[0] || "", target: parts[1] || "", text: decodeURIComponent(parts.slice(2).join("/")) };
  } catch {
    return { source: parts[0] || "", target: parts[1] || "", text: "" };
  }
}

const countTerms = (glossary) => glossary.split("\n").filter((line) => line.trim() && !line.startsWith("#")).length;

function App() {
  const start = useMemo(fromFragment, []);
  const [languages, setLanguages] = useState([]);
  const [limits, setLimits] = useState(null);
  const [problem, setProblem] = useState("");
  const [view, setView] = useState("text");
  const [source, setSource] = useState(start.source || "auto");
  const [target, setTarget] = useState(start.target || "");
  const [text, setText] = useState(start.text);
  const [glossary, setGlossary] = useState(() => kept.read("glossary", ""));
  const [theme, setTheme] = useState(() => kept.read("theme", matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  const [key, setKey] = useState(() => kept.read("key", ""));

  useEffect(() => { document.documentElement.dataset.theme = theme; }, [theme]);
  useEffect(() => { kept.write("glossary", glossary); }, [glossary]);
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
    kept.write("theme", next);
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
      ${limits?.key_required && html`<${KeyPanel} value=${key} onChange=${(value) => { kept.write("key", value); setKey(value); }} />`}
      ${view === "text"
        ? html`<${TextView} ...${{ languages, targets, limits, source, setSource, target, setTarget, text, setText, glossary, setGlossary }} />`
        : html`<${DocumentView} ...${{ languages, limits, source, target, glossary }} />`}
    </main>
    <footer>
      <a href=${`${ROOT}docs`}>API</a>
      <span>Texts are translated on this server and kept nowhere; the history is in this browser.</span>
    </footer>`;
}

function KeyPanel({ value, onChange }) {
  return html`<section class="panel"><label for="key">This server asks for an API key</label>
    <input id="key" type="password" autocomplete="off" value=${value} onChange=${(event) => onChange(event.target.value.trim())} /></section>`;
}

function TextView({ languages, targets, limits, source, setSource, target, setTarget, text, setText, glossary, setGlossary }) {
  const [found, setFound] = useState(EMPTY);
  const [waiting, setWaiting] = useState(false);
  const [error, setError] = useState("");
  const [linked, setLinked] = useState({ source: [], target: [] });
  const [choice, setChoice] = useState(null);
  const [mending, setMending] = useState(null);
  const [panel, setPanel] = useState("");
  const [told, setTold] = useState("");
  const [past, setPast] = useState(() => kept.read("history", []));
  const under = useRef(null);
  const timer = useRef(0);

  const limit = limits?.text_characters ?? 5000;
  const length = lengthOf(text);
  const isOver = length > limit;

  const translate = useCallback(async (now, from, to, terms) => {
    under.current?.abort();
    setChoice(null);
    setMending(null);
    setLinked({ source: [], target: [] });
    if (!now.trim() || !to || lengthOf(now) > limit) {
      setFound(EMPTY);
      setWaiting(false);
      setError("");
      return;
    }
    const control = (under.current = new AbortController());
    setWaiting(true);
    setError("");
    try {
      const body = { text: now, source: from, target: to, alternatives: 3 };
      if (terms.trim()) body.glossary = terms;
      const answer = await ask("v1/translate/stream", { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" }, signal: control.signal });
      let whole = EMPTY;
      for await (const { name, data } of events(answer)) {
        if (control.signal.aborted) return;
        if (name === "part") {
          whole = { ...whole, ...data, text: whole.text + data.text, sentences: [...whole.sentences, ...data.sentences], alternatives: whole.text ? [] : data.alternatives, notes: [...whole.notes, ...data.notes] };
        } else if (name === "details") {
          whole = { ...whole, alignments: data.alignments ?? [], confidence: data.confidence ?? [], warnings: data.warnings ?? [], memory: data.memory ?? [] };
        } else if (name === "error") {
          throw new Error(data.error);
        }
        setFound(whole);
      }
      setWaiting(false);
      setPast((before) => {
        const entry = { text: now, translation: whole.text, source: whole.source || from, target: to };
        const others = before.filter((one) => !(now.startsWith(one.text) || one.text === now));
        const next = [entry, ...others].slice(0, HISTORY);
        kept.write("history", next);
        return next;
      });
    } catch (problem) {
      if (problem.name === "AbortError" || control.signal.aborted) return;
      setWaiting(false);
      setError(problem.message);
    }
  }, [limit]);

  useEffect(() => {
    clearTimeout(timer.current);
    under.current?.abort();
    timer.current = setTimeout(() => translate(text, source, target, glossary), PAUSE_MS);
    return () => clearTimeout(timer.current);
  }, [text, source, target, glossary, translate]);

  const realSource = source === "auto" ? found.source : source;
  const canSwap = Boolean(realSource) && languages.some((one) => one.code === target && one.targets.includes(realSource));

  function swap() {
    setSource(target);
    setTarget(realSource);
    if (found.text) setText(found.text);
  }

  async function copy() {
    await navigator.clipboard.writeText(found.text);
    setTold("Copied");
    setTimeout(() => setTold(""), 1500);
  }

  function link(from, to, side) {
    const overlaps = ([a, b, c, d]) => (side === "target" ? c < to && from < d : a < to && from < b);
    const links = found.alignments.filter(overlaps);
    setLinked({ source: links.map(([a, b]) => [a, b]), target: side === "target" ? [[from, to], ...links.map((one) => [one[2], one[3]])] : links.map((one) => [one[2], one[3]]) });
  }

  async function choose(place, from, to) {
    const sentence = found.sentences.find(([, , a, b]) => a <= from && to <= b);
    if (!sentence) return;
    const [srcFrom, srcTo, tgtFrom, tgtTo] = sentence;
    const shown = { place, from, sentence, words: null, error: "" };
    setChoice(shown);
    try {
      const { translations } = await askJson("v1/words", {
        text: cut(text, srcFrom, srcTo), source: realSource, target, prefix: cut(found.text, tgtFrom, from), count: 6,
      });
      const whole = cut(found.text, tgtFrom, tgtTo);
      setChoice({ ...shown, words: translations.filter((one) => one.text !== whole) });
    } catch (problem) {
      setChoice({ ...shown, error: problem.message });
    }
  }

  function take(sentence, translation) {
    const [srcFrom, srcTo, tgtFrom, tgtTo] = sentence;
    const grown = lengthOf(translation) - (tgtTo - tgtFrom);
    const sentences = found.sentences.map((one) =>
      one === sentence ? [srcFrom, srcTo, tgtFrom, tgtTo + grown] : one[2] >= tgtTo ? [one[0], one[1], one[2] + grown, one[3] + grown] : one);
    setFound({ ...found, text: cut(found.text, 0, tgtFrom) + translation + cut(found.text, tgtTo), sentences, alignments: [], confidence: [], alternatives: [], warnings: [] });
    setChoice(null);
  }

  async function keep() {
    try {
      await askJson("v1/corrections", { text, translation: mending, source: realSource, target });
      setFound({ ...found, text: mending, sentences: [], alignments: [], confidence: [], alternatives: [], warnings: [], notes: [] });
      setMending(null);
      setTold("Kept: this text is translated so from now on");
      setTimeout(() => setTold(""), 4000);
    } catch (problem) {
      setError(problem.message);
    }
  }

  const toggle = (name) => setPanel(panel === name ? "" : name);
  const sure = found.detected && found.detected.confidence < 0.6 ? " (not sure)" : "";

  return html`
    <div class="languages">
      <div>
        <label class="hidden" for="source">From</label>
        <select id="source" value=${source} onChange=${(event) => setSource(event.target.value)}>
          <option value="auto">Detect language</option>
          ${languages.filter((one) => one.targets.length).map((one) => html`<option value=${one.code}>${one.name}</option>`)}
        </select>
        ${source === "auto" && found.detected && html`<span class="detected">${nameOf(found.source, languages)}${sure}</span>`}
      </div>
      <button onClick=${swap} disabled=${!canSwap} aria-label="Swap languages">⇄</button>
      <div>
        <label class="hidden" for="target">To</label>
        <select id="target" value=${target} onChange=${(event) => setTarget(event.target.value)}>
          ${targets.map((code) => html`<option value=${code}>${nameOf(code, languages)}</option>`)}
        </select>
      </div>
    </div>
    <div class="panes">
      <div class="pane">
        <div class="field">
          <div class="backdrop" dir="auto" aria-hidden="true"><${Marked} text=${text} places=${linked.source} /></div>
          <textarea id="text" dir="auto" aria-label="Text to translate" placeholder="Type or paste a text" spellcheck="false" value=${text}
            onInput=${(event) => setText(event.target.value)}
            onKeyDown=${(event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { clearTimeout(timer.current); translate(text, source, target, glossary); } }}></textarea>
        </div>
        <div class="tools">
          <button onClick=${() => { setText(""); document.getElementById("text").focus(); }} disabled=${!text}>Clear</button>
          <span class=${`counter${isOver ? " over" : ""}`} role="status">${length.toLocaleString()} / ${limit.toLocaleString()}${isOver ? ": too long" : ""}</span>
        </div>
      </div>
      <div class="pane">
        <div class="field">
          ${mending === null
            ? html`<${Output} ...${{ found, waiting, target, linked, link, choose }} unlink=${() => setLinked({ source: [], target: [] })} />`
            : html`<textarea id="mending" dir="auto" aria-label="Your translation" value=${mending} onInput=${(event) => setMending(event.target.value)}></textarea>`}
          ${choice && html`<${Choice} ...${{ choice, take }} close=${() => setChoice(null)} />`}
        </div>
        <ul class="notes" aria-live="polite">
          ${error && html`<li class="error">${error}</li>`}
          ${found.warnings.map((one) => html`<li class="warning">⚠ ${one.text}</li>`)}
          ${found.confidence.some(([, , value]) => value < DOUBTS.at(-1)) && html`<li class="soft"><span class="doubt-0">doubtful</span> and <span class="doubt-1">uncertain</span> words: fewer than 3 and 5 of 10 such stand in a human's translation</li>`}
          ${found.notes.map((one) => html`<li class="soft">${one.text}</li>`)}
          ${told && html`<li>${told}</li>`}
        </ul>
        <div class="tools">
          <button onClick=${copy} disabled=${!found.text}>Copy</button>
          ${limits?.corrections && (mending === null
            ? html`<button onClick=${() => setMending(found.text)} disabled=${!found.text || waiting}>Correct</button>`
            : html`<button class="primary" onClick=${keep} disabled=${!mending.trim()}>Keep</button><button onClick=${() => setMending(null)}>Cancel</button>`)}
        </div>
        ${found.alternatives.length > 0 && mending === null && html`
          <div class="alternatives"><h2>Alternatives</h2>
            ${found.alternatives.map((one) => html`<button dir="auto" lang=${target} onClick=${() => setFound({ ...found, text: one, alternatives: [found.text, ...found.alternatives.filter((other) => other !== one)], alignments: [], confidence: [], sentences: found.sentences.length === 1 ? [[...found.sentences[0].slice(0, 2), 0, lengthOf(one)]] : [] })}>${one}</button>`)}
          </div>`}
        ${found.memory.length > 0 && html`
          <div class="alternatives"><h2>Corrected before</h2>
            ${found.memory.map((one) => html`<p class="soft">${Math.round(100 * one.similarity)} %: ${one.source} → ${one.target}</p>`)}
          </div>`}
      </div>
    </div>
    <div class="row">
      <button aria-expanded=${panel === "glossary"} onClick=${() => toggle("glossary")}>Glossary${countTerms(glossary) ? ` (${countTerms(glossary)})` : ""}</button>
      <button aria-expanded=${panel === "history"} onClick=${() => toggle("history")}>History</button>
      <button aria-expanded=${panel === "api"} onClick=${() => toggle("api")}>API call</button>
    </div>
    ${panel === "glossary" && html`<section class="panel"><h2><label for="glossary">Glossary: a term, =, its translation; one a line, or rows of a spreadsheet</label></h2>
      <textarea id="glossary" spellcheck="false" placeholder="Bier = ale" value=${glossary} onInput=${(event) => setGlossary(event.target.value)}></textarea></section>`}
    ${panel === "history" && html`<section class="panel"><h2>History, in this browser alone</h2>
      <ul class="history">${past.map((one) => html`<li><button onClick=${() => { setSource(one.source); setTarget(one.target); setText(one.text); }}>
        <small>${one.source} → ${one.target}</small><span dir="auto">${one.text}</span><br /><span class="soft" dir="auto">${one.translation}</span></button></li>`)}</ul>
      ${past.length ? html`<div class="row"><button onClick=${() => { setPast([]); kept.write("history", []); }}>Delete all</button></div>` : html`<p class="soft">Nothing yet.</p>`}</section>`}
    ${panel === "api" && html`<section class="panel"><h2>The same from a program</h2><pre tabindex="0">${snippet(text, realSource || source, target)}</pre></section>`}`;
}

function snippet(text, source, target) {
  const body = JSON.stringify({ text, source, target }).replaceAll("'", "'\\''");
  return `curl ${ROOT}v1/translate \\\n  -H 'Content-Type: application/json' \\\n  -d '${body}'`;
}

function Marked({ text, places }) {
  if (!places.length) return text;
  const letters = chars(text);
  const parts = [];
  let at = 0;
  for (const [from, to] of [...places].sort((a, b) => a[0] - b[0])) {
    if (from < at) continue;
    parts.push(letters.slice(at, from).join(""), html`<mark>${letters.slice(from, to).join("")}</mark>`);
    at = to;
  }
  parts.push(letters.slice(at).join(""));
  return parts;
}

function pieces(text) {
  const out = [];
  let done = 0, place = 0;
  for (const match of text.matchAll(WORD)) {
    const gap = text.slice(done, match.index);
    if (gap) { out.push({ text: gap, from: place, word: false }); place += lengthOf(gap); }
    out.push({ text: match[0], from: place, word: true });
    place += lengthOf(match[0]);
    done = match.index + match[0].length;
  }
  if (done < text.length) out.push({ text: text.slice(done), from: place, word: false });
  return out;
}

const DOUBTS = [0.3, 0.5];

function Output({ found, waiting, target, linked, link, unlink, choose }) {
  const all = useMemo(() => pieces(found.text), [found.text]);
  const [active, setActive] = useState(0);
  const box = useRef(null);
  const numbers = all.flatMap((piece, number) => (piece.word ? [number] : []));
  const first = numbers.includes(active) ? active : numbers[0];

  function onKeyDown(event, number) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) {
      const next = numbers[numbers.indexOf(number) + (RTL.has(target) ? -step : step)];
      if (next !== undefined) {
        setActive(next);
        box.current.querySelector(`[data-number="${next}"]`).focus();
      }
      event.preventDefault();
    } else if (event.key === "Enter" || event.key === " ") {
      open(event.currentTarget, all[number]);
      event.preventDefault();
    }
  }

  function open(element, piece) {
    const place = { left: element.offsetLeft, top: element.offsetTop + element.offsetHeight + 4 };
    choose(place, piece.from, piece.from + lengthOf(piece.text));
  }

  return html`<div class=${`output${waiting ? " waiting" : ""}`} ref=${box} id="output" role="group" aria-label="Translation" lang=${target} dir="auto" aria-busy=${waiting} onMouseLeave=${unlink}>
    ${all.map((piece, number) => {
      if (!piece.word) return piece.text;
      const to = piece.from + lengthOf(piece.text);
      const isLinked = linked.target.some(([a, b]) => a < to && piece.from < b);
      const values = found.confidence.filter(([a, b]) => a < to && piece.from < b).map(([, , value]) => value);
      const doubt = values.length ? DOUBTS.findIndex((bound) => Math.min(...values) < bound) : -1;
      const sure = doubt < 0 ? "" : ` doubt-${doubt}`;
      return html`<span key=${number} class=${`word${isLinked ? " linked" : ""}${sure}`} title=${values.length ? `confidence ${Math.round(100 * Math.min(...values))} %` : undefined} role="button" data-number=${number} aria-haspopup="true" tabindex=${number === first ? 0 : -1}
        onMouseEnter=${() => link(piece.from, to, "target")} onFocus=${() => { setActive(number); link(piece.from, to, "target"); }}
        onClick=${(event) => open(event.currentTarget, piece)} onKeyDown=${(event) => onKeyDown(event, number)}>${piece.text}</span>`;
    })}
  </div>`;
}

function Choice({ choice, take, close }) {
  const box = useRef(null);
  useEffect(() => {
    const left = Math.max(4, Math.min(choice.place.left, box.current.parentElement.clientWidth - box.current.offsetWidth - 4));
    box.current.style.left = `${left}px`;
    box.current.style.top = `${choice.place.top}px`;
    box.current.querySelector("button")?.focus();
  }, [choice]);
  const prefix = choice.from - choice.sentence[2];
  return html`<div class="popover" ref=${box} role="dialog" aria-label="Other words" onKeyDown=${(event) => { if (event.key === "Escape") { close(); document.querySelector('.word[tabindex="0"]')?.focus(); } }}>
    ${choice.error && html`<p class="error">${choice.error}</p>`}
    ${!choice.error && choice.words === null && html`<p class="soft">Looking for other words …</p>`}
    ${choice.words?.length === 0 && html`<p class="soft">No other words found.</p>`}
    ${choice.words?.map((one) => {
      const rest = cut(one.text, prefix).trimStart();
      return html`<button dir="auto" onClick=${() => take(choice.sentence, one.text)}><strong>${rest.split(/\s/, 1)[0]}</strong> <small>${rest.slice(rest.split(/\s/, 1)[0].length)}</small></button>`;
    })}
    <button onClick=${close}>Close</button>
  </div>`;
}

function Doubts({ job }) {
  const more = job.doubts - job.in_doubt.length;
  return html`<details><summary>Texts in doubt</summary><ul>
    ${job.in_doubt.map((one) => html`<li><strong>${one.where}</strong>: ${one.reasons.join("; ")}<q>${one.text}</q></li>`)}
    ${more > 0 && html`<li>... and ${more.toLocaleString()} more</li>`}</ul></details>`;
}

function DocumentView({ languages, limits, source, target, glossary }) {
  const pairs = languages.flatMap((one) => one.targets.map((to) => [one.code, to]));
  const [pair, setPair] = useState(() => (source !== "auto" && target ? `${source}/${target}` : ""));
  const [jobs, setJobs] = useState([]);
  const [over, setOver] = useState(false);
  const [columns, setColumns] = useState("");
  const [bilingual, setBilingual] = useState(false);
  const chosen = pair || (pairs.length ? (pairs.find(([, to]) => to === target) ?? pairs[0]).join("/") : "");
  const set = (id, changes) => setJobs((now) => now.map((job) => (job.local === id ? { ...job, ...changes } : job)));

  async function send(file) {
    const local = crypto.randomUUID?.() ?? `${Date.now()}${Math.random()}`;
    const [from, to] = chosen.split("/");
    setJobs((now) => [{ local, name: file.name, state: "sending" }, ...now]);
    if (limits && file.size > limits.file_bytes) {
      set(local, { state: "error", error: `Larger than ${Math.round(limits.file_bytes / 2 ** 20)} MiB.` });
      return;
    }
    try {
      const form = new FormData();
      form.append("file", file);
      form.append("source", from);
      form.append("target", to);
      if (glossary.trim()) form.append("glossary", glossary);
      form.append("columns", columns);
      form.append("bilingual", bilingual);
      let job = await (await ask("v1/documents", { method: "POST", body: form })).json();
      const { id, key } = job;
      set(local, { ...job, name: file.name, result: job.name, address: `v1/documents/${id}/result?key=${key}` });
      while (job.state === "queued" || job.state === "translating") {
        await new Promise((done) => setTimeout(done, 500));
        job = await (await ask(`v1/documents/${id}?key=${key}`)).json();
        set(local, { ...job, name: file.name, result: job.name });
      }
    } catch (problem) {
      set(local, { state: "error", error: problem.message });
    }
  }

  async function save(job) {
    const data = await (await ask(job.address)).blob();
    const link = document.createElement("a");
    link.href = URL.createObjectURL(data);
    link.download = job.result;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  const drop = (event) => { event.preventDefault(); setOver(false); for (const file of event.dataTransfer.files) send(file); };
  return html`
    <div class="row"><label for="pair">Languages</label>
      <select id="pair" value=${chosen} onChange=${(event) => setPair(event.target.value)}>
        ${pairs.map(([from, to]) => html`<option value=${`${from}/${to}`}>${nameOf(from, languages)} → ${nameOf(to, languages)}</option>`)}
      </select>
      <label for="columns">Columns of tables (.csv, .tsv)</label>
      <input id="columns" value=${columns} onInput=${(event) => setColumns(event.target.value)} />
      <label><input id="bilingual" type="checkbox" checked=${bilingual} onChange=${(event) => setBilingual(event.target.checked)} /> Translations below their sources</label></div>
    <div class=${`drop row${over ? " over" : ""}`} onDragOver=${(event) => { event.preventDefault(); setOver(true); }} onDragLeave=${() => setOver(false)} onDrop=${drop}>
      <div><p><label for="file">Drop documents here, or choose them</label></p>
        <input id="file" type="file" multiple accept=${limits?.formats.join(",")} onChange=${(event) => { for (const file of event.target.files) send(file); event.target.value = ""; }} />
        <p class="soft">${limits?.formats.join(" ")}</p></div>
    </div>
    <ul class="jobs" aria-live="polite">${jobs.map((job) => html`<li key=${job.local}><strong>${job.name}</strong>
      ${job.state === "error" ? html`<span class="error">${job.error}</span>`
        : job.state === "done" ? html`<span class="soft">${job.texts.toLocaleString()} texts translated${job.doubts ? `, ${job.doubts.toLocaleString()} in doubt` : ""}</span><button class="primary" onClick=${() => save(job)}>Download</button>${job.doubts > 0 && html`<${Doubts} job=${job} />`}`
        : html`<progress aria-label=${`Progress of ${job.name}`} max=${job.total || 1} value=${job.done || 0}></progress><span class="soft">${job.state}${job.seconds_left ? `, about ${job.seconds_left} s left` : ""}</span>`}</li>`)}</ul>`;
}

render(html`<${App} />`, document.getElementById("app"));
