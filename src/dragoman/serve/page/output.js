// The translation as words: linked, underlined where doubtful, each a button.
import { html, useMemo, useRef, useState } from "./htm-preact.js";
import { chars, lengthOf, pieces } from "./characters.js";
import { RTL } from "./languages.js";

export const DOUBTS = [0.3, 0.5];

export function Marked({ text, places }) {
  if (!places.length) return text;
  const letters = chars(text);
  const parts = [];
  let at = 0;
  for (const [from, to] of [...places].sort((a, b) => a[0] - b[0])) {
    if (from < at) continue;
    parts.push(letters.slice(at, from).join(""), html`<mark>${letters.slice(from, to).join("")}</mark>`);
    at = to;
  }
  parts.push(letters.slice(at).join(""));
  return parts;
}

export function Output({ found, waiting, target, linked, link, unlink, choose }) {
  const all = useMemo(() => pieces(found.text), [found.text]);
  const [active, setActive] = useState(0);
  const box = useRef(null);
  const numbers = all.flatMap((piece, number) => (piece.word ? [number] : []));
  const first = numbers.includes(active) ? active : numbers[0];

  function onKeyDown(event, number) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) {
      const next = numbers[numbers.indexOf(number) + (RTL.has(target) ? -step : step)];
      if (next !== undefined) {
        setActive(next);
        box.current.querySelector(`[data-number="${next}"]`).focus();
      }
      event.preventDefault();
    } else if (event.key === "Enter" || event.key === " ") {
      open(event.currentTarget, all[number]);
      event.preventDefault();
    }
  }

  function open(element, piece) {
    const place = { left: element.offsetLeft, top: element.offsetTop + element.offsetHeight + 4 };
    choose(place, piece.from, piece.from + lengthOf(piece.text));
  }

  return html`<div class=${`output${waiting ? " waiting" : ""}`} ref=${box} id="output" role="group" aria-label="Translation" lang=${target} dir="auto" aria-busy=${waiting} onMouseLeave=${unlink}>
    ${all.map((piece, number) => {
      if (!piece.word) return piece.text;
      const to = piece.from + lengthOf(piece.text);
      const isLinked = linked.target.some(([a, b]) => a < to && piece.from < b);
      const values = found.confidence.filter(([a, b]) => a < to && piece.from < b).map(([, , value]) => value);
      const doubt = values.length ? DOUBTS.findIndex((bound) => Math.min(...values) < bound) : -1;
      const sure = doubt < 0 ? "" : ` doubt-${doubt}`;
      return html`<span key=${number} class=${`word${isLinked ? " linked" : ""}${sure}`} title=${values.length ? `confidence ${Math.round(100 * Math.min(...values))} %` : undefined} role="button" data-number=${number} aria-haspopup="true" tabindex=${number === first ? 0 : -1}
        onMouseEnter=${() => link(piece.from, to, "target")} onFocus=${() => { setActive(number); link(piece.from, to, "target"); }}
        onClick=${(event) => open(event.currentTarget, piece)} onKeyDown=${(event) => onKeyDown(event, number)}>${piece.text}</span>`;
    })}
  </div>`;
}
