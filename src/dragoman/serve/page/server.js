// The way to the server: requests, what is tried again and when, and events of a stream.
import { html, useEffect, useState } from "./htm-preact.js";
import { t } from "./messages.js";
import { stored } from "./stored.js";
import { words } from "./words.js";

export const ROOT = new URL("../", import.meta.url).href; // the server may stand under a path
const LONGEST_PAUSE = 60; // seconds
const SILENCE = 60; // seconds without a byte, after which a stream counts as cut
const NO_ANSWER = 0;
const PASSES = new Set([NO_ANSWER, 429, 502, 503]);

// A request that is not done.
export class Refused extends Error {
  constructor(message, { status = NO_ANSWER, retryAfter = 0, ...details } = {}) {
    super(message);
    Object.assign(this, { status, retryAfter, details });
  }

  // True if the same request may well be done a little later.
  get passes() { return PASSES.has(this.status); }
}

export const noAnswer = () => new Refused(t("The server does not answer."));
const cutOff = () => new Refused(t("The connection ended before the translation did."));

// What a status says, for those who do not read English; the server's own words are English, and say more.
const wordsOf = (status) => (t.isEnglish() || !(status in words.refusals) ? undefined : t.known(words.refusals[status]));

function secondsOf(retryAfter) {
  if (!retryAfter) return 0;
  const seconds = Number.isNaN(Number(retryAfter)) ? (Date.parse(retryAfter) - Date.now()) / 1000 : Number(retryAfter);
  return Math.max(0, Math.min(seconds || 0, 3600));
}

export async function ask(path, options = {}) {
  const key = stored.read("key", "");
  const headers = { "Accept-Language": t.locale(), ...(key ? { Authorization: `Bearer ${key}` } : {}), ...options.headers };
  let answer;
  try {
    answer = await fetch(ROOT + path, { ...options, headers });
  } catch (error) {
    throw error.name === "AbortError" ? error : noAnswer();
  }
  if (!answer.ok) {
    const { error, ...details } = await answer.json().catch(() => ({}));
    const retryAfter = secondsOf(answer.headers.get("Retry-After"));
    const isKeyWanted = answer.status === 400 && !key && /API key/.test(error ?? "");
    const words = isKeyWanted ? t("This server wants an API key: see “API key”.") : wordsOf(answer.status);
    throw new Refused(words ?? error ?? t("The server answers {status}.", { status: answer.status }), { ...details, status: answer.status, retryAfter });
  }
  return answer;
}

async function jsonOf(answer) {
  try {
    return await answer.json();
  } catch (error) {
    throw error.name === "AbortError" ? error : noAnswer();
  }
}

const sent = (method, body, signal) => ({ method, body: JSON.stringify(body), headers: { "Content-Type": "application/json" }, signal });
export const askJson = (path, body, signal) => ask(path, sent("POST", body, signal)).then(jsonOf);
export const getJson = (path, signal, headers) => ask(path, { signal, headers }).then(jsonOf);
export const remove = (path, body) => ask(path, sent("DELETE", body)).then(jsonOf);

// The events of a stream up to the one called `done`. A stream that ends before it, or is silent for long, is cut.
export async function* streamOf(path, body, signal) {
  const answer = await ask(path, sent("POST", body, signal));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { done, value } = await chunkOf(reader).catch((error) => { throw error.name === "AbortError" ? error : cutOff(); });
    if (done) throw cutOff();
    waiting += value;
    const blocks = waiting.split("\n\n");
    waiting = blocks.pop();
    for (const block of blocks) {
      const [first, ...rest] = block.split("\n");
      const name = first.slice(7), data = JSON.parse(rest.map((line) => line.slice(6)).join("\n"));
      if (name === "done") return;
      if (name === "error") throw new Refused(wordsOf(data.status) ?? data.error, data);
      yield { name, data };
    }
  }
}

function chunkOf(reader) {
  let timer;
  const silence = new Promise((_, fail) => { timer = setTimeout(() => { reader.cancel().catch(() => {}); fail(new Error("silence")); }, 1000 * SILENCE); });
  return Promise.race([reader.read(), silence]).finally(() => clearTimeout(timer));
}

// Resolves after some time, when the network is back, or when `wake` (given to `show`) is called.
export function pause(seconds, signal, show = () => {}) {
  return new Promise((resolve, reject) => {
    const end = (how, value) => () => {
      clearTimeout(timer);
      removeEventListener("online", wake);
      signal.removeEventListener("abort", abort);
      how(value);
    };
    const wake = end(resolve), abort = end(reject, new DOMException("given up", "AbortError"));
    const timer = setTimeout(wake, 1000 * seconds);
    addEventListener("online", wake);
    signal.addEventListener("abort", abort);
    if (signal.aborted) abort();
    show(wake);
  });
}

// What `work` gives. Where it is refused for the moment it is tried again, when the server says so or after longer and
// longer pauses; `onPause` is told the problem, when the next try is, and how to have it at once.
export async function untilDone(work, signal, onPause) {
  for (let tries = 0; ; tries += 1) {
    try {
      return await work();
    } catch (problem) {
      if (signal.aborted || !problem.passes) throw problem;
      const seconds = Math.ceil(problem.retryAfter || Math.min(2 ** tries, LONGEST_PAUSE));
      await pause(seconds, signal, (now) => onPause({ problem, until: Date.now() + 1000 * seconds, now }));
    }
  }
}

// A problem that passes, and the seconds until the next try. Readers of screens are told the problem alone.
export function Retry({ retry }) {
  const left = () => Math.max(0, Math.ceil((retry.until - Date.now()) / 1000));
  const [seconds, setSeconds] = useState(left);
  useEffect(() => {
    setSeconds(left());
    const timer = setInterval(() => setSeconds(left()), 500);
    return () => clearInterval(timer);
  }, [retry]);
  return html`<span class="error retry">${retry.problem.status === 429 ? t("The server is busy.") : retry.problem.message}${" "}
    <span aria-hidden="true" class="countdown">${t.n(seconds, "Trying again in {n} second.", "Trying again in {n} seconds.")}</span>${" "}
    <button onClick=${retry.now}>${t("Try now")}</button></span>`;
}
