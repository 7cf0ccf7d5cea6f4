// Where one text differs from another, word by word.
import { html } from "./htm-preact.js";
import { beginning, ending, lengthOf, letters, pieces, stretchesOf } from "./characters.js";
import { t } from "./messages.js";
import { isolated } from "./output.js";

const MOST_STEPS = 250_000;
const CONTEXT = 60; // characters before the first difference and after the last

// Words of a text and what stands between them; a code is one.
const wordsOf = (text, direction) => stretchesOf(text, direction).flatMap((one) => (one.isCode ? [one.text] : pieces(one.text).map((piece) => piece.text)));

// Two lists of words in stretches {old, made, same}, which are in both or differ (longest common subsequence).
export function stretches(old, made) {
  let start = 0, end = 0;
  while (start < Math.min(old.length, made.length) && old[start] === made[start]) start += 1;
  while (end < Math.min(old.length, made.length) - start && old.at(-1 - end) === made.at(-1 - end)) end += 1;
  const rows = old.slice(start, old.length - end), columns = made.slice(start, made.length - end);
  const inside = rows.length * columns.length > MOST_STEPS ? [{ old: rows, made: columns, same: false }] : common(rows, columns);
  const ends = [old.slice(0, start), old.slice(old.length - end)].map((words) => ({ old: words, made: words, same: true }));
  return [ends[0], ...inside, ends[1]].filter((one) => one.old.length || one.made.length);
}

function common(rows, columns) {
  const longest = Array.from({ length: rows.length + 1 }, () => new Uint16Array(columns.length + 1));
  for (let row = rows.length - 1; row >= 0; row -= 1) {
    for (let column = columns.length - 1; column >= 0; column -= 1) {
      longest[row][column] = rows[row] === columns[column] ? longest[row + 1][column + 1] + 1 : Math.max(longest[row + 1][column], longest[row][column + 1]);
    }
  }
  const out = [];
  const add = (same, old, made) => {
    if (out.at(-1)?.same !== same) out.push({ old: [], made: [], same });
    out.at(-1).old.push(...old);
    out.at(-1).made.push(...made);
  };
  let row = 0, column = 0;
  while (row < rows.length && column < columns.length) {
    if (rows[row] === columns[column]) add(true, [rows[row++]], [columns[column++]]);
    else if (longest[row + 1][column] >= longest[row][column + 1]) add(false, [rows[row++]], []);
    else add(false, [], [columns[column++]]);
  }
  add(false, rows.slice(row), columns.slice(column));
  return out;
}

// Words that are missing, struck through; readers of screens are told that they are.
function Missing({ text }) {
  const words = text.trim();
  const what = lengthOf(words) > 2 * CONTEXT ? `${beginning(letters(words), CONTEXT)} …` : words;
  return html`<del aria-hidden="true">${what}</del><span class="hidden">${t("(without: {what})", { what })}</span>`;
}

const visible = (words) => words.some((word) => word.trim());

// A text with the words marked that are not in another, and those of the other struck through in the place of which it
// has none. What is far from them is left out.
export function Differences({ text, other, direction }) {
  const all = stretches(wordsOf(other, direction), wordsOf(text, direction));
  const differ = ({ same, old, made }) => !same && (visible(made) || visible(old));
  const first = all.findIndex(differ), last = all.findLastIndex(differ);
  const as = (shown) => isolated(shown, direction);
  if (first < 0) return as(text);
  const made = (part) => part.flatMap((one) => one.made);
  const [before, after] = [all.slice(0, first), all.slice(last + 1)].map(made);
  const isFar = (words) => lengthOf(words.join("")) > 2 * CONTEXT;
  const shown = (one) => {
    if (!differ(one)) return as(one.made.join(""));
    if (visible(one.made)) return one.made.map((word) => (word.trim() ? html`<mark>${as(word)}</mark>` : word));
    const lost = one.old.join("");
    return html`${lost.match(/^\s*/)[0]}<${Missing} text=${lost} />${one.made.join("") || lost.match(/\s*$/)[0]}`;
  };
  return html`${as(isFar(before) ? `… ${ending(before, CONTEXT)}` : before.join(""))}${
    all.slice(first, last + 1).map(shown)}${
    as(isFar(after) ? `${beginning(after, CONTEXT)} …` : after.join(""))}`;
}
