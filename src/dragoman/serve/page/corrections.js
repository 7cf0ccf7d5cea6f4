// Translations as a person wants them: the draft of one, bound to the text that it was begun for, and those that are kept.
import { html, useEffect, useRef, useState } from "./htm-preact.js";
import { chars, cut } from "./characters.js";
import { t } from "./messages.js";
import { askJson, getJson, remove } from "./server.js";

const LISTED = 20;

// What a client may do about corrections (`/v1/limits`).
export const rightsOf = (limits) => limits?.corrections ?? { may_correct: false, may_review: false, scopes: [] };

// The pieces of a text whose translation was changed, each as small as can be told, so that they are found again inside
// of other texts: sentences or runs of them, line by line. `made`: {text, sentences} as the server gave them. Of a
// translation that was not changed, all.
export function changedPairs(text, made, translation) {
  const sides = [text, made.text, translation].map((one) => one.split("\n"));
  if (sides[0].length === 1 || new Set(sides.map((lines) => lines.length)).size > 1) return changedSentences(text, made, translation);
  const pairs = [];
  let srcAt = 0, tgtAt = 0;
  sides[0].forEach((line, number) => {
    const size = chars(line).length, made_line = sides[1][number], madeSize = chars(made_line).length;
    const sentences = made.sentences.filter(([a, b]) => a >= srcAt && b <= srcAt + size)
      .map(([a, b, c, d]) => [a - srcAt, b - srcAt, c - tgtAt, d - tgtAt]);
    if (made.text === translation || made_line !== sides[2][number]) pairs.push(...changedSentences(line, { text: made_line, sentences }, sides[2][number]));
    srcAt += size + 1;
    tgtAt += madeSize + 1;
  });
  return pairs;
}

function changedSentences(text, made, translation) {
  const all = made.sentences;
  const pair = (src, tgt) => (src.trim() && tgt.trim() ? [[src.trim(), tgt.trim()]] : []);
  if (!all.length) return pair(text, translation);
  if (made.text === translation) return all.flatMap(([a, b, c, d]) => pair(cut(text, a, b), cut(made.text, c, d)));
  let first = 0, last = all.length - 1;
  while (first < last && translation.startsWith(cut(made.text, 0, all[first + 1][2]))) first += 1;
  const before = cut(made.text, 0, all[first][2]);
  if (!translation.startsWith(before)) return pair(text, translation);
  const rest = translation.slice(before.length);
  while (last > first && rest.endsWith(cut(made.text, all[last - 1][3]))) last -= 1;
  const after = cut(made.text, all[last][3]);
  if (!rest.endsWith(after)) return pair(text, translation);
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
  return html`<div class="draft">
    ${!isBeside && html`<p class="soft">${t("Your translation of:")} <q dir="auto" lang=${draft.source}>${draft.text}</q></p>`}
    <textarea id="mending" ref=${box} dir="auto" lang=${draft.target} aria-label=${t("Your translation")} value=${draft.translation} onInput=${(event) => change({ translation: event.target.value })}></textarea>
    <div class="row">
      <button class="primary" onClick=${onKeep} disabled=${!draft.translation.trim() || draft.isSent}>${t("Keep")}</button>
      ${rights.scopes.length > 1 && html`<label class="hidden" for="scope">${t("Used")}</label>
        <select id="scope" value=${scope} onChange=${(event) => change({ scope: event.target.value })}>
          ${rights.scopes.map((one) => html`<option value=${one}>${SCOPES[one]()}</option>`)}</select>`}
      <button onClick=${cancel}>${t("Cancel")}</button>
      ${draft.error && html`<span class="error" role="alert">${draft.error}</span>`}
    </div></div>`;
}

export function Similar({ memory }) {
  return html`<div class="alternatives"><h2>${t("Corrected before")}</h2>
    ${memory.map((one) => html`<p class="soft">${Math.round(100 * one.similarity)} %: <span dir="auto">${one.source}</span> → <span dir="auto">${one.target}</span></p>`)}
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
  return html`<li><small>${one.source} → ${one.target}, ${STATES[one.state]?.() ?? one.state}</small>
    <span dir="auto" lang=${one.source}>${one.text}</span><br /><span class=${gone ? "soft gone" : "soft"} dir="auto" lang=${one.target}>${one.translation}</span>
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

  useEffect(() => {
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
  }, [query, most]);

  return html`<section class="panel"><h2>${t("Corrections")}</h2>
    <label class="hidden" for="search">${t("Search in corrections")}</label>
    <input id="search" type="search" dir="auto" placeholder=${t("Search")} value=${query} onInput=${(event) => setQuery(event.target.value)} />
    ${error && html`<p class="error" role="alert">${error}</p>`}
    <ul class="history corrections">${listed.corrections.map((one) => html`<${Row} key=${`${one.id} ${one.state}`} listed=${one} ...${{ rights, change }} />`)}</ul>
    <p class="soft" role="status">${listed.total ? t.n(listed.total, "{n} correction", "{n} corrections") : query ? t("None found.") : t("Nothing yet.")}</p>
    ${listed.total > listed.corrections.length && html`<button onClick=${() => setMost(most + LISTED)}>${t("More")}</button>`}
  </section>`;
}
