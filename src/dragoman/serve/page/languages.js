// Languages as the server lists them.
export const RTL = new Set(["ar", "fa", "he", "ur", "yi", "ps", "sd", "ug", "dv"]);

export function nameOf(code, languages) {
  return languages.find((one) => one.code === code)?.name ?? code;
}
