// Places in texts are counted in characters as Python counts them, not in UTF-16 units.
export const chars = (text) => Array.from(text);
export const lengthOf = (text) => chars(text).length;
export const cut = (text, from, to) => chars(text).slice(from, to).join("");

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
