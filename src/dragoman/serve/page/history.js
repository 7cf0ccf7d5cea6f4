// What was translated before, in this browser alone.
import { html } from "./htm-preact.js";
import { stored } from "./stored.js";

const LENGTH = 50;

export const readHistory = () => stored.read("history", []);

// The history with one more entry; the beginnings of its text, typed before, go.
export function withEntry(before, entry) {
  const next = [entry, ...before.filter((one) => !entry.text.startsWith(one.text))].slice(0, LENGTH);
  stored.write("history", next);
  return next;
}

export function History({ past, take, clear }) {
  return html`<section class="panel"><h2>History, in this browser alone</h2>
    <ul class="history">${past.map((one) => html`<li><button onClick=${() => take(one)}>
      <small>${one.source} → ${one.target}</small><span dir="auto">${one.text}</span><br /><span class="soft" dir="auto">${one.translation}</span></button></li>`)}</ul>
    ${past.length ? html`<div class="row"><button onClick=${clear}>Delete all</button></div>` : html`<p class="soft">Nothing yet.</p>`}</section>`;
}
