// A text read out by the browser, with a voice for its language.
import { html, useEffect, useState } from "./htm-preact.js";
import { t } from "./messages.js";

const speech = globalThis.speechSynthesis;
const base = (code) => code.toLowerCase().split(/[-_]/)[0];

// Browsers know their voices only after a while.
function useVoices() {
  const [voices, setVoices] = useState(() => speech?.getVoices() ?? []);
  useEffect(() => {
    const look = () => setVoices(speech.getVoices());
    speech?.addEventListener?.("voiceschanged", look);
    return () => speech?.removeEventListener?.("voiceschanged", look);
  }, []);
  return voices;
}

function voiceFor(language, voices) {
  const able = voices.filter((one) => base(one.lang) === base(language));
  const same = able.filter((one) => one.lang.toLowerCase().replace("_", "-") === language.toLowerCase());
  return same[0] ?? able.find((one) => one.default) ?? able.find((one) => one.localService) ?? able[0];
}

// Some browsers fall silent within a long text: sentences are handed over one by one.
const sentencesOf = (text, language) => Array.from(new Intl.Segmenter(language, { granularity: "sentence" }).segment(text), (one) => one.segment).filter((one) => one.trim());

export function Speak({ text, language, name, what }) {
  const [speaks, setSpeaks] = useState(false);
  const voices = useVoices();
  const voice = language ? voiceFor(language, voices) : undefined;
  const why = !language ? t("The language of the text is not known yet.") : voice ? "" : t("This browser has no voice for {language}.", { language: name });
  const id = `no-voice-${what}`;

  function stop() {
    setSpeaks(false);
    speech?.cancel();
  }
  useEffect(() => stop, [text, language]);

  function start() {
    if (speaks) { stop(); return; }
    speech.cancel();
    const utterances = sentencesOf(text, voice.lang.replace("_", "-")).map((sentence) => Object.assign(new SpeechSynthesisUtterance(sentence), { voice, lang: voice.lang }));
    if (!utterances.length) return;
    utterances.at(-1).onend = () => setSpeaks(false);
    for (const one of utterances) one.onerror = () => setSpeaks(false);
    setSpeaks(true);
    utterances.forEach((one) => speech.speak(one));
  }

  const label = what === "text" ? t("Read the text out") : t("Read the translation out");
  return html`<button class="speak" onClick=${() => !why && text.trim() && start()} aria-disabled=${Boolean(why) || !text.trim()} aria-label=${label} title=${why || label} aria-pressed=${speaks} aria-describedby=${why ? id : undefined}><svg viewBox="0 0 24 24" width="20" height="20" aria-hidden="true"><path fill="currentColor" d="M4 9v6h4l5 4V5L8 9z" /><path fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" d="M16 9a4 4 0 0 1 0 6m2.5-8.5a8 8 0 0 1 0 11" /></svg></button>
    ${why && html`<span class="hidden" id=${id}>${why}</span>`}`;
}
