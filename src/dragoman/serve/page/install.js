// Keeps the page for a time without a network (sw.js), where the browser does so: over HTTPS, and on this machine.
const address = new URL("../sw.js", import.meta.url);
navigator.serviceWorker?.register(address, { updateViaCache: "none" }).catch(() => { /* a private window */ });
