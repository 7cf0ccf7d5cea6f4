// What there is to say about a translation: in plain words, each once, folded where there is much of it.
import { html } from "./htm-preact.js";
import { t } from "./messages.js";
import { words } from "./words.js";

const DOUBTS = [0.3, 0.5];
const SHOWN = 2; // remarks that stand there unfolded
const DETAILS = 4; // details of a remark
const FROM_RIGHT = /[\u0590-\u08ff]/; // any letter of Hebrew, Arabic, Syriac, Thaana, N'Ko

const overlap = ([a, b], [c, d]) => a < d && c < b;

// The pieces of the translation that a person has written: nothing is remarked about them.
const correctedPlaces = (found) => {
  const sources = found.notes.filter((one) => one.kind === "from-memory").map((one) => one.place ?? [0, Infinity]);
  return found.sentences.filter(([from, to]) => sources.some((one) => overlap(one, [from, to]))).map(([, , from, to]) => [from, to]);
};
export const isCorrected = (found) => found.sentences.length > 0 && correctedPlaces(found).length === found.sentences.length;

const doubtsOf = (found) => {
  const corrected = correctedPlaces(found);
  return found.confidence.filter(([from, to, value]) => value < DOUBTS.at(-1) && !corrected.some((one) => overlap(one, [from, to])));
};

// How doubtful a word is (the place of the first bound that it is under; -1: not), and the confidence in it.
export function doubtOf(found, from, to) {
  const values = found.confidence.filter((one) => overlap(one, [from, to])).map(([, , value]) => value);
  if (!values.length || correctedPlaces(found).some((one) => overlap(one, [from, to]))) return { doubt: -1, value: null };
  const value = Math.min(...values);
  return { doubt: DOUBTS.findIndex((bound) => value < bound), value };
}

// A piece of a text inside of a sentence that may be written in the other direction (first strong isolate).
const apart = (text) => (document.documentElement.dir === "rtl" || FROM_RIGHT.test(text) ? `\u2068${text}\u2069` : text);

// Remarks of one kind as one, with the details of all of them.
export function together(remarks) {
  const kinds = Map.groupBy ? Map.groupBy(remarks, (one) => one.kind) : remarks.reduce((map, one) => map.set(one.kind, [...(map.get(one.kind) ?? []), one]), new Map());
  return [...kinds].map(([kind, all]) => {
    const details = [...new Set(all.map((one) => one.detail).filter(Boolean))];
    const what = details.slice(0, DETAILS).map(apart).join("; ") + (details.length > DETAILS ? " …" : "");
    return kind in words.remarks ? t.known(words.remarks[kind], { what }) : all[0].text;
  });
}

export function Remarks({ found }) {
  const doubts = doubtsOf(found);
  const lines = [
    ...together(found.warnings).map((text) => html`<li class="warning">⚠ ${text}</li>`),
    ...(doubts.length ? [html`<li class="soft"><span class="doubt-0">${t("doubtful")}</span>: ${t("fewer than 3 of 10 such words stand in a human's translation")}; <span class="doubt-1">${t("uncertain")}</span>: ${t("fewer than 5 of 10 such words stand in a human's translation")}</li>`] : []),
    ...together(found.notes).map((text) => html`<li class="soft">${text}</li>`),
  ];
  if (lines.length <= SHOWN) return html`<ul class="notes remarks">${lines}</ul>`;
  return html`<details class="notes remarks"><summary>${t.n(lines.length, "{n} remark", "{n} remarks")}</summary><ul>${lines}</ul></details>`;
}
