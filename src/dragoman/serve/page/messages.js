// Texts of the page in the language of the person who reads them. The English text is the key.
const shown = (value) => (typeof value === "number" ? value.toLocaleString() : value);
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (whole, name) => shown(values[name] ?? whole));

export const t = (text, values = {}) => fill(text, values);

// A text about a number of things.
t.n = (n, one, several, values = {}) => fill(n === 1 ? one : several, { n, ...values });
