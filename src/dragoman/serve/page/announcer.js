// One place from which readers of screens hear what has happened.
import { html, useEffect, useState } from "./htm-preact.js";

const listeners = new Set();
export const announce = (text) => listeners.forEach((listener) => listener(text));

export function Announcer() {
  const [text, setText] = useState("");
  useEffect(() => {
    listeners.add(setText);
    return () => listeners.delete(setText);
  }, []);
  return html`<p class="hidden" id="announcer" role="status" aria-live="polite">${text}</p>`;
}
