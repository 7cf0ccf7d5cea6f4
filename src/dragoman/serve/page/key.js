// The API key: checked, kept in this browser, and forgotten. The server may do without; a key can give rights and limits.
import { html, useEffect, useState } from "./htm-preact.js";
import { t } from "./messages.js";
import { ask } from "./server.js";

// What the server says of a key, in words.
function wordsOf(known) {
  const words = [t("The key “{name}” is valid.", { name: known.name })];
  if (known.per_minute) words.push(t.n(known.per_minute, "It allows {n} request a minute.", "It allows {n} requests a minute."));
  if (known.per_month) words.push(t("{left} of {total} characters are left this month.", { left: known.left, total: known.per_month }));
  return words.join(" ");
}

export function KeyPanel({ required, value, onChange }) {
  const [typed, setTyped] = useState(value);
  const [answer, setAnswer] = useState({ text: "" });

  async function check(key) {
    if (!key) { setAnswer({ text: "" }); return; }
    try {
      const known = await (await ask("v1/key", { headers: { Authorization: `Bearer ${key}` } })).json();
      setAnswer({ text: wordsOf(known) });
    } catch (problem) {
      setAnswer({ text: problem.status === 403 ? t("The server does not know this key.") : problem.message, bad: true });
    }
  }
  useEffect(() => { check(value); }, []);

  function save(event) {
    event.preventDefault();
    onChange(typed);
    check(typed);
  }

  function forget() {
    setTyped("");
    onChange("");
    setAnswer({ text: t("The key is forgotten.") });
  }

  return html`<form class="panel" id="key-panel" onSubmit=${save}>
    <label for="key">${required ? t("This server asks for an API key") : t("An API key, if you have one: it may give you rights and limits of your own")}</label>
    <div class="row"><input id="key" type="password" autocomplete="off" value=${typed} onInput=${(event) => setTyped(event.target.value.trim())} />
      <button class="primary" disabled=${!typed}>${t("Use and check")}</button>
      <button type="button" onClick=${forget} disabled=${!value}>${t("Forget")}</button></div>
    <p class=${answer.bad ? "error" : "soft"} role="status">${answer.text}</p></form>`;
}
