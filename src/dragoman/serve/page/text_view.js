// The text, its translation, and the panels below them.
import { html, useCallback, useEffect, useRef, useState } from "./htm-preact.js";
import { ApiCall } from "./api_call.js";
import { cut, lengthOf } from "./characters.js";
import { Choice } from "./choice.js";
import { keepCorrection, Mending, Similar } from "./corrections.js";
import { countTerms, Glossary } from "./glossary.js";
import { History, readHistory, withEntry } from "./history.js";
import { nameOf } from "./languages.js";
import { DOUBTS, Marked, Output } from "./output.js";
import { ask, askJson, events } from "./server.js";
import { stored } from "./stored.js";

const PAUSE_MS = 400;
const EMPTY = { text: "", sentences: [], alternatives: [], alignments: [], confidence: [], warnings: [], notes: [], memory: [], source: "", detected: null };

export function TextView({ languages, targets, limits, source, setSource, target, setTarget, text, setText, glossary, setGlossary }) {
  const [found, setFound] = useState(EMPTY);
  const [waiting, setWaiting] = useState(false);
  const [error, setError] = useState("");
  const [linked, setLinked] = useState({ source: [], target: [] });
  const [choice, setChoice] = useState(null);
  const [mending, setMending] = useState(null);
  const [panel, setPanel] = useState("");
  const [told, setTold] = useState("");
  const [past, setPast] = useState(readHistory);
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
      setPast((before) => withEntry(before, { text: now, translation: whole.text, source: whole.source || from, target: to }));
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
      await keepCorrection({ text, translation: mending, source: realSource, target });
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
            : html`<${Mending} value=${mending} onInput=${setMending} />`}
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
        ${found.memory.length > 0 && html`<${Similar} memory=${found.memory} />`}
      </div>
    </div>
    <div class="row">
      <button aria-expanded=${panel === "glossary"} onClick=${() => toggle("glossary")}>Glossary${countTerms(glossary) ? ` (${countTerms(glossary)})` : ""}</button>
      <button aria-expanded=${panel === "history"} onClick=${() => toggle("history")}>History</button>
      <button aria-expanded=${panel === "api"} onClick=${() => toggle("api")}>API call</button>
    </div>
    ${panel === "glossary" && html`<${Glossary} ...${{ glossary, setGlossary }} />`}
    ${panel === "history" && html`<${History} past=${past} take=${(one) => { setSource(one.source); setTarget(one.target); setText(one.text); }} clear=${() => { setPast([]); stored.write("history", []); }} />`}
    ${panel === "api" && html`<${ApiCall} ...${{ text, source: realSource || source, target }} />`}`;
}
