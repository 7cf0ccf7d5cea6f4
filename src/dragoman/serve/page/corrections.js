// Translations as a person wants them: the field to write one in, and what was corrected before.
import { html } from "./htm-preact.js";
import { askJson } from "./server.js";

export const keepCorrection = (correction) => askJson("v1/corrections", correction);

export function Mending({ value, onInput }) {
  return html`<textarea id="mending" dir="auto" aria-label="Your translation" value=${value} onInput=${(event) => onInput(event.target.value)}></textarea>`;
}

export function Similar({ memory }) {
  return html`<div class="alternatives"><h2>Corrected before</h2>
    ${memory.map((one) => html`<p class="soft">${Math.round(100 * one.similarity)} %: ${one.source} → ${one.target}</p>`)}
  </div>`;
}
