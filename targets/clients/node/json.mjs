// JSON with exact integers: JSON.parse reads every number into a double, which holds no 2^53 + 1.

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const EXACT = /^-?\d{16,}$/;

/** Read a JSON text; integers that a double may not hold become BigInts. */
export function read(octets) {
  const text = new TextDecoder("utf-8", {fatal: true}).decode(octets);
  let mark = "!";
  JSON.parse(text, (_, value) => {
    while (typeof value === "string" && value.startsWith(mark)) mark += "!"; // no text begins with the mark
    return value;
  });
  const marked = text.replace(TOKEN, (token) => (EXACT.test(token) ? `"${mark}${token}"` : token));
  const isMarked = (value) => typeof value === "string" && value.startsWith(mark);
  return JSON.parse(marked, (_, value) => (isMarked(value) ? BigInt(value.slice(mark.length)) : value));
}
