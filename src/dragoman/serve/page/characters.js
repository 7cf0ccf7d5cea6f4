// Places in texts are counted in characters as Python counts them, not in UTF-16 units.
export const chars = (text) => Array.from(text);
export const lengthOf = (text) => chars(text).length;
export const cut = (text, from, to) => chars(text).slice(from, to).join("");

const WORD = /[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0eff]|[\p{L}\p{M}\p{N}]+(?:['’-][\p{L}\p{M}\p{N}]+)*/gu;

// A text as words and what stands between them, each with its place.
export function pieces(text) {
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
