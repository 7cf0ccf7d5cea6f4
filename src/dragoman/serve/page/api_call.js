// The translation on the page as a call of the API.
import { html } from "./htm-preact.js";
import { ROOT } from "./server.js";

function snippet(text, source, target) {
  const body = JSON.stringify({ text, source, target }).replaceAll("'", "'\\''");
  return `curl ${ROOT}v1/translate \\\n  -H 'Content-Type: application/json' \\\n  -d '${body}'`;
}

export function ApiCall({ text, source, target }) {
  return html`<section class="panel"><h2>The same from a program</h2><pre tabindex="0">${snippet(text, source, target)}</pre></section>`;
}
