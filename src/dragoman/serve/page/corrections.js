// Translations as a person wants them: the draft of one, bound to the text that it was begun for, and those that are kept.
import { html, useEffect, useRef, useState } from "./htm-preact.js";
import { cut, lengthOf, pieces } from "./characters.js";
import { useComposing } from "./composition.js";
import { stretches } from "./differences.js";
import { arrow, pairOf, writing } from "./languages.js";
import { t } from "./messages.js";
import { Written } from "./output.js";
import { askJson, getJson, remove } from "./server.js";

const LISTED = 20;

// What a client may do about corrections (`/v1/limits`).
export const rightsOf = (limits) => limits?.corrections ?? { may_correct: false, may_review: false, scopes: [] };

// The pieces of a text whose translation was changed, each as small as can be told, so that they are found again inside
// of other texts: sentences or runs of them, line by line; lines that were joined, together. `made`: {text, sentences} as
// the server gave them. Of a translation that was not changed, all.
export function changedPairs(text, made, translation) {
  const sentences = made.sentences.length ? made.sentences : asLines(text, made.text);
  if (made.text === translation) return sentences.flatMap(([a, b, c, d]) => pair(cut(text, a, b), cut(made.text, c, d)));
  return changedLines({ text: made.text, sentences }, translation).flatMap((one) => changedSentences(text, one));
}

// What of a draft is not kept, and why; an empty text where all is.
export function lossOf({ text, made, translation }) {
  const pairs = changedPairs(text, made, translation);
  if (pairs.some(([src, tgt]) => !src.includes("\n") && tgt.includes("\n"))) return t("A line of the text stays one line: the line break is kept as a space.");
  const sentences = made.sentences.length ? made.sentences : asLines(text, made.text);
  const isLost = made.text !== translation && changedLines({ text: made.text, sentences }, translation).some((one) => !changedSentences(text, one).length);
  return isLost || !pairs.length ? t("Not everything is kept: sentences without a translation are not, nor is what stands beside no sentence.") : "";
}

const pair = (src, tgt) => (src.trim() && tgt.trim() ? [[src.trim(), tgt.trim()]] : []);

// The lines of a text as its sentences; all of it as one where its translation has others.
function asLines(text, made) {
  const sides = [text, made].map((one) => one.split("\n"));
  if (sides[0].length !== sides[1].length) return [[0, lengthOf(text), 0, lengthOf(made)]];
  const at = [0, 0];
  return sides[0].map((line, number) => {
    const places = [line, sides[1][number]].flatMap((one, side) => [at[side], at[side] + lengthOf(one)]);
    at[0] = places[1] + 1;
    at[1] = places[3] + 1;
    return places;
  });
}

const tokens = (text) => text.split(/(\n)/).flatMap((part) => (part === "\n" ? [part] : pieces(part).map((one) => one.text)));

// The lines of a translation that a person has changed, as {made, translation, sentences}; those that were joined or
// parted as one. Places in `made` are counted from its own beginning.
function changedLines({ text, sentences }, translation) {
  const lines = [{ made: "", translation: "", from: 0 }];
  let at = 0;
  for (const { old, made, same } of stretches(tokens(text), tokens(translation))) {
    for (const token of same ? old : [old.join("")]) {
      const isEnd = same && token === "\n" && !sentences.some(([, , c, d]) => c <= at && at < d);
      at += lengthOf(token);
      if (isEnd) lines.push({ made: "", translation: "", from: at });
      else {
        lines.at(-1).made += token;
        lines.at(-1).translation += same ? token : made.join("");
      }
    }
  }
  return lines.filter((one) => one.made !== one.translation).map((one) => ({
    ...one, sentences: sentences.filter(([, , c, d]) => c >= one.from && d <= one.from + lengthOf(one.made)).map(([a, b, c, d]) => [a, b, c - one.from, d - one.from]),
  }));
}

function changedSentences(text, { made, translation, sentences: all }) {
  if (!all.length) return [];
  let first = 0, last = all.length - 1;
  while (first < last && translation.startsWith(cut(made, 0, all[first + 1][2]))) first += 1;
  const before = cut(made, 0, all[first][2]);
  const whole = () => pair(cut(text, all[0][0], all.at(-1)[1]), translation);
  if (!translation.startsWith(before)) return whole();
  const rest = translation.slice(before.length);
  while (last > first && rest.endsWith(cut(made, all[last - 1][3]))) last -= 1;
  const after = cut(made, all[last][3]);
  if (!rest.endsWith(after)) return whole();
  return pair(cut(text, all[first][0], all[last][1]), rest.slice(0, rest.length - after.length));
}

// Keeps a draft. Gives what the server keeps, newest last.
export async function keep(draft) {
  const kept = [];
  const scope = draft.scope ? { scope: draft.scope } : {};
  for (const [text, translation] of changedPairs(draft.text, draft.made, draft.translation)) {
    kept.push(await askJson("v1/corrections", { text, translation, source: draft.source, target: draft.target, ...scope }));
  }
  return kept;
}

export const undo = async (kept) => { for (const one of [...kept].reverse()) await askJson(`v1/corrections/${one.id}/undo`, {}); };

const SCOPES = { own: () => t("for my texts"), shared: () => t("for everybody") };

export function whatFor(kept) {
  const state = kept.at(-1)?.state;
  if (state === "own") return t("Kept: your texts are translated so from now on.");
  if (state === "pending") return t("Kept: your texts are translated so from now on, and everybody's after a review.");
  return t("Kept: it is translated so from now on.");
}

// The field of a draft. `isBeside`: its text is the one in the field on the left.
export function Draft({ draft, isBeside, rights, change, onKeep, cancel }) {
  const box = useRef(null);
  useEffect(() => { if (isBeside) box.current.focus(); }, []);
  const scope = draft.scope || rights.scopes[0] || "";
  const loss = lossOf(draft);
  return html`<div class="draft">
    ${!isBeside && html`<p class="soft">${t("Your translation of:")} <q ...${writing(draft.source)}>${draft.text}</q></p>`}
    <textarea id="mending" ref=${box} ...${writing(draft.target)} aria-label=${t("Your translation")} aria-describedby=${loss ? "loss" : undefined} value=${draft.translation} onInput=${(event) => change({ translation: event.target.value })}></textarea>
    <p class="soft" id="loss" role="status">${loss}</p>
    <div class="row">
      <button class="primary" onClick=${onKeep} disabled=${!changedPairs(draft.text, draft.made, draft.translation).length || draft.isSent}>${t("Keep")}</button>
      ${rights.scopes.length > 1 && html`<label class="hidden" for="scope">${t("Used")}</label>
        <select id="scope" value=${scope} onChange=${(event) => change({ scope: event.target.value })}>
          ${rights.scopes.map((one) => html`<option value=${one}>${SCOPES[one]()}</option>`)}</select>`}
      <button onClick=${cancel}>${t("Cancel")}</button>
      ${draft.error && html`<span class="error" role="alert">${draft.error}</span>`}
    </div></div>`;
}

// `memory`: corrections of texts much like one that was translated; `source` and `target` are its languages.
export function Similar({ memory, source, target }) {
  return html`<div class="alternatives"><h2>${t("Corrected before")}</h2>
    ${memory.map((one) => html`<p class="soft">${Math.round(100 * one.similarity)} %: <${Written} text=${one.source} language=${source} /> ${arrow()} <${Written} text=${one.target} language=${target} /></p>`)}
  </div>`;
}

const STATES = {
  own: () => t("for its author"), pending: () => t("waits for a review"), rejected: () => t("for its author, after a review"), shared: () => t("for everybody"),
};

function Row({ listed, rights, change }) {
  const [one, setOne] = useState(listed);
  const [error, setError] = useState("");
  const gone = !one.in_use;
  async function act(work) {
    try {
      const now = await work();
      setError("");
      setOne(now.id ? now : { ...one, in_use: false });
      change();
    } catch (problem) {
      setError(problem.message);
    }
  }
  const post = (what) => () => askJson(`v1/corrections/${one.id}/${what}`, {});
  return html`<li><small>${pairOf(one)}, ${STATES[one.state]?.() ?? one.state}</small>
    <${Written} text=${one.text} language=${one.source} class="block" /><${Written} text=${one.translation} language=${one.target} class=${`block ${gone ? "soft gone" : "soft"}`} />
    <div class="row">
      ${gone ? html`<button onClick=${() => act(post("restore"))}>${t("Use again")}</button>`
        : html`<button onClick=${() => act(() => remove(`v1/corrections/${one.id}`, {}))} aria-label=${`${t("Forget")}: ${one.text}`}>${t("Forget")}</button>`}
      ${!gone && one.state === "pending" && rights.may_review && html`
        <button onClick=${() => act(post("approve"))}>${t("Use for everybody")}</button><button onClick=${() => act(post("reject"))}>${t("Leave to its author")}</button>`}
      ${error && html`<span class="error" role="alert">${error}</span>`}
    </div></li>`;
}

// What is kept, with a search. `change` is told when what is translated how has changed.
export function CorrectionsPanel({ rights, change }) {
  const [query, setQuery] = useState("");
  const [listed, setListed] = useState({ corrections: [], total: 0 });
  const [most, setMost] = useState(LISTED);
  const [error, setError] = useState("");
  const isComposing = useComposing();

  useEffect(() => {
    if (isComposing) return undefined;
    const control = new AbortController();
    const timer = setTimeout(async () => {
      try {
        setListed(await getJson(`v1/corrections?${new URLSearchParams({ q: query, limit: most })}`, control.signal));
        setError("");
      } catch (problem) {
        if (!control.signal.aborted) setError(problem.message);
      }
    }, query ? 300 : 0);
    return () => { clearTimeout(timer); control.abort(); };
  }, [query, most, isComposing]);

  return html`<section class="panel"><h2>${t("Corrections")}</h2>
    <label class="hidden" for="search">${t("Search in corrections")}</label>
    <input id="search" type="search" dir="auto" placeholder=${t("Search")} value=${query} onInput=${(event) => setQuery(event.target.value)} />
    ${error && html`<p class="error" role="alert">${error}</p>`}
    <ul class="history corrections">${listed.corrections.map((one) => html`<${Row} key=${`${one.id} ${one.state}`} listed=${one} ...${{ rights, change }} />`)}</ul>
    <p class="soft" role="status">${listed.total ? t.n(listed.total, "{n} correction", "{n} corrections") : query ? t("None found.") : t("Nothing yet.")}</p>
    ${listed.total > listed.corrections.length && html`<button onClick=${() => setMost(most + LISTED)}>${t("More")}</button>`}
  </section>`;
}
