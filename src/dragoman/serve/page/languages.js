// Languages as the server lists them, and the bar they are chosen in.
import { html } from "./htm-preact.js";
import { t } from "./messages.js";

export const AUTO = "auto";
const CHOICES = 6; // languages that are offered in the place of another

let served = []; // {code, name, tag, script, direction, targets}, as the server lists them
export const serve = (languages) => { served = languages; };
const known = (code) => served.find((one) => one.code === code);

export const nameOf = (code) => known(code)?.name ?? code;

// The attributes of an element with a text in a language; where that is not known the text's first letter says how.
export function writing(code) {
  const { tag, script, direction = "auto" } = known(code) ?? {};
  return { "lang": tag, "dir": direction, "data-script": script };
}

// From one to another as the page is read.
export const arrow = () => (document.documentElement.dir === "rtl" ? "←" : "→");
export const pairOf = ({ source, target }) => `${nameOf(source)} ${arrow()} ${nameOf(target)}`;

// `real`: the source language, where it is known. Says why languages cannot be swapped, or "".
function whyNoSwap(languages, real, target) {
  if (!real) return t("The language of the text is not known yet.");
  if (real === target) return t("Both languages are the same.");
  if (languages.some((one) => one.code === target && one.targets.includes(real))) return "";
  return t("{language} is not translated to {other} here.", { language: nameOf(target), other: nameOf(real) });
}

export function LanguageBar({ languages, targets, source, setSource, target, setTarget, real, swap, children }) {
  const why = whyNoSwap(languages, real, target);
  return html`<div class="languages">
    <div>
      <label class="hidden" for="source">${t("From")}</label>
      <select id="source" value=${source} onChange=${(event) => setSource(event.target.value)}>
        <option value=${AUTO}>${t("Detect language")}</option>
        ${languages.filter((one) => one.targets.length).map((one) => html`<option value=${one.code}>${nameOf(one.code)}</option>`)}
      </select>
      ${children}
    </div>
    <button onClick=${() => !why && swap()} aria-disabled=${Boolean(why)} aria-label=${t("Swap languages")} aria-describedby=${why ? "no-swap" : undefined} title=${why || undefined}>⇄</button>
    ${why && html`<span class="hidden" id="no-swap">${why}</span>`}
    <div>
      <label class="hidden" for="target">${t("To")}</label>
      <select id="target" value=${target} onChange=${(event) => setTarget(event.target.value)}>
        ${targets.map((code) => html`<option value=${code}>${nameOf(code)}</option>`)}
      </select>
    </div>
  </div>`;
}

// A text in a language that is not translated here: which one, what can be done, and that the guess may be wrong.
export function NotServed({ detected, languages, setSource }) {
  const sources = languages.filter((one) => one.targets.length);
  const values = { language: detected.name };
  return html`<div class="notes" role="alert"><p class="error">${detected.confidence < 0.5 ? t("This is perhaps {language}, which is not translated here.", values) : t("This is {language}, which is not translated here.", values)}</p>
    <div class="row"><span>${t("If it is another language, choose it:")}</span>
    ${sources.slice(0, CHOICES).map((one) => html`<button onClick=${() => setSource(one.code)}>${one.name}</button>`)}
    ${sources.length > CHOICES && html`<button onClick=${() => document.getElementById("source").focus()}>…</button>`}</div></div>`;
}
