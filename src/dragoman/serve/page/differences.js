// Where one text differs from another, word by word.
import { html } from "./htm-preact.js";
import { pieces } from "./characters.js";

const MOST_STEPS = 250_000;
const CONTEXT = 60; // characters before the first difference and after the last

// The pieces of a text, each with whether it is not in the other (longest common subsequence).
function compared(other, text) {
  const [old, made] = [other, text].map((one) => pieces(one).map((piece) => piece.text));
  let start = 0, end = 0;
  while (start < Math.min(old.length, made.length) && old[start] === made[start]) start += 1;
  while (end < Math.min(old.length, made.length) - start && old.at(-1 - end) === made.at(-1 - end)) end += 1;
  const rows = old.slice(start, old.length - end), columns = made.slice(start, made.length - end);
  const isSame = rows.length * columns.length > MOST_STEPS ? columns.map(() => false) : common(rows, columns);
  return made.map((piece, place) => ({ piece, differs: place >= start && place < made.length - end && !isSame[place - start] }));
}

function common(rows, columns) {
  const longest = Array.from({ length: rows.length + 1 }, () => new Uint16Array(columns.length + 1));
  for (let row = rows.length - 1; row >= 0; row -= 1) {
    for (let column = columns.length - 1; column >= 0; column -= 1) {
      longest[row][column] = rows[row] === columns[column] ? longest[row + 1][column + 1] + 1 : Math.max(longest[row + 1][column], longest[row][column + 1]);
    }
  }
  const isSame = columns.map(() => false);
  for (let row = 0, column = 0; row < rows.length && column < columns.length;) {
    if (rows[row] === columns[column]) { isSame[column] = true; row += 1; column += 1; }
    else if (longest[row + 1][column] >= longest[row][column + 1]) row += 1;
    else column += 1;
  }
  return isSame;
}

// A text with the words marked that differ from another's; what is far from them is left out.
export function Differences({ text, other }) {
  const all = compared(other, text);
  const first = all.findIndex((one) => one.differs), last = all.findLastIndex((one) => one.differs);
  if (first < 0) return text;
  const join = (part) => part.map((one) => one.piece).join("");
  const before = join(all.slice(0, first)), after = join(all.slice(last + 1));
  return html`${before.length > 2 * CONTEXT ? `… ${before.slice(-CONTEXT)}` : before}${
    all.slice(first, last + 1).map(({ piece, differs }) => (differs && piece.trim() ? html`<mark>${piece}</mark>` : piece))}${
    after.length > 2 * CONTEXT ? `${after.slice(0, CONTEXT)} …` : after}`;
}
