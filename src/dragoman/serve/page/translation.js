// The translation of what stands in the field, and whether it is that: never an old one as if it were of the new text.
import { useCallback, useEffect, useRef, useState } from "./htm-preact.js";
import { lengthOf } from "./characters.js";
import { useComposing } from "./composition.js";
import { streamOf, untilDone } from "./server.js";

const PAUSE_MS = 400;
const ALTERNATIVES = 3;
export const EMPTY = { text: "", sentences: [], alternatives: [], alignments: [], confidence: [], warnings: [], notes: [], memory: [], source: "", detected: null };

// What was made of the parts of a text until now, and one more. A remark about a whole part is about its place.
function joined(whole, part) {
  const span = part.sentences.length ? [part.sentences[0][0], part.sentences.at(-1)[1]] : undefined;
  const notes = part.notes.map((one) => ({ place: span, ...one }));
  return {
    ...whole, ...part, text: whole.text + part.text, sentences: [...whole.sentences, ...part.sentences],
    alternatives: whole.text ? [] : part.alternatives, notes: [...whole.notes, ...notes],
  };
}

async function translated({ text, source, target, glossary }, signal, onPart) {
  const body = { text, source, target, alternatives: ALTERNATIVES, ...(glossary.trim() ? { glossary } : {}) };
  let whole = EMPTY;
  for await (const { name, data } of streamOf("v1/translate/stream", body, signal)) {
    if (name === "part") onPart(whole = joined(whole, data));
    else if (name === "details") whole = { ...whole, ...data, text: whole.text, sentences: whole.sentences, alternatives: whole.alternatives, notes: whole.notes };
  }
  return { ...EMPTY, ...whole };
}

// `wanted`: {text, source, target, glossary}. Gives {found, phase, problem, retry}, a function that translates at once,
// and one that puts another translation of the same text in the place. Phases:
//   none     nothing to translate, or too much
//   old      the text has changed; `found` is what stood beside the one before
//   waiting  the parts that have come stand in `found`
//   done     `found` is the translation of the text
//   failed   there is none, and `problem` says why
export function useTranslation(wanted, limit, onDone) {
  const key = JSON.stringify(wanted);
  const [state, setState] = useState({ key: "", phase: "none", found: EMPTY, problem: null, retry: null });
  const control = useRef(null), timer = useRef(0), heard = useRef(onDone), begun = useRef("");
  heard.current = onDone;
  const isComposing = useComposing();
  const isNothing = !wanted.text.trim() || !wanted.target || lengthOf(wanted.text) > limit;

  const translateNow = useCallback(async () => {
    begun.current = isNothing + key;
    clearTimeout(timer.current);
    control.current?.abort();
    if (isNothing) {
      setState({ key, phase: "none", found: EMPTY, problem: null, retry: null });
      return;
    }
    const { signal } = (control.current = new AbortController());
    const show = (changes) => { if (!signal.aborted) setState((now) => ({ key, phase: "waiting", found: now.found, problem: null, retry: null, ...changes })); };
    show({});
    try {
      const found = await untilDone(
        () => { show({}); return translated(wanted, signal, (part) => show({ found: part })); },
        signal, (retry) => show({ found: EMPTY, retry }));
      show({ phase: "done", found });
      if (!signal.aborted) heard.current(found);
    } catch (problem) {
      show({ phase: "failed", found: EMPTY, problem });
    }
  }, [key, isNothing]);

  useEffect(() => {
    if (begun.current === isNothing + key) return;
    control.current?.abort();
    begun.current = "";
  }, [translateNow]);
  useEffect(() => {
    if (isComposing || begun.current === isNothing + key) return undefined;
    timer.current = setTimeout(translateNow, isNothing ? 0 : PAUSE_MS);
    return () => clearTimeout(timer.current);
  }, [translateNow, isComposing]);
  useEffect(() => () => control.current?.abort(), []);

  const isOfThis = state.key === key;
  const now = isOfThis ? state
    : isNothing ? { ...state, phase: "none", found: EMPTY, problem: null, retry: null }
      : { ...state, phase: "old", problem: null, retry: null };
  const replace = (found) => setState((before) => (before.key === key ? { ...before, found } : before));
  return { ...now, translateNow, replace };
}
