// Other words at a place of the translation.
import { html, useEffect, useRef } from "./htm-preact.js";
import { cut } from "./characters.js";

export function Choice({ choice, take, close }) {
  const box = useRef(null);
  useEffect(() => {
    const left = Math.max(4, Math.min(choice.place.left, box.current.parentElement.clientWidth - box.current.offsetWidth - 4));
    box.current.style.left = `${left}px`;
    box.current.style.top = `${choice.place.top}px`;
    box.current.querySelector("button")?.focus();
  }, [choice]);
  const prefix = choice.from - choice.sentence[2];
  return html`<div class="popover" ref=${box} role="dialog" aria-label="Other words" onKeyDown=${(event) => { if (event.key === "Escape") { close(); document.querySelector('.word[tabindex="0"]')?.focus(); } }}>
    ${choice.error && html`<p class="error">${choice.error}</p>`}
    ${!choice.error && choice.words === null && html`<p class="soft">Looking for other words …</p>`}
    ${choice.words?.length === 0 && html`<p class="soft">No other words found.</p>`}
    ${choice.words?.map((one) => {
      const rest = cut(one.text, prefix).trimStart();
      return html`<button dir="auto" onClick=${() => take(choice.sentence, one.text)}><strong>${rest.split(/\s/, 1)[0]}</strong> <small>${rest.slice(rest.split(/\s/, 1)[0].length)}</small></button>`;
    })}
    <button onClick=${close}>Close</button>
  </div>`;
}
