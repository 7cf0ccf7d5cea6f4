// Documents: handed in, watched, saved. The list is the tab's: it outlives the view and a reload, for as long as the
// server keeps the documents.
import { html, useCallback, useEffect, useRef, useState } from "./htm-preact.js";
import { announce } from "./announcer.js";
import { LanguageBar, pairOf } from "./languages.js";
import { t } from "./messages.js";
import { Written } from "./output.js";
import { together } from "./remarks.js";
import { ask, getJson, pause, remove, Retry, untilDone } from "./server.js";
import { storedInTab } from "./stored.js";

const KEPT_MS = 3_600_000;
const FIRST_LOOK = 0.5, LONGEST_LOOK = 10; // seconds between two looks at how far a document is

const isUnderWay = (job) => job.state === "queued" || job.state === "translating";
const addressOf = (job) => `v1/documents/${job.id}`;
const keyOf = (job) => ({ "X-Document-Key": job.key }); // an address with it would stand in the logs of proxies

function jobsBefore() {
  return storedInTab.read("documents", []).filter((job) => Date.now() - job.since < KEPT_MS)
    .map((job) => (job.id ? { ...job, retry: null, problem: "" } : { ...job, state: "error", error: t("Not sent: the page was closed.") }));
}

// The documents of this tab, and functions to hand one in, to give one up, and to save one.
export function useDocuments(limits, settings) {
  const [jobs, setJobs] = useState(jobsBefore);
  const controls = useRef(new Map());
  useEffect(() => { storedInTab.write("documents", jobs.map(({ retry, ...job }) => job)); }, [jobs]);
  const set = useCallback((local, changes) => setJobs((now) => now.map((job) => (job.local === local ? { ...job, ...changes } : job))), []);

  const follow = useCallback(async (local, work) => {
    const control = new AbortController();
    controls.current.set(local, control);
    const { signal } = control;
    const patient = (one) => untilDone(one, signal, (retry) => set(local, { retry }));
    try {
      const job = await work(patient, signal);
      set(local, { ...job, retry: null, since: Date.now() });
      announce(job.state === "done" ? t("{name}: translated", { name: job.name }) : `${job.name}: ${job.error}`);
    } catch (problem) {
      if (signal.aborted) return;
      const error = problem.status === 404 ? t("Not there any more: documents are kept for an hour.") : problem.message;
      set(local, { state: "error", error, retry: null });
      announce(error);
    } finally {
      controls.current.delete(local);
    }
  }, []);

  // Look again and again until a document is done, the longer it takes the more seldom.
  async function watched(job, patient, signal) {
    let seconds = FIRST_LOOK;
    while (isUnderWay(job)) {
      await pause(seconds, signal);
      const { name: result, ...now } = await patient(() => getJson(addressOf(job), signal, keyOf(job)));
      job = { ...job, ...now, result };
      set(job.local, { ...job, retry: null });
      seconds = Math.min(LONGEST_LOOK, Math.max(1.5 * seconds, (now.seconds_left ?? 0) / 4));
    }
    return job;
  }

  useEffect(() => {
    for (const job of jobs) if (isUnderWay(job)) follow(job.local, (patient, signal) => watched(job, patient, signal));
    return () => controls.current.forEach((control) => control.abort());
  }, []);

  function send(file) {
    const local = crypto.randomUUID?.() ?? `${Date.now()}${Math.random()}`;
    const job = { local, name: file.name, state: "sending", since: Date.now() };
    const refuse = (error) => { setJobs((now) => [{ ...job, state: "error", error }, ...now]); announce(error); };
    if (limits && file.size > limits.file_bytes) {
      refuse(t("Larger than {n} MiB.", { n: Math.round(limits.file_bytes / 2 ** 20) }));
      return;
    }
    setJobs((now) => [job, ...now]);
    const form = new FormData();
    form.append("file", file);
    for (const [name, value] of Object.entries(settings)) if (value !== "") form.append(name, value);
    follow(local, async (patient, signal) => {
      const answer = await patient(async () => (await ask("v1/documents", { method: "POST", body: form, signal })).json());
      const { name: result, ...handed } = answer;
      const taken = { ...job, ...handed, result };
      set(local, { ...taken, retry: null });
      return watched(taken, patient, signal);
    });
  }

  // Give a document up, or take it off the list; the server deletes it.
  function drop(job) {
    controls.current.get(job.local)?.abort();
    controls.current.delete(job.local);
    setJobs((now) => now.filter((one) => one.local !== job.local));
    if (job.id) remove(addressOf(job), { key: job.key }).catch(() => { /* it goes by itself within the hour */ });
    announce(t("{name}: removed", { name: job.name }));
  }

  async function save(job) {
    try {
      const data = await (await ask(`${addressOf(job)}/result`, { headers: keyOf(job) })).blob();
      const link = document.createElement("a");
      link.href = URL.createObjectURL(data);
      link.download = job.result;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
      set(job.local, { problem: "" });
    } catch (problem) {
      set(job.local, { problem: problem.status === 404 ? t("Not there any more: documents are kept for an hour.") : problem.message });
    }
  }
  return { jobs, send, drop, save };
}

// The files of something dropped; a text is a document, too. Folders are left out.
export function filesOf({ items, files }, textOf) {
  const isFolder = [...items].filter((one) => one.kind === "file").map((one) => one.webkitGetAsEntry?.()?.isDirectory);
  const real = [...files].filter((_, place) => !isFolder[place]);
  const text = files.length ? "" : textOf("text/plain");
  return text.trim() ? [textFile(text)] : real;
}

export const textFile = (text) => new File([text], `${t("text")}.txt`, { type: "text/plain" });

function Doubts({ job }) {
  const more = job.doubts - job.in_doubt.length;
  return html`<details><summary>${t("Texts in doubt")}</summary><ul>
    ${job.in_doubt.map((one) => html`<li><strong>${one.where.replace(/^line (\d+)/, (_, line) => t("Line {line}", { line: Number(line) }))}</strong>: ${together(one.warnings).join("; ")}<q class="block"><${Written} text=${one.text} language=${job.source} class="block" /></q></li>`)}
    ${more > 0 && html`<li>${t("… and {n} more", { n: more })}</li>`}</ul></details>`;
}

const STATES = { sending: () => t("being sent"), queued: () => t("waiting for its turn"), translating: () => t("being translated") };

function Job({ job, drop, save }) {
  const from = job.source && job.source !== "auto" ? pairOf(job) : "";
  const done = () => html`<span class="soft">${t.n(job.texts, "{n} text translated", "{n} texts translated")}${job.doubts ? `, ${t.n(job.doubts, "{n} in doubt", "{n} in doubt")}` : ""}</span>
    <button class="primary" onClick=${() => save(job)}>${t("Download")}</button>`;
  const running = () => html`<progress aria-label=${t("Progress of {name}", { name: job.name })} max=${job.total || 1} value=${job.done || 0}></progress>
    <span class="soft">${STATES[job.state]?.() ?? job.state}${job.seconds_left ? `, ${t.n(job.seconds_left, "about {n} s left", "about {n} s left")}` : ""}</span>`;
  const isOver = job.state === "done" || job.state === "error";
  return html`<li><strong><bdi>${job.name}</bdi></strong>${from && html`<span class="soft">${from}</span>`}
    ${job.state === "error" ? html`<span class="error">${job.error}</span>` : job.state === "done" ? done() : running()}
    <button onClick=${() => drop(job)} aria-label=${`${isOver ? t("Remove") : t("Cancel")}: ${job.name}`}>${isOver ? t("Remove") : t("Cancel")}</button>
    ${job.retry && html`<${Retry} retry=${job.retry} />`}
    ${job.problem && html`<span class="error" role="alert">${job.problem}</span>`}
    ${job.state === "done" && job.doubts > 0 && html`<${Doubts} job=${job} />`}</li>`;
}

export function DocumentView({ bar, limits, documents, options, setOptions }) {
  const [over, setOver] = useState(false);
  const { columns, bilingual } = options;

  function onDrop(event) {
    event.preventDefault();
    event.stopPropagation();
    setOver(false);
    filesOf(event.dataTransfer, (kind) => event.dataTransfer.getData(kind)).forEach(documents.send);
  }

  return html`
    <${LanguageBar} ...${bar} />
    <div class="row">
      <label for="columns">${t("Columns of tables (.csv, .tsv)")}</label>
      <input id="columns" value=${columns} onInput=${(event) => setOptions({ ...options, columns: event.target.value })} />
      <label><input id="bilingual" type="checkbox" checked=${bilingual} onChange=${(event) => setOptions({ ...options, bilingual: event.target.checked })} /> ${t("Translations below their sources")}</label></div>
    <div class=${`drop row${over ? " over" : ""}`} onDragOver=${(event) => { event.preventDefault(); setOver(true); }} onDragLeave=${() => setOver(false)} onDrop=${onDrop}>
      <div><p><label for="file">${t("Drop documents here, or choose them")}</label></p>
        <input id="file" type="file" multiple accept=${limits?.formats.join(",")} onChange=${(event) => { for (const file of event.target.files) documents.send(file); event.target.value = ""; }} />
        <p class="soft" dir="ltr" translate=${false}>${limits?.formats.join(" ")}</p></div>
    </div>
    <ul class="jobs" aria-label=${t("Documents")}>${documents.jobs.map((job) => html`<${Job} key=${job.local} ...${{ job, drop: documents.drop, save: documents.save }} />`)}</ul>`;
}
