// What this browser keeps between visits.
export const stored = {
  read(name, otherwise) {
    try { return JSON.parse(localStorage.getItem(`dragoman.${name}`)) ?? otherwise; } catch { return otherwise; }
  },
  write(name, value) {
    try { localStorage.setItem(`dragoman.${name}`, JSON.stringify(value)); } catch { /* a private window */ }
  },
};
