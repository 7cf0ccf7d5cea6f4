// Texts of the page in the language of the person who reads them. The English text is the key; of a text about a number
// of things the one about several. Files of messages are ICU's: `dragoman translate` makes another language of one.
import { useState } from "./htm-preact.js";
import { stored } from "./stored.js";

// The page's languages, as the server has written them: {code, name, script, direction}.
export const LOCALES = JSON.parse(document.documentElement.dataset.locales);
let locale = "en", messages = {};

// The end of what a brace opens.
function endOf(text, start) {
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    if (text[at] === "{") depth += 1;
    if (text[at] === "}" && (depth -= 1) === 0) return at;
  }
  return text.length;
}

const shown = (value) => (typeof value === "number" ? number(value) : value);

function filled(text, values) {
  let out = "";
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] !== "{") { out += text[at]; continue; }
    const end = endOf(text, at), [name, kind, ...arms] = text.slice(at + 1, end).split(",");
    if (kind?.trim() === "plural") out += filled(armOf(arms.join(","), values[name]).replaceAll("#", number(values[name])), values);
    else out += name in values ? shown(values[name]) : text.slice(at, end + 1);
    at = end;
  }
  return out;
}

// The text for a number, of `one {# word} other {# words}`.
function armOf(text, n) {
  const arms = {};
  for (let at = text.indexOf("{"), from = 0; at >= 0; at = text.indexOf("{", from)) {
    const end = endOf(text, at);
    arms[text.slice(from, at).trim()] = text.slice(at + 1, end);
    from = end + 1;
  }
  return arms[`=${n}`] ?? arms[new Intl.PluralRules(locale).select(n)] ?? arms.other;
}

export const t = (text, values = {}) => filled(messages[text] ?? text, values);

// The same for a text that does not stand in this script.
t.known = t;

// A text about a number of things.
t.n = (n, one, several, values = {}) => filled(messages[several] ?? (n === 1 ? one : several), { n, ...values });

const number = (n) => new Intl.NumberFormat(locale).format(n);
t.number = number;
t.isEnglish = () => locale === "en";
t.date = (seconds) => new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" }).format(1000 * seconds);

t.locale = () => locale;

const known = (code) => LOCALES.find((one) => one.code === code.toLowerCase().split("-")[0])?.code;

async function load(code) {
  try {
    messages = await (await fetch(new URL(`./messages/${code}.json`, import.meta.url))).json();
    locale = code;
  } catch { /* without a network: the language before */ }
  document.documentElement.lang = locale;
  const { direction, script } = LOCALES.find((one) => one.code === locale);
  document.documentElement.dir = direction;
  document.documentElement.dataset.script = script;
  if (!given) document.title = t("Dragoman: translate");
}

const given = document.documentElement.dataset.locale; // what the server has written the page in
await load(given ?? known(stored.read("locale", "")) ?? navigator.languages.map(known).find(Boolean) ?? "en");

// The language of the page, and what changes it.
export function useLocale() {
  const [now, setNow] = useState(locale);
  async function change(code) {
    stored.write("locale", code);
    await load(code);
    setNow(locale);
  }
  return [now, change];
}
