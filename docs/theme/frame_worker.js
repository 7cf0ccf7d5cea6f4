// Browsers start no worker for a page that is opened from the disk. There the search runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const base = new URL(url, location).href;
      const waiting = [];
      this.postMessage = (data) => waiting.push(data);
      this.onmessage = null;
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      const load = (address) =>
        new Promise((done, failed) => {
          const script = inside.document.createElement("script");
          Object.assign(script, { src: new URL(address, base).href, onload: done, onerror: failed });
          inside.document.body.append(script);
        });
      inside.importScripts = (...addresses) =>
        addresses.reduce((before, one) => before.then(() => load(one)), Promise.resolve());
      load(base).then(() => {
        this.postMessage = (data) => inside.dispatchEvent(new MessageEvent("message", { data }));
        waiting.splice(0).forEach(this.postMessage);
      });
      this.terminate = () => frame.remove();
    }
  };
}
