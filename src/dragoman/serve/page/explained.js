// The page that explains a sentence: it asks the server, and `explain.js` draws the answer. The fragment holds what is
// explained: #de/en/ich möchte ein bier.
import { html, render } from "./htm-preact.js";
import { explained } from "./explain.js";
import { KeyPanel } from "./key.js";
import { t } from "./messages.js";
import { askJson } from "./server.js";
import { stored } from "./stored.js";

const byId = (id) => document.getElementById(id);
const [form, sentence, problem, place, keyPlace] = ["ask", "sentence", "problem", "explained", "key-place"].map(byId);
const pair = form.elements.pair; // none while the models are being loaded
const zh = JSON.parse(byId("zh").textContent);
let asked = 0;

const theme = stored.read("theme", "");
if (theme) document.documentElement.dataset.theme = theme;

async function explain() {
  const [source, target] = pair.value.split(" "), text = sentence.value, turn = (asked += 1);
  const button = form.querySelector("button");
  problem.hidden = true;
  button.textContent = t("Being explained …");
  try {
    const data = await askJson("v1/explain", { source, target, text });
    if (turn !== asked) return;
    place.hidden = false;
    explained(place, data, {
      zh, language: t.locale() === "zh" ? "zh" : "en",
      choose: (begin) => askJson("v1/explain/way", { source, target, text, begin }),
    });
    history.replaceState(null, "", `#${[source, target, text].map(encodeURIComponent).join("/")}`);
  } catch (error) {
    if (turn !== asked) return;
    problem.textContent = error.message;
    problem.hidden = false;
  } finally {
    if (turn === asked) button.textContent = t("Explain");
  }
}

if (keyPlace.dataset.required) {
  const show = (key) => render(html`<${KeyPanel} required=${true} value=${key} onChange=${(changed) => { stored.write("key", changed); show(changed); }} />`, keyPlace);
  show(stored.read("key", ""));
}
if (pair) {
  form.addEventListener("submit", (event) => { event.preventDefault(); explain(); });
  const [source, target, text] = location.hash.slice(1).split("/").map(decodeURIComponent);
  if (text && [...pair.options].some((one) => one.value === `${source} ${target}`)) {
    pair.value = `${source} ${target}`;
    sentence.value = text;
    explain();
  }
}
