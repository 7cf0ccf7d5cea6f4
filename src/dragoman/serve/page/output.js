// The translation as words: linked, underlined where doubtful, each a button. An old one, or one that is not whole, is
// text alone.
import { html, useMemo, useRef, useState } from "./htm-preact.js";
import { chars, lengthOf, pieces } from "./characters.js";
import { RTL } from "./languages.js";
import { t } from "./messages.js";
import { doubtOf } from "./remarks.js";

export function Marked({ text, places, name = "" }) {
  if (!places.length) return text;
  const letters = chars(text);
  const parts = [];
  let at = 0;
  for (const [from, to] of [...places].sort((a, b) => a[0] - b[0])) {
    if (from < at) continue;
    parts.push(letters.slice(at, from).join(""), html`<mark class=${name}>${letters.slice(from, to).join("")}</mark>`);
    at = to;
  }
  parts.push(letters.slice(at).join(""));
  return parts;
}

export function focusWord() {
  document.querySelector('.word[tabindex="0"]')?.focus();
}

export function Output({ found, phase, target, linked, link, unlink, choose }) {
  const all = useMemo(() => pieces(found.text), [found.text]);
  const [active, setActive] = useState(0);
  const box = useRef(null);
  const numbers = all.flatMap((piece, number) => (piece.word ? [number] : []));
  const first = numbers.includes(active) ? active : numbers[0];

  function onKeyDown(event, number) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) {
      const next = numbers[numbers.indexOf(number) + (RTL.has(target.split(/[-_]/)[0]) ? -step : step)];
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

  function word(piece, number) {
    const to = piece.from + lengthOf(piece.text);
    const isLinked = linked.target.some(([a, b]) => a < to && piece.from < b);
    const { doubt, value } = doubtOf(found, piece.from, to);
    return html`<span key=${number} class=${`word${isLinked ? " linked" : ""}${doubt < 0 ? "" : ` doubt-${doubt}`}`} title=${value === null ? undefined : t("confidence {n} %", { n: Math.round(100 * value) })} role="button" data-number=${number} aria-haspopup="dialog" tabindex=${number === first ? 0 : -1}
      onMouseEnter=${() => link(piece.from, to, "target")} onFocus=${() => { setActive(number); link(piece.from, to, "target"); }}
      onClick=${(event) => open(event.currentTarget, number)} onKeyDown=${(event) => onKeyDown(event, number)}>${piece.text}</span>`;
  }

  const isWhole = phase === "done";
  return html`<div class=${`output${phase === "old" || phase === "waiting" ? " waiting" : ""}`} ref=${box} id="output" role="group" aria-label=${t("Translation")} lang=${target} dir="auto" aria-busy=${phase === "old" || phase === "waiting"} onMouseLeave=${unlink}>
    ${isWhole ? all.map((piece, number) => (piece.word ? word(piece, number) : piece.text)) : found.text}
  </div>`;
}
