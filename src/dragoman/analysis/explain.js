// The page that explains one sentence. `explained` draws all of it into an element; a server gives `choose`, which
// computes the way that goes on from a choice of the reader's, and without a server those are there that the page holds.
let place, D, zh, choose, state, listening = false;
let language = navigator.language?.startsWith("zh") ? "zh" : "en";
const seen = new WeakMap();
const SECONDS_PER_PART = 1;

export function explained(element, data, given = {}) {
  stop();
  place = element; D = data; zh = given.zh ?? {}; choose = given.choose;
  language = given.language ?? language;
  const names = Object.keys(kinds(D.ways[0]));
  const kind = names.includes("decoder.cross") ? "decoder.cross" : names[0];
  const head = kind && kinds(D.ways[0])[kind].scores.shape[1] === 1 ? 0 : -1; // -1: the mean of all
  state = { way: 0, step: 0, part: 0, layer: -1, head, kind, kindLayer: 0, kindHead: head, cell: null, timer: 0 };
  if (!listening) document.addEventListener("keydown", onKey);
  listening = true;
  draw();
}

// --- words, elements, numbers -------------------------------------------------------------------------------------

const t = (text, values = {}) => (language === "zh" ? zh[text] ?? text : text).replace(/\{(\w+)\}/g, (all, name) => values[name] ?? all);
const $ = (id) => document.getElementById(id);

function el(tag, options, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(options ?? {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "style") made.style.cssText = value; // an attribute would need a wider security policy
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false) made.setAttribute(name, value);
  }
  made.append(...children.flat().map((child) => (child instanceof Node ? child : String(child))));
  return made;
}

function svg(tag, options, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(options ?? {})) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Something that is computed once for an object.
function once(object, name, compute) {
  const known = seen.get(object) ?? {};
  seen.set(object, known);
  return (known[name] ??= compute());
}

const floats = (array) => once(array, "floats", () => new Float32Array(Uint8Array.from(atob(array.data), (one) => one.charCodeAt(0)).buffer));
const count = (number) => number.toLocaleString(language);
const percent = (p) => `${(100 * p).toFixed(p < 0.001 ? 3 : 1)} %`;
const fixed = (number, digits = 4) => number.toFixed(digits).replace(/^-(?=[0.]*$)/, "").replace("-", "−");
const heat = (value) => `background: color-mix(in srgb, var(--heat) ${(100 * Math.max(0, Math.min(1, value))).toFixed(1)}%, var(--paper))`;
const isRtl = (text) => /^[^\p{L}]*[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}]/u.test(text);
const piece = (text) => el("bdi", {}, text);
const chip = (text, under, kind = "") => el("span", { class: `chip ${kind}` }, piece(text), el("small", {}, under));
const chips = (id, text) => el("div", { class: "chips", id, dir: isRtl(text) ? "rtl" : "ltr" });
const look = (text) => el("p", { class: "look" }, el("b", {}, `${t("Look for")}: `), text);
const section = (id, title, ...parts) => el("section", { id }, el("h2", {}, title), ...parts);
const scroll = (options, ...children) => el("div", { class: "scroll", tabindex: 0, ...options }, ...children);
const option = (value, text, chosen) => el("option", { value, selected: value === chosen }, text);

// --- attention: scores come with the page, weights are computed from them -----------------------------------------

const kinds = (way) => ({ ...D.encoder, ...way.attention });

function weights(one) {
  return once(one, "weights", () => {
    const scores = floats(one.scores), [, , queries, keys] = one.scores.shape, out = new Float32Array(scores.length);
    for (let at = 0, row = 0; at < scores.length; at += keys, row += 1) {
      const mask = one.mask[row % queries];
      let most = -Infinity, sum = 0;
      for (let key = 0; key < keys; key += 1) if (mask[key] === "1") most = Math.max(most, scores[at + key]);
      for (let key = 0; key < keys; key += 1) sum += out[at + key] = mask[key] === "1" ? Math.exp(scores[at + key] - most) : 0;
      for (let key = 0; key < keys; key += 1) out[at + key] /= sum;
    }
    return out;
  });
}

// The place of (layer, head, query, key) in scores and weights.
function at(one, layer, head, query, key) {
  const [, heads, queries, keys] = one.scores.shape;
  return ((layer * heads + head) * queries + query) * keys + key;
}

// A weight; of head -1 the mean of all heads.
function weight(one, layer, head, query, key) {
  if (head >= 0) return weights(one)[at(one, layer, head, query, key)];
  const heads = one.scores.shape[1];
  let sum = 0;
  for (let each = 0; each < heads; each += 1) sum += weights(one)[at(one, layer, each, query, key)];
  return sum / heads;
}

// The vector of a position, its first numbers; heads of queries may share one head of keys.
function vector(one, name, layer, head, position) {
  const [, heads, length, size] = one[name].shape, group = one.scores.shape[1] / heads;
  const from = ((layer * heads + Math.floor(head / group)) * length + position) * size;
  return floats(one[name]).subarray(from, from + size);
}

// A table of cells. `cell(row, column)`: {text, style, class, title}; `pick`: what a click on a cell does.
function map(rows, columns, cell, { pick, now = -1, label = "" } = {}) {
  const name = (token, place, tag, more = {}) => el(tag, { ...more, title: `${token} (${place})` }, tag === "th" ? piece(token) : "");
  const head = el("tr", {}, el("td", { class: "corner" }), columns.map((token, c) => el("th", { title: `${token} (${c})` }, el("span", {}, piece(token)))));
  const body = rows.map((token, r) => el("tr", { class: r === now ? "now" : "" }, name(token, r, "th", { scope: "row" }), columns.map((_, c) => {
    const { text = "", style = "", title = "", ...rest } = cell(r, c);
    return el("td", { style, title, class: `${rest.class ?? ""}${pick ? " pick" : ""}`, "data-at": `${r} ${c}` }, text);
  })));
  const table = el("table", { class: columns.length > 34 ? "map small" : "map", "aria-label": label }, el("thead", {}, head), el("tbody", {}, body));
  if (pick) table.addEventListener("click", (event) => {
    const where = event.target.closest("td[data-at]");
    if (where) pick(...where.dataset.at.split(" ").map(Number));
  });
  return table;
}

const describe = (one, r, c, value) => t("{query} (position {r}) looks at {key} (position {c}): {value}", { query: one.queries[r], r, key: one.keys[c], c, value: value.toFixed(6) });

// --- the page -----------------------------------------------------------------------------------------------------

function draw() {
  place.lang = language === "zh" ? "zh-Hans" : "en";
  const about = t("{run}, {family}, {parameters} parameters, Dragoman {version}", { ...D, parameters: count(D.parameters) });
  const languages = Object.entries({ en: "English", zh: "中文" }).map(([code, name]) => el("button", { lang: code, type: "button", "aria-pressed": String(code === language), onclick: () => { language = code; draw(); } }, name));
  place.replaceChildren(
    el("div", { class: "controls", id: "languages" }, languages),
    el("h1", { id: "title", dir: "auto", lang: "" }, D.src.text),
    el("p", { class: "muted", id: "about" }, el("bdi", { id: "translation" }, D.ways[0].text), ` — ${about}`),
    player(), pieces(), ...[masks, positions, attention].map((part) => part()).filter(Boolean), beam(), ...(D.trace.length ? [trace()] : []),
  );
  update();
  drawAttention();
}

const current = () => D.ways[state.way];
const parts = () => D.layers.length + 2; // goes in, each layer, comes out
const steps = () => current().ids.length;
const frame = () => state.step * parts() + state.part;
const isOut = () => state.part === parts() - 1;

function player() {
  const button = (id, text, label, onclick) => el("button", { id, type: "button", title: label, "aria-label": label, onclick }, text);
  const transformer = D.cache.kind === "keys and values";
  return el("section", { id: "player", tabindex: 0, "aria-label": t("One token at a time") },
    el("h2", {}, t("One token at a time")),
    el("p", {}, t("The start token goes in, passes through the layers, and every entry of the vocabulary gets a probability. One token falls out. It goes in again, until </s> falls out.")),
    look(t("which candidate is taken, and how sure the model is. Click another candidate: the model goes on from your choice.")),
    el("div", { class: "controls" },
      button("first", "⇤", t("to the start (Home)"), () => go(0)), button("back", "←", t("one part back (←)"), () => go(frame() - 1)),
      button("play", "▶", t("play or pause (space)"), toggle), button("forward", "→", t("one part on (→)"), () => go(frame() + 1)),
      button("next-token", "⇥", t("to the next token (Page Down)"), nextToken),
      el("input", { type: "range", id: "frame", min: 0, max: 1, "aria-label": t("part of the translation"), oninput: (event) => go(+event.target.value) })),
    el("p", { class: "status", id: "where", role: "status" }),
    el("div", { class: "sides" },
      el("div", {},
        el("h3", {}, t("The source, read once by the encoder")), chips("source", D.src.text),
        el("h3", {}, t("Goes in")), chips("inputs", current().text),
        el("div", { class: "down", "aria-hidden": "true" }, "↓"), el("div", { id: "layers" }), el("div", { class: "down", "aria-hidden": "true" }, "↓"),
        el("h3", {}, t("Candidates for the next token")), el("div", { id: "next" }), el("p", { id: "falls", class: "status" })),
      el("div", {}, ...(transformer ? growing() : recurrent()))),
    el("div", { id: "compared" }));
}

// The side that shows what grows with each token, of a Transformer.
function growing() {
  const own = kinds(D.ways[0])["decoder.self"];
  return [
    chooser(),
    ...(own ? [el("h3", {}, t("Causal mask")), look(t("the triangle. A token may look at itself and at what stands before it, never at what comes later.")), scroll({ id: "mask" }),
      el("h3", {}, t("Self-attention of the decoder")), look(t("which earlier tokens this token reads. Each row sums to 1. Click a cell for the numbers behind it.")), scroll({ id: "self" })]
      : [el("p", { id: "no-mask" }, t("This decoder has a recurrent unit (SSRU) in the place of self-attention: there is no causal mask and no self-attention to show."))]),
    el("h3", {}, t("Attention to the source")), look(t("which source token the next token comes from.")), scroll({ id: "cross" }),
    el("h3", {}, t("Cache")), look(own ? t("one more column with each token: keys and values of earlier tokens are kept and never computed again.") : t("a memory that stays of one size.")), scroll({ id: "cache" }), el("p", { id: "cache-size", class: "muted" }),
  ];
}

// The same of a recurrent model: what is not there is said.
function recurrent() {
  const cross = kinds(D.ways[0])["decoder.cross"];
  return [
    ...(cross ? [chooser()] : []),
    el("p", { id: "no-mask" }, t("A recurrent decoder reads one token after the other: it has no causal mask, no self-attention, and no cache of keys and values.")),
    ...(cross ? [el("h3", {}, t("Attention to the source")), look(t("which source token the next token comes from.")), scroll({ id: "cross" })]
      : [el("p", { id: "no-attention" }, t("This model has no attention: it knows the source by the encoder's last state alone, a vector of fixed size for any sentence."))]),
    el("h3", {}, t("State")), look(t("a memory that stays of one size.")), el("p", { id: "cache-size", class: "muted" }),
  ];
}

function chooser() {
  const [layers, heads] = Object.values(D.ways[0].attention)[0].scores.shape;
  const select = (id, label, from, names, value) => el("label", {}, label, el("select", { id, onchange: (event) => { state[id] = +event.target.value; update(); } }, names.map((name, n) => option(n + from, name, value))));
  const numbers = (length) => Array.from({ length }, (_, n) => `${n + 1}`);
  return el("div", { class: "controls" },
    ...(layers > 1 ? [select("layer", t("layer"), -1, [t("as the token goes"), ...numbers(layers)], state.layer)] : []),
    ...(heads > 1 ? [select("head", t("head"), -1, [t("mean of all"), ...numbers(heads)], state.head)] : []));
}

// --- the player moves ---------------------------------------------------------------------------------------------

function go(to) {
  const last = steps() * parts() - 1, bounded = Math.max(0, Math.min(last, to));
  state.step = Math.floor(bounded / parts());
  state.part = bounded % parts();
  if (bounded === last) stop();
  update();
}

const nextToken = () => go((isOut() ? state.step + 1 : state.step) * parts() + parts() - 1);

function stop() {
  if (state?.timer) clearInterval(state.timer);
  if (state) state.timer = 0;
}

function toggle() {
  if (state.timer) stop();
  else {
    if (frame() === steps() * parts() - 1) go(0);
    state.timer = setInterval(() => (place.isConnected ? go(frame() + 1) : stop()), 1000 * SECONDS_PER_PART);
  }
  update();
}

function onKey(event) {
  const inside = event.target.closest?.("#player"), tag = event.target.tagName;
  if (!inside || event.ctrlKey || event.metaKey || event.altKey || tag === "SELECT" || event.target.className === "scroll" || (tag === "INPUT" && event.key.startsWith("Arrow"))) return;
  if (event.key === " " && tag === "BUTTON") return;
  const moves = { ArrowRight: () => go(frame() + 1), ArrowLeft: () => go(frame() - 1), PageDown: nextToken, PageUp: () => go((state.step - 1) * parts() + parts() - 1), Home: () => go(0), End: () => go(Infinity), " ": toggle };
  if (!moves[event.key]) return;
  event.preventDefault();
  moves[event.key]();
}

const isKnown = (ids) => [state.way, ...D.ways.keys()].find((n) => ids.every((id, at) => D.ways[n].ids[at] === id));

// The model goes on from the reader's choice.
async function pick(id) {
  const begin = [...current().ids.slice(0, state.step), id], data = D, step = state.step;
  stop();
  let way = isKnown(begin);
  if (way === undefined) {
    $("falls").textContent = t("The model goes on from your choice …");
    try {
      const made = await choose(begin);
      if (data !== D) return; // another sentence meanwhile
      way = D.ways.push(made) - 1;
    } catch (problem) {
      $("falls").replaceChildren(el("span", { class: "error", role: "alert" }, problem.message));
      return;
    }
  }
  Object.assign(state, { way, step, part: parts() - 1, cell: null });
  update();
  drawAttention();
  $("next").querySelector(".taken")?.focus();
}

// --- what each part of the player shows ---------------------------------------------------------------------------

function update() {
  const way = current(), { step, part } = state;
  $("frame").max = steps() * parts() - 1;
  $("frame").value = frame();
  $("play").textContent = state.timer ? "❚❚" : "▶";
  const doing = part === 0 ? t("it goes in") : isOut() ? t("a token falls out") : t("layer {n} of {all}", { n: part, all: D.layers.length });
  $("where").textContent = t("token {n} of {all}: {doing}", { n: step + 1, all: steps(), doing });
  $("frame").setAttribute("aria-valuetext", $("where").textContent);
  $("inputs").replaceChildren(...way.inputs.slice(0, step + 1).map((token, n) => chip(token, n ? way.ids[n - 1] : 2, n === step ? "on" : "")));
  $("layers").replaceChildren(...D.layers.map((names, n) => el("div", { class: `layer ${n + 1 === part ? "on" : n + 1 < part ? "done" : ""}` }, el("b", {}, `${n + 1} `), names.map((name) => t(name)).join(" → "))));
  candidates(way, step);
  grow(way, step);
  compare();
}

function candidates(way, step) {
  const taken = way.ids[step], listed = way.next[step].some(([id]) => id === taken) ? way.next[step] : [...way.next[step], [taken, way.pieces[step], Math.exp(way.log_probs[step])]];
  $("next").className = isOut() ? "" : "later";
  $("next").replaceChildren(...listed.map(([id, token, prob]) => {
    const known = isKnown([...way.ids.slice(0, step), id]) !== undefined, open = isOut() && (known || (choose && !D.never.includes(id)));
    const title = open ? t("take this one") : D.never.includes(id) ? t("never written by this search") : t("not computed on this page");
    return el("button", { class: id === taken ? "bar taken" : "bar", type: "button", disabled: !open, title, onclick: () => pick(id), "data-id": id, "aria-pressed": String(id === taken) },
      el("span", {}, piece(token)), el("div", {}, el("i", { style: `width: ${100 * prob}%` })), el("span", {}, percent(prob)), el("span", { class: "muted" }, prob ? fixed(Math.log(prob), 3) : "−∞"));
  }));
  const first = way.next[step][0][0] === taken;
  const remark = first ? "" : state.way && way.ids[step] !== D.ways[0].ids[step] ? ` ${t("It is your choice, or follows from it.")}` : ` ${t("It is not the most probable one: the beam search looks at whole sentences.")}`;
  const next = step + 1 < steps() ? t("“{token}” falls out and goes in again. The text so far: “{text}”.", { token: way.pieces[step], text: way.so_far[step] }) : t("“{token}” falls out: the translation is done: “{text}”.", { token: way.pieces[step], text: way.text });
  $("falls").textContent = isOut() ? next + remark : "";
}

function grow(way, step) {
  const { "decoder.self": own, "decoder.cross": cross } = way.attention, { part } = state;
  const shown = cross ?? own, layers = shown?.scores.shape[0] ?? 1, inLayer = D.layers.length === layers ? part - 1 : isOut() ? 0 : part - 1;
  const layer = state.layer >= 0 ? state.layer : Math.max(0, Math.min(layers - 1, inLayer)), head = state.head;
  const rows = part > layer || isOut() ? step + 1 : step; // rows that are computed so far
  const note = () => el("p", { class: "muted" }, t("The maps of this way are left out, so that the page stays small."));
  const pickOf = (kind) => (query, key) => { choosePart(kind, layer, head, query, key); $("numbers").scrollIntoView({ block: "nearest" }); };
  const mapOf = (one, columns, names, kind) => map(names.slice(0, rows), one.keys.slice(0, columns), (r, c) => {
    const value = weight(one, layer, head, r, c);
    return { style: heat(value), title: describe(one, r, c, value), class: isChosen(kind, layer, head, r, c) };
  }, { pick: pickOf(kind), now: step, label: t("{kind}, layer {n}", { kind: t(NAMES[kind]), n: layer + 1 }) });
  if ($("mask")) $("mask").replaceChildren(own ? map(way.inputs.slice(0, step + 1), way.inputs, (r, c) => ({ text: own.mask[r][c], style: own.mask[r][c] === "1" ? heat(0.45) : "", class: own.mask[r][c] === "1" ? "" : "dim" }), { now: step, label: t("Causal mask") }) : note());
  if ($("self")) $("self").replaceChildren(own ? mapOf(own, step + 1, way.inputs, "decoder.self") : note());
  if ($("cross")) $("cross").replaceChildren(cross ? mapOf(cross, cross.keys.length, way.pieces.map((token, n) => (n < step || isOut() ? token : "?")), "decoder.cross") : note());
  $("source").replaceChildren(...D.src.pieces.map((token, n) => {
    const value = cross && rows > step ? weight(cross, layer, head, step, n) : 0, made = chip(token, cross && rows > step ? percent(value) : D.src.ids[n]);
    made.style.cssText = heat(0.75 * value);
    return made;
  }));
  cache(way, step);
}

function cache(way, step) {
  const { kind, layers, heads, width, numbers } = D.cache, n = step + 1;
  if (kind === "state") {
    $("cache-size").textContent = t("What the decoder remembers: {numbers} numbers, as many after every token.", { numbers: count(numbers) });
    $("cache")?.replaceChildren();
    return;
  }
  const rows = Array.from({ length: layers }, (_, layer) => t("layer {n}", { n: layer + 1 }));
  $("cache").replaceChildren(map(rows, way.inputs.slice(0, n), (layer, token) => {
    const there = token < step || layer < state.part;
    return { text: there ? "kv" : "", style: there ? heat(token === step ? 0.65 : 0.25) : "", title: t("a key and a value for each of {heads} heads, {width} numbers each", { heads, width }) };
  }, { label: t("Cache") }));
  $("cache-size").textContent = t("Keys and values of {n} tokens: 2 × {layers} layers × {heads} heads × {n} × {width} = {numbers} numbers.", { n, layers, heads, width, numbers: count(2 * layers * heads * n * width) });
}

function compare() {
  const [best, own] = [D.ways[0], current()], sum = (way) => way.log_probs.reduce((total, one) => total + one, 0);
  const known = D.ways.length - 1;
  if (state.way === 0) {
    const hint = choose ? t("Click a candidate with a frame: the model goes on from it, and both ways stand here side by side.")
      : t("Click a candidate with a frame: the model goes on from it, and both ways stand here side by side. This page holds {n} ways that leave the best translation for one of the {choices} most probable tokens and go on greedily. dragoman serve computes any other.", { n: known, choices: D.choices });
    $("compared").replaceChildren(el("h3", {}, t("Another way")), el("p", { class: "muted" }, hint));
    return;
  }
  const rows = Array.from({ length: Math.max(best.ids.length, own.ids.length) }, (_, n) => {
    const cells = [best, own].flatMap((way) => (n < way.ids.length ? [el("td", {}, piece(way.pieces[n])), el("td", { class: "number" }, fixed(way.log_probs[n]))] : [el("td"), el("td")]));
    return el("tr", { class: best.ids[n] === own.ids[n] ? "" : "on" }, el("td", { class: "number muted" }, n + 1), cells);
  });
  const total = (name, value) => el("tr", {}, el("th", { scope: "row" }, name), [best, own].map((way) => el("td", { colspan: 2, class: "number" }, value(way))));
  const better = sum(own) > sum(best);
  $("compared").replaceChildren(
    el("h3", {}, t("Another way")),
    look(t("at which token the two part, and what the choice costs: log probabilities are added, so one improbable token is enough.")),
    scroll({}, el("table", { class: "plain", id: "two-ways" },
      el("tr", {}, el("td"), el("th", { colspan: 2 }, t("the model's way")), el("th", { colspan: 2 }, t("your way"))),
      el("tr", {}, el("td"), [best, own].map((way) => el("td", { colspan: 2, dir: "auto" }, way.text))), rows,
      total(t("sum of ln p"), (way) => fixed(sum(way))), total(t("per token"), (way) => fixed(sum(way) / way.ids.length)))),
    el("p", { id: "verdict" }, better ? t("Your way is more probable than the model's, by {n}: the search has not found it, or it prefers another length.", { n: fixed(sum(own) - sum(best)) }) : t("Your way is less probable, by {n}: e to the power of that is a factor of {factor}.", { n: fixed(sum(best) - sum(own)), factor: Number(Math.exp(sum(best) - sum(own)).toPrecision(3)).toLocaleString(language) })),
    el("div", { class: "controls" }, el("button", { id: "own-way", type: "button", onclick: () => { Object.assign(state, { way: 0, cell: null, step: Math.min(state.step, best.ids.length - 1) }); update(); drawAttention(); } }, t("back to the model's way"))));
}

// --- the sections below -------------------------------------------------------------------------------------------

function pieces() {
  const row = (id, text, tokens, ids) => { const made = chips(id, text); made.append(...tokens.map((token, n) => chip(token, ids[n]))); return made; };
  const best = D.ways[0];
  return section("pieces", t("Pieces and ids"),
    el("p", {}, t("The text is cut into pieces, and each piece has a number in the vocabulary. The source ends with </s>. The translation is the one that the search below has found.")),
    look(t("the numbers: the model sees nothing else. A word that the vocabulary lacks is several pieces, or <unk>.")),
    el("h3", {}, t("source")), row("src", D.src.text, D.src.pieces, D.src.ids), el("h3", {}, t("translation")), row("tgt", best.text, best.pieces, best.ids));
}

function masks() {
  if (!D.masks.length) return null;
  return section("masks", t("Masks"),
    el("p", {}, t("The translation beside its own first half, as they would be trained in one batch. A row is a position that looks, a column is one that is looked at; 1 may be attended to. The decoder of a Transformer uses the causal mask alone: padding stands at the end, where the triangle hides it from every real token.")),
    look(t("columns of zeros, which hide padding, and the triangle, which hides what comes later.")),
    ...D.masks.flatMap((one, number) => [el("h3", {}, t("sentence {n} of the batch", { n: number + 1 })), el("div", { class: "maps" },
      Object.entries(one.masks).map(([name, mask]) => scroll({}, el("h3", {}, t(name)),
        map(one.tokens, one.tokens, (r, c) => ({ text: String(mask[r][c]), style: mask[r][c] ? heat(0.45) : "", class: mask[r][c] ? "" : "dim" }), { label: t(name) }))))]));
}

function positions() {
  if (!D.positions) return null;
  const values = floats(D.positions), [rows, columns] = D.positions.shape, status = el("div", { class: "status" });
  const limit = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0), size = Math.max(6, Math.min(14, Math.floor(900 / columns)));
  const drawn = svg("svg", { width: 90 + columns * size, height: rows * 18 + 4, role: "img", "aria-label": t("position vectors") });
  for (let r = 0; r < rows; r += 1) {
    drawn.append(svg("text", { x: 84, y: r * 18 + 13, "text-anchor": "end" }, short(D.src.pieces[r])));
    for (let c = 0; c < columns; c += 1) {
      const value = values[r * columns + c];
      const cell = svg("rect", { x: 90 + c * size, y: r * 18, width: size, height: 17, fill: value < 0 ? "var(--orange)" : "var(--blue)", "fill-opacity": (Math.abs(value) / limit).toFixed(3) });
      cell.addEventListener("mouseenter", () => { status.textContent = t("position {r} ({token}), dimension {c}: {value}", { r, token: D.src.pieces[r], c, value: value.toFixed(6) }); });
      drawn.append(cell);
    }
  }
  return section("positions", t("Positions"),
    el("p", {}, t("Attention sees a set; the order is told by a vector that is added to each embedding ({name}): a row for each token of the source, {columns} dimensions. Blue is positive, orange negative.", { name: t(D.positions.name), columns })),
    look(D.positions.name === "sinusoidal" ? t("fast waves on the left, slow ones on the right: neighbours differ on the left, distant tokens on the right.") : t("rows that differ: they are trained, and nothing but training makes neighbours alike.")),
    scroll({}, drawn), status);
}

const NAMES = { "encoder.self": "self-attention of the encoder", "decoder.self": "self-attention of the decoder", "decoder.cross": "attention to the source" };
const short = (token) => ([...token].length > 12 ? `${[...token].slice(0, 11).join("")}…` : token);

function attention() {
  if (!state.kind) return null;
  return section("attention", t("Attention"),
    el("p", {}, t("Each row sums to 1: how much the token at its left looks at each token above. The rows of the attention to the source are named by the token that comes out.")),
    look(t("heads that differ: one may look at the token itself, one at its neighbour, one at the end of the sentence. Click a cell for the numbers behind it.")),
    el("div", { class: "controls", id: "attention-controls" }), scroll({ id: "attention-map" }),
    el("div", { id: "numbers" }));
}

function drawAttention() {
  const known = kinds(current());
  if (!$("attention-map")) return;
  if (!known[state.kind]) state.kind = Object.keys(known)[0];
  if (!state.kind) return;
  const one = known[state.kind], [layers, heads] = one.scores.shape;
  state.kindLayer = Math.min(state.kindLayer, layers - 1);
  state.kindHead = Math.min(state.kindHead, heads - 1);
  const slider = (id, label, from, last, value, shown) => el("label", {}, label, el("input", { type: "range", id, min: from, max: last, value, "aria-label": label, oninput: (event) => { state[id] = +event.target.value; event.target.nextSibling.textContent = shown(state[id]); state.cell = null; drawMap(one); } }), el("output", {}, shown(value)));
  $("attention-controls").replaceChildren(
    el("select", { id: "kind", "aria-label": t("kind of attention"), onchange: (event) => { state.kind = event.target.value; state.cell = null; drawAttention(); } }, Object.keys(known).map((name) => option(name, t(NAMES[name]), state.kind))),
    ...(layers > 1 ? [slider("kindLayer", t("layer"), 0, layers - 1, state.kindLayer, (value) => t("{n} of {all}", { n: value + 1, all: layers }))] : []),
    ...(heads > 1 ? [slider("kindHead", t("head"), -1, heads - 1, state.kindHead, (value) => (value < 0 ? t("mean of all {all}", { all: heads }) : t("{n} of {all}", { n: value + 1, all: heads })))] : []));
  drawMap(one);
}

function drawMap(one) {
  const { kindLayer: layer, kindHead: head, kind } = state;
  const table = map(one.queries, one.keys, (r, c) => {
    const value = weight(one, layer, head, r, c);
    return { style: heat(value), title: describe(one, r, c, value), class: isChosen(kind, layer, head, r, c) };
  }, { pick: (query, key) => choosePart(kind, layer, head, query, key), label: t(NAMES[kind]) });
  table.tabIndex = 0;
  table.addEventListener("keydown", (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!move) return;
    event.preventDefault();
    const { query = 0, key = -1 } = state.cell ?? {}, bound = (value, length) => Math.max(0, Math.min(length - 1, value));
    choosePart(kind, layer, head, bound(query + move[0], one.queries.length), bound(key + move[1], one.keys.length));
    $("attention-map").firstChild.focus();
  });
  $("attention-map").replaceChildren(table);
  drawNumbers();
}

const isChosen = (kind, layer, head, query, key) => (state.cell && Object.entries({ kind, layer, head, query, key }).every(([name, value]) => state.cell[name] === value) ? "chosen" : "");

function choosePart(kind, layer, head, query, key) {
  state.cell = { kind, layer, head, query, key };
  Object.assign(state, { kind, kindLayer: layer, kindHead: head });
  update();
  drawAttention();
}

// The arithmetic behind one weight.
function drawNumbers() {
  if (!state.cell) {
    $("numbers").replaceChildren(el("p", { class: "muted" }, t("Click a cell, or move through the map with the arrow keys: q, k, their product, the scores of the row, the mask and the softmax stand here.")));
    return;
  }
  const { kind, layer, head, query, key } = state.cell, one = kinds(current())[kind], value = weight(one, layer, head, query, key);
  const title = el("h3", {}, t("{query} (position {r}) looks at {key} (position {c}): {value}", { query: one.queries[query], r: query, key: one.keys[key], c: key, value: value.toFixed(6) }));
  if (head < 0) {
    const heads = one.scores.shape[1], of = Array.from({ length: heads }, (_, n) => weight(one, layer, n, query, key));
    const button = (n) => el("button", { type: "button", onclick: () => choosePart(kind, layer, n, query, key) }, t("head {n}: {value}", { n: n + 1, value: fixed(of[n]) }));
    $("numbers").replaceChildren(title, el("p", {}, t("It is the mean of the weights of {all} heads. Each head has its own queries and keys: choose one.", { all: heads })), el("div", { class: "controls" }, of.map((_, n) => button(n))));
    return;
  }
  $("numbers").replaceChildren(title, ...product(one, layer, head, query, key), rowOf(one, layer, head, query, key));
}

function product(one, layer, head, query, key) {
  const q = vector(one, "query", layer, head, query), k = vector(one, "key", layer, head, key), score = floats(one.scores)[at(one, layer, head, query, key)];
  const bias = one.bias ? floats(one.bias)[at(one, layer, head, query, key)] : 0;
  if (one.formula === "other") return [el("p", { id: "sum" }, t("The score of this pair is {score}.", { score: fixed(score) }))];
  const list = (name, values) => el("tr", {}, el("th", { scope: "row" }, name), Array.from(values, (value) => el("td", { class: "number" }, fixed(value, 3))), q.length < one.width ? el("td", {}, "…") : "");
  const table = (...rows) => scroll({}, el("table", { class: "plain" }, rows));
  const cut = q.length < one.width ? [el("p", { class: "muted" }, t("The first {n} of {all} numbers are shown; the sum is of all.", { n: q.length, all: one.width }))] : [];
  if (one.formula === "additive") {
    const inner = q.map((value, n) => Math.tanh(value + k[n]));
    return [table(list("W s", q), list("U h", k), list("tanh(W s + U h)", inner), list("v", one.v)), ...cut, el("p", { id: "sum" }, t("The score is v · tanh(W s + U h) = {score} (additive attention, Bahdanau).", { score: fixed(score) }))];
  }
  const dot = (score - bias) / one.scale, divided = Math.abs(one.scale ** -2 - one.width) < 1e-3;
  const sum = divided ? t("q · k = {dot}; divided by √{width} = {root}: {score}", { dot: fixed(dot), width: one.width, root: fixed(Math.sqrt(one.width), 3), score: fixed(score - bias) }) : t("q · k = {dot}; times {scale}: {score}", { dot: fixed(dot), scale: one.scale, score: fixed(score - bias) });
  return [table(list("q", q), list("k", k), list("q × k", q.map((value, n) => value * k[n]))), ...cut,
    el("p", { id: "sum" }, sum + (one.bias ? ` ${t("The position adds {bias}: {score}.", { bias: fixed(bias), score: fixed(score) })}` : ""))];
}

function rowOf(one, layer, head, query, key) {
  const scores = floats(one.scores), mask = one.mask[query], from = at(one, layer, head, query, 0);
  const open = one.keys.map((_, c) => (mask[c] === "1" ? scores[from + c] : -Infinity)), most = Math.max(...open);
  const sum = open.reduce((total, score) => total + Math.exp(score - most), 0);
  const rows = one.keys.map((token, c) => el("tr", { class: c === key ? "on" : "" }, el("td", {}, piece(token), el("small", { class: "muted" }, ` ${c}`)),
    [fixed(scores[from + c]), mask[c], open[c] === -Infinity ? "−∞" : fixed(open[c]), Math.exp(open[c] - most).toFixed(4), (Math.exp(open[c] - most) / sum).toFixed(6)].map((text) => el("td", { class: "number" }, text))));
  return el("div", {}, el("p", {}, t("The whole row: the mask makes −∞ of what is hidden. The largest score, {most}, is taken away, so that nothing overflows; e to the power of the rest, divided by the sum {sum}, is the weight.", { most: fixed(most), sum: sum.toFixed(4) })),
    scroll({}, el("table", { class: "plain", id: "row" }, el("tr", {}, [t("key"), t("score"), t("mask"), t("masked"), t("e^(score − largest)"), t("weight")].map((name, n) => el("th", { class: n ? "number" : "" }, name))), rows)));
}

// --- the beam -----------------------------------------------------------------------------------------------------

function fate(one, step) {
  const number = D.beam.steps.indexOf(step), best = D.beam.hypotheses[0];
  if (one.fate === "finished") {
    const sum = `${fixed(one.log_prob)} ÷ ${+step.divisor.toFixed(4)} = ${fixed(one.score)}`;
    return one.wins ? t("finished: {sum}. It is the best.", { sum }) : t("finished: {sum}. The best has {best}.", { sum, best: fixed(best.score) });
  }
  if (one.fate === "goes on") {
    if (one.wins) return t("goes on as {n}, and becomes the best", { n: one.place + 1 });
    if (number === D.beam.steps.length - 1) return t("goes on as {n}: it had not ended when the search stopped", { n: one.place + 1 });
    return one.has_heirs ? t("goes on as {n}", { n: one.place + 1 }) : t("goes on as {n}, and dies in the next step: all that it could become is less probable than what the beam keeps", { n: one.place + 1 });
  }
  const kept = step.candidates.filter((other) => other.fate === "goes on").map((other) => other.log_prob);
  if (one.fate === "outranked") return kept.length ? t("dropped: the beam keeps {size}, the last of them has {kept}", { size: D.beam.size, kept: fixed(Math.min(...kept)) }) : t("dropped: others are more probable");
  return t("dropped: it ends, but is not among the best {size}", { size: D.beam.size });
}

function tree(say) {
  const { steps: all } = D.beam, wide = 104, high = 34, rows = Math.max(...all.map((step) => step.candidates.length));
  const drawn = svg("svg", { width: 60 + wide * all.length + 50, height: rows * high + 44, role: "img", "aria-label": t("the tree of the search") });
  const lines = svg("g"), boxes = svg("g");
  const node = (x, y, above, below, color, framed, tell) => {
    const group = svg("g", { class: "node" });
    if (framed) group.append(svg("rect", { x: x - 40, y: y - 14, width: 80, height: 28, rx: 5, fill: "var(--paper)", stroke: color, "stroke-width": 1.4 }));
    group.append(svg("title", {}, `${above}: ${tell}`), svg("text", { x, y: y - 2, "text-anchor": "middle", class: framed ? "" : "dead" }, short(above)), svg("text", { x, y: y + 10, "text-anchor": "middle", class: framed ? "under" : "under dead" }, below));
    for (const type of ["click", "mouseenter"]) group.addEventListener(type, () => say(`${above}: ${tell}`));
    boxes.append(group);
  };
  let where = [[30, 44]];
  node(30, 44, "<s>", "", "var(--muted)", false, t("the start"));
  all.forEach((step, number) => {
    const x = 60 + wide * (number + 0.5), places = [];
    boxes.append(svg("text", { x, y: 14, "text-anchor": "middle", class: "dead" }, t("step {n}, ÷ {divisor}", { n: step.length, divisor: +step.divisor.toFixed(3) })));
    const order = [...step.candidates].sort((a, b) => (a.place ?? 99) - (b.place ?? 99));
    order.forEach((one, row) => {
      const y = 44 + row * high, lives = one.fate === "goes on", ended = one.fate === "finished", [px, py] = where[one.parent];
      const color = one.wins ? "var(--orange)" : lives ? "var(--blue)" : ended ? "var(--green)" : "var(--rule)";
      lines.append(svg("line", { x1: px + (number ? 40 : 14), y1: py, x2: x - 40, y2: y, stroke: color, "stroke-width": one.wins ? 3.2 : lives || ended ? 1.6 : 0.8, class: one.wins ? "wins" : "" }));
      const star = one.wins && (ended || number === all.length - 1) ? "★ " : "";
      node(x, y, star + one.piece, ended ? t("score {score}", { score: fixed(one.score, 3) }) : fixed(one.log_prob, 3), color, lives || ended, fate(one, step));
      if (lives) places[one.place] = [x, y];
    });
    where = places;
  });
  drawn.append(lines, boxes);
  return drawn;
}

function stepOf(number) {
  const step = D.beam.steps[number - 1], head = (...names) => el("tr", {}, names.map((name, n) => el("th", { class: n === 1 ? "number" : "" }, name)));
  const alive = step.alive.map((one, n) => el("tr", {}, el("td", {}, `${n + 1} `, piece(one.pieces.join(" "))), el("td", { class: "number" }, fixed(one.log_prob)), el("td", {}, one.next.slice(0, 5).map((next) => `${next.piece} ${percent(next.prob)}`).join(", "))));
  const ranked = step.candidates.map((one) => el("tr", { class: one.wins ? "wins" : "" }, el("td", {}, `${one.wins ? "★ " : ""}${one.parent + 1} + `, piece(one.piece)), el("td", { class: "number" }, fixed(one.log_prob)), el("td", {}, fate(one, step))));
  return [el("h3", {}, t("alive before this step")), scroll({}, el("table", { class: "plain" }, head(t("hypothesis"), "ln p", t("its next tokens")), alive)),
    el("h3", {}, t("its candidates, best first")), scroll({}, el("table", { class: "plain" }, head(t("hypothesis + token"), "ln p", t("what becomes of it")), ranked)),
    el("p", { class: "muted" }, t("best finished: {best}; the most that those that go on can reach: {possible}", { best: step.best_finished == null ? t("none yet") : fixed(step.best_finished), possible: fixed(step.still_possible) }))];
}

function beam() {
  const { steps: all, size, longest, why, stopped, hypotheses } = D.beam, last = all.at(-1), status = el("p", { class: "status", id: "tree-status", role: "status" }, t("Point at a token of the tree: what became of it, and why."));
  const reasons = { bound: t("none of those that go on can still become the best: at most {possible}, were they {longest} tokens long and no less probable", { possible: fixed(last.still_possible), longest }), longest: t("the longest length is reached: {longest} tokens", { longest }), greedy: t("</s> is the most probable next token: with a beam of 1 that is the end"), setting: stopped };
  const shown = el("div", { id: "beam" }), number = el("output", { id: "beam-number" });
  const show = (n) => { number.textContent = t("{n} of {all}", { n, all: all.length }); shown.replaceChildren(...stepOf(n)); };
  show(1);
  return section("search", t("Beam search"),
    el("p", {}, t("{size} hypotheses at a time. Blue ones go on, green ones have ended with </s> and have a score: ln p divided by the divisor of their length. Grey ones are dropped. The best translation is orange.", { size })),
    look(t("a dropped token that you would have taken: would a wider beam have kept it?")),
    scroll({ id: "tree" }, tree((text) => { status.textContent = text; })), status,
    el("div", { class: "controls" }, el("label", {}, t("step"), el("input", { type: "range", id: "beam-step", min: 1, max: all.length, value: 1, oninput: (event) => show(+event.target.value) }), number)), shown,
    el("p", { id: "stopped" }, t("Stopped: {reason}. Found: {found}", { reason: reasons[why], found: hypotheses.map((one) => `${one.text} (${fixed(one.score)})`).join("; ") })));
}

function trace() {
  const table = el("table", { class: "plain" });
  let before = "";
  for (const row of D.trace) {
    if (row.step !== before) table.append(el("tr", {}, el("th", { colspan: 3 }, row.step)));
    before = row.step;
    table.append(el("tr", {}, el("td", { style: `padding-inline-start: ${0.6 + row.depth}rem` }, row.name), el("td", {}, row.shape), el("td", { style: "min-width: 14rem" }, row.origin)));
  }
  return section("trace", t("Every tensor"),
    el("p", {}, t("The same sentence pair followed through the model: what goes in and comes out of each part, with its shape.")),
    look(t("the shapes: (batch, length, width) goes through all layers unchanged; the last step widens it to the vocabulary.")),
    el("details", { open: matchMedia("(min-width: 50rem)").matches }, el("summary", {}, t("shapes")), scroll({}, table)));
}
