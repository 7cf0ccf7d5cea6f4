// Terms and their translations.
import { html } from "./htm-preact.js";

export const countTerms = (glossary) => glossary.split("\n").filter((line) => line.trim() && !line.startsWith("#")).length;

export function Glossary({ glossary, setGlossary }) {
  return html`<section class="panel"><h2><label for="glossary">Glossary: a term, =, its translation; one a line, or rows of a spreadsheet</label></h2>
    <textarea id="glossary" spellcheck=${false} placeholder="Bier = ale" value=${glossary} onInput=${(event) => setGlossary(event.target.value)}></textarea></section>`;
}
