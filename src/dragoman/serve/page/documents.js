// Documents: handed in, watched, saved.
import { html, useState } from "./htm-preact.js";
import { nameOf } from "./languages.js";
import { ask } from "./server.js";

function Doubts({ job }) {
  const more = job.doubts - job.in_doubt.length;
  return html`<details><summary>Texts in doubt</summary><ul>
    ${job.in_doubt.map((one) => html`<li><strong>${one.where}</strong>: ${one.reasons.join("; ")}<q>${one.text}</q></li>`)}
    ${more > 0 && html`<li>... and ${more.toLocaleString()} more</li>`}</ul></details>`;
}

export function DocumentView({ languages, limits, source, target, glossary }) {
  const pairs = languages.flatMap((one) => one.targets.map((to) => [one.code, to]));
  const [pair, setPair] = useState(() => (source !== "auto" && target ? `${source}/${target}` : ""));
  const [jobs, setJobs] = useState([]);
  const [over, setOver] = useState(false);
  const [columns, setColumns] = useState("");
  const [bilingual, setBilingual] = useState(false);
  const chosen = pair || (pairs.length ? (pairs.find(([, to]) => to === target) ?? pairs[0]).join("/") : "");
  const set = (id, changes) => setJobs((now) => now.map((job) => (job.local === id ? { ...job, ...changes } : job)));

  async function send(file) {
    const local = crypto.randomUUID?.() ?? `${Date.now()}${Math.random()}`;
    const [from, to] = chosen.split("/");
    setJobs((now) => [{ local, name: file.name, state: "sending" }, ...now]);
    if (limits && file.size > limits.file_bytes) {
      set(local, { state: "error", error: `Larger than ${Math.round(limits.file_bytes / 2 ** 20)} MiB.` });
      return;
    }
    try {
      const form = new FormData();
      form.append("file", file);
      form.append("source", from);
      form.append("target", to);
      if (glossary.trim()) form.append("glossary", glossary);
      form.append("columns", columns);
      form.append("bilingual", bilingual);
      let job = await (await ask("v1/documents", { method: "POST", body: form })).json();
      const { id, key } = job;
      set(local, { ...job, name: file.name, result: job.name, address: `v1/documents/${id}/result?key=${key}` });
      while (job.state === "queued" || job.state === "translating") {
        await new Promise((done) => setTimeout(done, 500));
        job = await (await ask(`v1/documents/${id}?key=${key}`)).json();
        set(local, { ...job, name: file.name, result: job.name });
      }
    } catch (problem) {
      set(local, { state: "error", error: problem.message });
    }
  }

  async function save(job) {
    const data = await (await ask(job.address)).blob();
    const link = document.createElement("a");
    link.href = URL.createObjectURL(data);
    link.download = job.result;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  const drop = (event) => { event.preventDefault(); setOver(false); for (const file of event.dataTransfer.files) send(file); };
  return html`
    <div class="row"><label for="pair">Languages</label>
      <select id="pair" value=${chosen} onChange=${(event) => setPair(event.target.value)}>
        ${pairs.map(([from, to]) => html`<option value=${`${from}/${to}`}>${nameOf(from, languages)} → ${nameOf(to, languages)}</option>`)}
      </select>
      <label for="columns">Columns of tables (.csv, .tsv)</label>
      <input id="columns" value=${columns} onInput=${(event) => setColumns(event.target.value)} />
      <label><input id="bilingual" type="checkbox" checked=${bilingual} onChange=${(event) => setBilingual(event.target.checked)} /> Translations below their sources</label></div>
    <div class=${`drop row${over ? " over" : ""}`} onDragOver=${(event) => { event.preventDefault(); setOver(true); }} onDragLeave=${() => setOver(false)} onDrop=${drop}>
      <div><p><label for="file">Drop documents here, or choose them</label></p>
        <input id="file" type="file" multiple accept=${limits?.formats.join(",")} onChange=${(event) => { for (const file of event.target.files) send(file); event.target.value = ""; }} />
        <p class="soft">${limits?.formats.join(" ")}</p></div>
    </div>
    <ul class="jobs" aria-live="polite">${jobs.map((job) => html`<li key=${job.local}><strong>${job.name}</strong>
      ${job.state === "error" ? html`<span class="error">${job.error}</span>`
        : job.state === "done" ? html`<span class="soft">${job.texts.toLocaleString()} texts translated${job.doubts ? `, ${job.doubts.toLocaleString()} in doubt` : ""}</span><button class="primary" onClick=${() => save(job)}>Download</button>${job.doubts > 0 && html`<${Doubts} job=${job} />`}`
        : html`<progress aria-label=${`Progress of ${job.name}`} max=${job.total || 1} value=${job.done || 0}></progress><span class="soft">${job.state}${job.seconds_left ? `, about ${job.seconds_left} s left` : ""}</span>`}</li>`)}</ul>`;
}
