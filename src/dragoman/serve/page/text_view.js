// The text, its translation, and the panels below them.
import { html, useEffect, useRef, useState } from "./htm-preact.js";
import { announce } from "./announcer.js";
import { ApiCall } from "./api_call.js";
import { beginning, cut, lengthOf, letters } from "./characters.js";
import { Choice } from "./choice.js";
import { CorrectionsPanel, Draft, keep, rightsOf, Similar, undo, whatFor } from "./corrections.js";
import { Differences } from "./differences.js";
import { textFile } from "./documents.js";
import { countTerms, Glossary } from "./glossary.js";
import { History, useHistory } from "./history.js";
import { AUTO, LanguageBar, nameOf, NotServed, writing } from "./languages.js";
import { t } from "./messages.js";
import { focusWord, Marked, Output } from "./output.js";
import { isCorrected, Remarks } from "./remarks.js";
import { askJson, Retry } from "./server.js";
import { Speak } from "./speech.js";
import { storedInTab } from "./stored.js";
import { useTranslation } from "./translation.js";

const UNSURE = 0.6;
const NO_LINKS = { source: [], target: [] };

// Put a text into the field as if it were typed, so that Ctrl+Z brings the old one back.
function typeOver(text, setText) {
  const field = document.getElementById("text"), before = document.activeElement;
  field.focus();
  field.select();
  if (!document.execCommand(text ? "insertText" : "delete", false, text)) setText(text);
  if (text) before.focus();
}

export function TextView({ bar, languages, limits, text, setText, glossaries, hasKey, sendDocument }) {
  const glossary = glossaries.json;
  const { source, setSource, target, setTarget } = bar;
  const [past, addToHistory, clearHistory] = useHistory();
  const [linked, setLinked] = useState(NO_LINKS);
  const [choice, setChoice] = useState(null);
  const [draft, setDraft] = useState(() => storedInTab.read("draft", null));
  const [panel, setPanel] = useState("");
  const [said, setSaid] = useState(null);
  const rights = rightsOf(limits);

  const limit = limits?.text_characters ?? 5000;
  const length = lengthOf(text), over = length - limit;
  const wanted = { text, source, target, glossary };
  const translation = useTranslation(wanted, limit, (done) => {
    addToHistory({ text, translation: done.text, source: done.source || source, target });
    announce(t("Translated from {language} to {other}", { language: nameOf(done.source || source), other: nameOf(target) }));
  });
  const { found, phase, problem, retry } = translation;
  const isWhole = phase === "done";
  const realSource = source === AUTO ? (isWhole ? found.source : "") : source;
  const written = writing(source === AUTO ? found.source : source); // while it is typed as the text before was

  useEffect(() => { setChoice(null); setLinked(NO_LINKS); }, [text, source, target, glossary]);
  useEffect(() => { if (problem) announce(problem.message); }, [problem]);
  useEffect(() => { storedInTab.write("draft", draft && { ...draft, isSent: false, error: "" }); }, [draft]);

  function swap() {
    setSource(target);
    setTarget(realSource);
    if (isWhole && found.text) typeOver(found.text, setText);
  }

  // A line that stands there for some seconds, perhaps with something that can be done about it.
  const timer = useRef(0);
  function say(line, action = null) {
    setSaid({ line, action });
    announce(line);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setSaid(null), action ? 15_000 : 4000);
  }

  async function copy() {
    try {
      await navigator.clipboard.writeText(found.text);
      say(t("Copied"));
    } catch { // not over HTTPS, or not allowed
      getSelection().selectAllChildren(document.getElementById("output"));
      say(document.execCommand("copy") ? t("Copied") : t("Selected: copy it by the keyboard."));
    }
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
    const show = (changes) => setChoice((now) => (now === shown ? { ...shown, ...changes } : now)); // unless it is closed
    setChoice(shown);
    try {
      const { translations } = await askJson("v1/words", {
        text: cut(text, srcFrom, srcTo), source: found.source, target, prefix: cut(found.text, tgtFrom, from), count: 6,
      });
      const whole = cut(found.text, tgtFrom, tgtTo);
      show({ words: translations.filter((one) => one.text !== whole) });
    } catch (refused) {
      show({ error: refused.message });
    }
  }

  const madeOf = ({ made, text: whole, sentences }) => made ?? { text: whole, sentences };
  const instead = (changes) => translation.replace({ ...found, made: madeOf(found), alignments: [], confidence: [], ...changes });

  function take(sentence, words) {
    const [srcFrom, srcTo, tgtFrom, tgtTo] = sentence;
    const grown = lengthOf(words) - (tgtTo - tgtFrom);
    const sentences = found.sentences.map((one) =>
      one === sentence ? [srcFrom, srcTo, tgtFrom, tgtTo + grown] : one[2] >= tgtTo ? [one[0], one[1], one[2] + grown, one[3] + grown] : one);
    instead({ text: cut(found.text, 0, tgtFrom) + words + cut(found.text, tgtTo), sentences, alternatives: [], warnings: [] });
    setChoice(null);
    setTimeout(focusWord);
  }

  function takeAlternative(one) {
    const sentences = found.sentences.length === 1 ? [[...found.sentences[0].slice(0, 2), 0, lengthOf(one)]] : [];
    instead({ text: one, sentences, alternatives: [found.text, ...found.alternatives.filter((other) => other !== one)] });
  }

  const isBeside = draft !== null && isWhole && draft.text === text && draft.target === target && draft.source === found.source;
  const change = (changes) => setDraft((now) => now && { ...now, ...changes });

  async function onKeep() {
    change({ isSent: true, error: "" });
    try {
      const kept = await keep(draft);
      setDraft(null);
      const line = whatFor(kept);
      say(line, kept.every((one) => one.id) ? { name: t("Undo"), work: () => undo(kept).then(() => { say(t("Taken back.")); translation.translateNow(); }, (refused) => say(refused.message)) } : null);
      translation.translateNow();
    } catch (refused) {
      change({ isSent: false, error: refused.message });
    }
  }

  const notServed = problem?.details?.code === "language-not-served" ? problem.details.detected : null;
  const isInTarget = isWhole && source === AUTO && found.source === target;
  const toggle = (name) => setPanel(panel === name ? "" : name);
  const sure = found.detected && found.detected.confidence < UNSURE ? ` ${t("(not sure)")}` : "";
  const similar = isCorrected(found) ? [] : found.memory.filter((one) => one.similarity < 1);

  return html`
    <${LanguageBar} ...${bar} real=${realSource} swap=${swap}>
      ${source === AUTO && isWhole && found.detected && html`<span class="detected">${nameOf(found.source)}${sure}</span>`}
    <//>
    <div class="panes">
      <div class="pane">
        ${over > 0 && html`<div class="notes" id="over"><p class="error" role="alert">${t.n(over, "{n} character too many: nothing is translated until the text is shorter.", "{n} characters too many: nothing is translated until the text is shorter.")}</p>
          <div class="row"><button onClick=${() => typeOver(beginning(letters(text), limit), setText)}>${t("Cut it after {n} characters", { n: limit })}</button>
          ${limits?.documents && html`<button onClick=${() => sendDocument(textFile(text))}>${t("Translate it as a document")}</button>`}</div></div>`}
        <div class="field">
          <div class="backdrop" ...${written} aria-hidden="true"><${Marked} text=${text} places=${over > 0 ? [[limit, length]] : linked.source} words=${over <= 0} name=${over > 0 ? "over" : ""} /></div>
          <textarea id="text" ...${written} aria-label=${t("Text to translate")} aria-invalid=${over > 0} aria-describedby=${over > 0 ? "over" : undefined} placeholder=${t("Type or paste a text")} spellcheck=${false} value=${text}
            onInput=${(event) => setText(event.target.value)}
            onKeyDown=${(event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) translation.translateNow(); }}></textarea>
        </div>
        ${notServed && html`<${NotServed} detected=${notServed} ...${{ languages, setSource }} />`}
        ${isInTarget && html`<div class="notes"><p>${t("The text is in {language} already.", { language: nameOf(target) })}
          ${bar.targets.filter((code) => code !== target).slice(0, 3).map((code) => html` <button onClick=${() => setTarget(code)}>${t("Translate it to {language}", { language: nameOf(code) })}</button>`)}</p></div>`}
        <div class="tools">
          <button onClick=${() => typeOver("", setText)} disabled=${!text}>${t("Clear")}</button>
          <${Speak} what="text" text=${text} language=${realSource && writing(realSource).lang} name=${nameOf(realSource)} />
          <span class=${`counter${over > 0 ? " over" : ""}`}><bdi dir="ltr">${t.number(length)} / ${t.number(limit)}</bdi>${over > 0 ? `: ${t("too long")}` : ""}</span>
        </div>
      </div>
      <div class="pane">
        <div class="field" hidden=${isBeside}>
          <${Output} ...${{ found, phase, target, linked, link, choose }} unlink=${() => setLinked(NO_LINKS)} />
          ${choice && isWhole && html`<${Choice} ...${{ choice, target, take }} close=${() => setChoice(null)} />`}
        </div>
        ${draft && html`<${Draft} ...${{ draft, isBeside, rights, change, onKeep }} cancel=${() => setDraft(null)} />`}
        <div class="notes" aria-live="polite">
          ${retry && html`<${Retry} retry=${retry} />`}
          ${problem && !notServed && html`<p class="error">${problem.message} <button onClick=${translation.translateNow}>${t("Try again")}</button></p>`}
          ${said && html`<p>${said.line} ${said.action && html`<button onClick=${said.action.work}>${said.action.name}</button>`}</p>`}
        </div>
        ${isWhole && html`<${Remarks} found=${found} />`}
        <div class="tools">
          <button onClick=${copy} disabled=${!isWhole || !found.text || isBeside}>${t("Copy")}</button>
          <${Speak} what="translation" text=${isWhole ? found.text : ""} language=${writing(target).lang} name=${nameOf(target)} />
          ${rights.may_correct && html`<button onClick=${() => setDraft({ text, source: found.source, target, made: madeOf(found), translation: found.text })} disabled=${!isWhole || !found.text || draft !== null}>${t("Correct")}</button>`}
        </div>
        ${isWhole && found.alternatives.length > 0 && !isBeside && html`
          <div class="alternatives"><h2>${t("Alternatives")}</h2>
            ${found.alternatives.map((one) => html`<button ...${writing(target)} onClick=${() => takeAlternative(one)}><span><${Differences} text=${one} other=${found.text} direction=${writing(target).dir} /></span></button>`)}
          </div>`}
        ${isWhole && similar.length > 0 && html`<${Similar} memory=${similar} source=${found.source} target=${target} />`}
      </div>
    </div>
    <div class="row">
      <button aria-expanded=${panel === "glossary"} onClick=${() => toggle("glossary")}>${t("Glossary")}${countTerms(glossary) ? ` (${t.number(countTerms(glossary))})` : ""}</button>
      <button aria-expanded=${panel === "history"} onClick=${() => toggle("history")}>${t("History")}</button>
      ${(rights.may_review || rights.scopes.length > 0) && html`<button aria-expanded=${panel === "corrections"} onClick=${() => toggle("corrections")}>${t("Corrections")}</button>`}
      <button aria-expanded=${panel === "api"} onClick=${() => toggle("api")}>${t("API call")}</button>
    </div>
    ${panel === "glossary" && html`<${Glossary} ...${{ glossaries, source: realSource || source, target }} />`}
    ${panel === "history" && html`<${History} past=${past} take=${(one) => { setSource(one.source); setTarget(one.target); typeOver(one.text, setText); }} clear=${clearHistory} />`}
    ${panel === "corrections" && html`<${CorrectionsPanel} rights=${rights} change=${translation.translateNow} />`}
    ${panel === "api" && html`<${ApiCall} ...${{ text, source: realSource || source, target, glossary, hasKey }} />`}`;
}
