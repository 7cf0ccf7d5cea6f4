// Texts that an input method composes: until the person has chosen, what stands in the field is not yet what is meant.
// Nothing of it is sent, and the keys that choose are nobody else's.
import { useEffect, useState } from "./htm-preact.js";

const REST_MS = 2000;
const ANDROID = /Android/.test(navigator.userAgent);
const listeners = new Set();
let isComposing = false, timer = 0;

function set(now) {
  clearTimeout(timer);
  if (now === isComposing) return;
  isComposing = now;
  listeners.forEach((listener) => listener(now));
}

// Whole syllables of Korean are what they are going to be, and so are the words of Android's keyboards, which compose
// in every language: neither is ended before the next one is begun. After a rest they count as typed.
function update(event) {
  set(true);
  if (ANDROID || /^[가-힣]+$/.test(event.data)) timer = setTimeout(set, REST_MS, false);
}

addEventListener("compositionstart", () => set(true), true);
addEventListener("compositionupdate", update, true);
addEventListener("compositionend", () => set(false), true);
addEventListener("input", (event) => { if (event.isComposing === false) set(false); }, true); // its end was in a field that is gone
addEventListener("focusout", () => set(false), true);

// Safari ends the composition before the key that ended it: the key is told by its number alone.
addEventListener("keydown", (event) => { if (event.isComposing || event.keyCode === 229) event.stopImmediatePropagation(); }, true);
addEventListener("submit", (event) => {
  if (!isComposing) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}, true);

export function useComposing() {
  const [now, setNow] = useState(isComposing);
  useEffect(() => {
    listeners.add(setNow);
    return () => listeners.delete(setNow);
  }, []);
  return now;
}
