// The translation as words: linked, underlined where doubtful, each a button. An old one, or one that is not whole, is
// text alone.
import { html, useMemo, useRef, useState } from "./htm-preact.js";
import { chars, grown, lengthOf, letters, pieces, stretchesOf } from "./characters.js";
import { writing } from "./languages.js";
import { t } from "./messages.js";
import { doubtOf } from "./remarks.js";

// A text with places marked: whole words, or else whole letters.
export function Marked({ text, places, words = false, name = "" }) {
  if (!places.length) return text;
  const all = chars(text), parts = [];
  let at = 0;
  for (const [from, to] of grown(places, words ? pieces(text).map((one) => one.text) : letters(text)).sort((a, b) => a[0] - b[0])) {
    const start = Math.max(from, at);
    if (start >= to) continue;
    parts.push(all.slice(at, start).join(""), html`<mark class=${name}>${all.slice(start, to).join("")}</mark>`);
    at = to;
  }
  parts.push(all.slice(at).join(""));
  return parts;
}

// A text in which codes stay readable beside letters from right to left.
export const isolated = (text, direction) => stretchesOf(text, direction).map((one) => (one.isCode ? html`<bdi dir="ltr">${one.text}</bdi>` : one.text));

// A text in a language.
export function Written({ text, language, ...attributes }) {
  const written = writing(language);
  return html`<span ...${written} ...${attributes}>${isolated(text, written.dir)}</span>`;
}

export function focusWord() {
  document.querySelector('.word[tabindex="0"]')?.focus();
}

export function Output({ found, phase, target, linked, link, unlink, choose }) {
  const written = writing(target), { dir } = written;
  const stretches = useMemo(() => {
    let number = 0;
    return stretchesOf(found.text, dir).map((one) => ({ ...one, pieces: pieces(one.text).map((piece) => ({ ...piece, from: one.from + piece.from, number: number++ })) }));
  }, [found.text, dir]);
  const all = stretches.flatMap((one) => one.pieces);
  const [active, setActive] = useState(0);
  const box = useRef(null);
  const numbers = all.flatMap((piece, number) => (piece.word ? [number] : []));
  const first = numbers.includes(active) ? active : numbers[0];

  function onKeyDown(event, number) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) {
      const next = numbers[numbers.indexOf(number) + (dir === "rtl" ? -step : step)];
      if (next !== undefined) {
        setActive(next);
        box.current.querySelector(`[data-number="${next}"]`).focus();
      }
      event.preventDefault();
    } else if (event.key === "Enter" || event.key === " ") {
      open(event.currentTarget, number);
      event.preventDefault();
    }
  }

  function open(element, number) {
    setActive(number);
    const place = { left: element.offsetLeft, top: element.offsetTop + element.offsetHeight + 4 };
    choose(place, all[number].from, all[number].from + lengthOf(all[number].text));
  }

  function word(piece) {
    const { number } = piece;
    const to = piece.from + lengthOf(piece.text);
    const isLinked = linked.target.some(([a, b]) => a < to && piece.from < b);
    const { doubt, value } = doubtOf(found, piece.from, to);
    return html`<span key=${number} class=${`word${isLinked ? " linked" : ""}${doubt < 0 ? "" : ` doubt-${doubt}`}`} title=${value === null ? undefined : t("confidence {n} %", { n: Math.round(100 * value) })} role="button" data-number=${number} aria-haspopup="dialog" tabindex=${number === first ? 0 : -1}
      onMouseEnter=${() => link(piece.from, to, "target")} onFocus=${() => { setActive(number); link(piece.from, to, "target"); }}
      onClick=${(event) => open(event.currentTarget, number)} onKeyDown=${(event) => onKeyDown(event, number)}>${piece.text}</span>`;
  }

  const shown = (stretch) => {
    const parts = stretch.pieces.map((piece) => (piece.word ? word(piece) : piece.text));
    return stretch.isCode ? html`<bdi dir="ltr">${parts}</bdi>` : parts;
  };
  const isWhole = phase === "done";
  return html`<div class=${`output${phase === "old" || phase === "waiting" ? " waiting" : ""}`} ref=${box} id="output" role="group" aria-label=${t("Translation")} ...${written} aria-busy=${phase === "old" || phase === "waiting"} onMouseLeave=${unlink}>
    ${isWhole ? stretches.map(shown) : isolated(found.text, dir)}
  </div>`;
}
