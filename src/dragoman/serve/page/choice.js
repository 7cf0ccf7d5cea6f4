// Other words at a place of the translation. Escape or a click outside closes the list, and the word has the focus again.
import { html, useEffect, useRef } from "./htm-preact.js";
import { cut, pieces } from "./characters.js";
import { writing } from "./languages.js";
import { t } from "./messages.js";
import { focusWord } from "./output.js";

export function Choice({ choice, target, take, close }) {
  const box = useRef(null);
  useEffect(() => {
    const left = Math.max(4, Math.min(choice.place.left, box.current.parentElement.clientWidth - box.current.offsetWidth - 4));
    box.current.style.left = `${left}px`;
    box.current.style.top = `${choice.place.top}px`;
    box.current.querySelector("button")?.focus();
  }, [choice]);
  useEffect(() => {
    function onPointerDown(event) {
      if (box.current?.contains(event.target)) return;
      close();
      setTimeout(() => { if (document.activeElement === document.body) focusWord(); });
    }
    document.addEventListener("pointerdown", onPointerDown);
    return () => document.removeEventListener("pointerdown", onPointerDown);
  }, []);

  function leave() {
    close();
    focusWord();
  }

  function onKeyDown(event) {
    if (event.key === "Escape") leave();
    const buttons = [...box.current.querySelectorAll("button")];
    const here = buttons.indexOf(document.activeElement);
    const next = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: -1 }[event.key];
    if (next === undefined) return;
    buttons.at(next % buttons.length).focus();
    event.preventDefault();
  }

  const prefix = choice.from - choice.sentence[2];
  return html`<div class="popover" ref=${box} role="dialog" aria-label=${t("Other words")} onKeyDown=${onKeyDown}>
    ${choice.error && html`<p class="error">${choice.error}</p>`}
    ${!choice.error && choice.words === null && html`<p class="soft">${t("Looking for other words …")}</p>`}
    ${choice.words?.length === 0 && html`<p class="soft">${t("No other words found.")}</p>`}
    ${choice.words?.map((one) => {
      const rest = cut(one.text, prefix).trimStart(), all = pieces(rest);
      const word = all.slice(0, all.findIndex((piece) => piece.word) + 1).map((piece) => piece.text).join("");
      return html`<button ...${writing(target)} onClick=${() => take(choice.sentence, one.text)}><strong>${word}</strong><small>${rest.slice(word.length)}</small></button>`;
    })}
    <button onClick=${leave}>${t("Close")}</button>
  </div>`;
}
