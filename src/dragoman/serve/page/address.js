// Languages and text in the fragment of the address. Safari allows 100 changes in 30 s and throws at more: they are made
// seldom, and nothing depends on them.
import { useEffect, useRef } from "./htm-preact.js";

const PAUSE_MS = 500;

export function fromAddress() {
  const parts = location.hash.slice(1).split("/");
  const rest = parts.slice(2).join("/");
  let text = rest;
  try { text = decodeURIComponent(rest); } catch { /* a bare % */ }
  return { source: parts[0] || "", target: parts[1] || "", text };
}

function write(hash) {
  if (location.hash === hash) return;
  try { history.replaceState(null, "", hash); } catch { /* too often, or too long for this browser */ }
}

// Keep the address as the state is, and `follow` it where a person changes it.
export function useAddress({ source, target, text }, follow) {
  const wanted = useRef(""), timer = useRef(0), heard = useRef(follow);
  heard.current = follow;
  const flush = () => { clearTimeout(timer.current); timer.current = 0; if (wanted.current) write(wanted.current); };
  useEffect(() => {
    if (!target) return;
    wanted.current = `#${source}/${target}/${encodeURIComponent(text.toWellFormed?.() ?? text)}`;
    timer.current ||= setTimeout(flush, PAUSE_MS);
  }, [source, target, text]);
  useEffect(() => {
    const onChange = () => {
      if (location.hash === wanted.current) return;
      clearTimeout(timer.current);
      timer.current = 0;
      heard.current(fromAddress());
    };
    addEventListener("hashchange", onChange);
    addEventListener("pagehide", flush);
    return () => { removeEventListener("hashchange", onChange); removeEventListener("pagehide", flush); };
  }, []);
}
