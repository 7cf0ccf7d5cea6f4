// What was translated before, in this browser alone. All its tabs share one history.
import { html } from "./htm-preact.js";
import { pairOf } from "./languages.js";
import { t } from "./messages.js";
import { Written } from "./output.js";
import { useStored } from "./stored.js";

const LENGTH = 50;

// The entries; a function that puts one in, in the place of the beginnings of its text, typed before; one that clears.
export function useHistory() {
  const [past, setPast] = useStored("history", []);
  const add = (entry) => setPast((before) => [entry, ...before.filter((one) => !entry.text.startsWith(one.text))].slice(0, LENGTH));
  return [past, add, () => setPast([])];
}

export function History({ past, take, clear }) {
  return html`<section class="panel"><h2>${t("History, in this browser alone")}</h2>
    <ul class="history">${past.map((one) => html`<li><button onClick=${() => take(one)}>
      <small>${pairOf(one)}</small><${Written} text=${one.text} language=${one.source} class="block" /><${Written} text=${one.translation} language=${one.target} class="block soft" /></button></li>`)}</ul>
    ${past.length ? html`<div class="row"><button onClick=${clear}>${t("Delete all")}</button></div>` : html`<p class="soft">${t("Nothing yet.")}</p>`}</section>`;
}
