// What this browser keeps between visits; where it keeps nothing (a private window), what this page keeps.
import { useCallback, useEffect, useState } from "./htm-preact.js";

const PREFIX = "dragoman.";
const unkept = new Map();

function read(storage, name, otherwise) {
  if (unkept.has(name)) return unkept.get(name);
  try { return JSON.parse(storage().getItem(PREFIX + name)) ?? otherwise; } catch { return otherwise; }
}

function write(storage, name, value) {
  try {
    storage().setItem(PREFIX + name, JSON.stringify(value));
    unkept.delete(name);
  } catch { unkept.set(name, value); }
}

const local = () => localStorage, session = () => sessionStorage;
export const stored = { read: (name, otherwise) => read(local, name, otherwise), write: (name, value) => write(local, name, value) };

// The same for this tab alone: it goes when the tab does.
export const storedInTab = { read: (name, otherwise) => read(session, name, otherwise), write: (name, value) => write(session, name, value) };

// A stored value that other tabs change, too. A change given as a function changes what is stored, not what this tab
// has read before.
export function useStored(name, otherwise) {
  const [value, setValue] = useState(() => stored.read(name, otherwise));
  useEffect(() => {
    const follow = (event) => {
      if (event.key === null || event.key === PREFIX + name) setValue(stored.read(name, otherwise));
    };
    addEventListener("storage", follow);
    return () => removeEventListener("storage", follow);
  }, [name]);
  const change = useCallback((next) => {
    const changed = typeof next === "function" ? next(stored.read(name, otherwise)) : next;
    stored.write(name, changed);
    setValue(changed);
  }, [name]);
  return [value, change];
}
