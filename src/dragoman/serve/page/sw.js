// Keeps the page's files for a time without a network. What the server says is never kept: its answers go by untouched.
// The server writes the version and the files in here; any other file makes it another version, with a store of its own.
const ROOT = new URL("./", self.location).href;
const PREFIX = `dragoman ${ROOT} `;
const STORE = `${PREFIX}VERSION`;
const FILES = ["", ...["FILES"]].map((name) => ROOT + name);

self.addEventListener("install", (event) => {
  const fresh = FILES.map((address) => new Request(address, { cache: "reload" }));
  event.waitUntil(caches.open(STORE).then((store) => store.addAll(fresh)).then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  const old = (name) => name.startsWith(PREFIX) && name !== STORE;
  event.waitUntil(caches.keys().then((names) => Promise.all(names.filter(old).map((name) => caches.delete(name)))).then(() => self.clients.claim()));
});

// The network comes first: who is online never sees an old page.
self.addEventListener("fetch", (event) => {
  const address = event.request.url.split(/[?#]/)[0];
  if (event.request.method !== "GET" || !FILES.includes(address)) return;
  event.respondWith(fetch(event.request).catch(async () => (await (await caches.open(STORE)).match(address)) ?? Response.error()));
});
