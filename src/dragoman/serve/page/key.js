// The API key, where the server asks for one.
import { html } from "./htm-preact.js";

export function KeyPanel({ value, onChange }) {
  return html`<section class="panel"><label for="key">This server asks for an API key</label>
    <input id="key" type="password" autocomplete="off" value=${value} onChange=${(event) => onChange(event.target.value.trim())} /></section>`;
}
