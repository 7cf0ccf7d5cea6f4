// Places in texts are counted in characters as Python counts them, not in UTF-16 units.
export const chars = (text) => Array.from(text);
export const lengthOf = (text) => chars(text).length;
export const cut = (text, from, to) => chars(text).slice(from, to).join("");

// A text letter by letter as it is read: each with its marks.
const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });
export const letters = (text) => Array.from(graphemes.segment(text), (one) => one.segment);

// As many whole parts of a text (letters, words) as are in so many characters, from its beginning or its end.
function within(parts, most) {
  let length = 0;
  const end = parts.findIndex((one) => (length += lengthOf(one)) > most);
  return end < 0 ? parts : parts.slice(0, end);
}
export const beginning = (parts, most) => within(parts, most).join("");
export const ending = (parts, most) => within([...parts].reverse(), most).reverse().join("");

// Places in a text, each grown to whole ones of its parts.
export function grown(places, parts) {
  const bounds = [0];
  for (const part of parts) bounds.push(bounds.at(-1) + lengthOf(part));
  return places.map(([from, to]) => [bounds.findLast((one) => one <= from), bounds.find((one) => one >= to) ?? bounds.at(-1)]);
}

// Runs of scripts without spaces, of which the browser knows the words, and words of the others.
const RUN = String.raw`[\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}\p{sc=Tibetan}\p{sc=Javanese}\p{sc=Balinese}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Han}ー]`;
const LETTERS = String.raw`(?:(?!${RUN})[\p{L}\p{M}\p{N}\u200c\u200d])+`;
const WORDS = new RegExp(String.raw`(${RUN}[\p{M}\u200c\u200d]*)+|${LETTERS}(?:['’-]${LETTERS})*`, "gu");
const segmenter = new Intl.Segmenter(undefined, { granularity: "word" });

function* words(text) {
  for (const match of text.matchAll(WORDS)) {
    if (!match[1]) yield match;
    else {
      for (const { segment, index, isWordLike } of segmenter.segment(match[0])) {
        if (isWordLike) yield { 0: segment, index: match.index + index };
      }
    }
  }
}

// What is written from left to right and has a sign at an edge (`%s`, `{name}`, `--help`, `C++`): beside letters from right
// to left the sign would go to the other side.
const LATIN = /[!-~]*[A-Za-z][!-~]*(?: [!-~]+)*(?![\p{L}\p{M}\p{N}])/gu;
const count = (text, one) => text.split(one).length;

function bare(run) {
  let text = run.replace(/^["',;:!?]+|["',;:!?.]+$/g, "");
  for (const [open, close] of ["()", "[]", "{}", "<>"]) {
    if (text.startsWith(open) && count(text, open) > count(text, close)) text = text.slice(1);
    if (text.endsWith(close) && count(text, close) > count(text, open)) text = text.slice(0, -1);
  }
  return text === run ? text : bare(text);
}

// A text from right to left in stretches {text, from, isCode}; one in another direction as one.
export function stretchesOf(text, direction) {
  const out = [];
  let done = 0;
  const add = (end, isCode) => {
    if (end > done) out.push({ text: text.slice(done, end), from: lengthOf(text.slice(0, done)), isCode });
    done = end;
  };
  for (const match of direction === "rtl" ? text.matchAll(LATIN) : []) {
    const code = bare(match[0]), start = match.index + match[0].indexOf(code);
    const isInWord = /^[A-Za-z0-9]/.test(code) && /[\p{L}\p{M}\p{N}]$/u.test(text.slice(0, start));
    if (isInWord || !/^[^A-Za-z0-9]|[^A-Za-z0-9]$/.test(code)) continue;
    add(start, false);
    add(start + code.length, true);
  }
  add(text.length, false);
  return out;
}

// A text as words and what stands between them, each with its place.
export function pieces(text) {
  const out = [];
  let done = 0, place = 0;
  for (const match of words(text)) {
    const gap = text.slice(done, match.index);
    if (gap) { out.push({ text: gap, from: place, word: false }); place += lengthOf(gap); }
    out.push({ text: match[0], from: place, word: true });
    place += lengthOf(match[0]);
    done = match.index + match[0].length;
  }
  if (done < text.length) out.push({ text: text.slice(done), from: place, word: false });
  return out;
}
