// The way to the server: requests, their errors, and events of a stream.
import { stored } from "./stored.js";

export const ROOT = new URL("../", import.meta.url).href; // the server may stand under a path

export async function ask(path, options = {}) {
  const key = stored.read("key", "");
  const headers = { ...(key ? { Authorization: `Bearer ${key}` } : {}), ...options.headers };
  let answer;
  try {
    answer = await fetch(ROOT + path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is it still running?");
  }
  if (!answer.ok) {
    const told = await answer.json().catch(() => ({}));
    throw new Error(told.error ?? `The server answers ${answer.status}.`);
  }
  return answer;
}

export const askJson = (path, body, signal) =>
  ask(path, { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" }, signal })
    .then((answer) => answer.json());

export async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    waiting += value;
    const blocks = waiting.split("\n\n");
    waiting = blocks.pop();
    for (const block of blocks) {
      const [first, ...rest] = block.split("\n");
      yield { name: first.slice(7), data: JSON.parse(rest.map((line) => line.slice(6)).join("\n")) };
    }
  }
}
