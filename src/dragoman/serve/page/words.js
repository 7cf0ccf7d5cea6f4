// English texts for codes, which the server has, too: `remarks` by kind, `refusals` by status.
export const words = await (await fetch(new URL("./words.json", import.meta.url))).json();
