// Tensors: their binary form, and JSON to it and back.
//
// A tensor is {name, datatype, shape, data}; `data` is a Buffer with its binary form: little-endian, row-major, an
// element of BYTES behind its length in four bytes.

export const SIZES = {
  BOOL: 1, UINT8: 1, UINT16: 2, UINT32: 4, UINT64: 8, INT8: 1, INT16: 2, INT32: 4, INT64: 8,
  FP16: 2, BF16: 2, FP32: 4, FP64: 8,
};

const INTEGER = /^(U?)INT(\d+)$/;
const UTF8 = new TextDecoder("utf-8", {fatal: true, ignoreBOM: true});

/** What a tensor cannot be sent as, or an answer that contradicts itself. */
export class TensorError extends Error {}

/** The number of elements that a shape makes. */
export function count(shape) {
  return shape.reduce((product, size) => product * size, 1);
}

/** The elements of a BYTES tensor in binary form. */
export function split(data) {
  const items = [];
  for (let place = 0; place < data.length; ) {
    const end = place + 4 <= data.length ? place + 4 + data.readUInt32LE(place) : Infinity;
    if (end > data.length) throw new TensorError(`an element of BYTES at byte ${place} ends past its tensor`);
    items.push(data.subarray(place + 4, end));
    place = end;
  }
  return items;
}

/** Elements of BYTES, framed. */
export function framed(items) {
  return Buffer.concat(items.flatMap((item) => {
    const prefix = Buffer.alloc(4);
    prefix.writeUInt32LE(item.length);
    return [prefix, item];
  }));
}

/** Throw unless the bytes of a tensor are what its datatype and shape make. */
export function check({name, datatype, shape, data}) {
  if (datatype === "BYTES") {
    const found = split(data).length;
    if (found !== count(shape)) throw new TensorError(`${name}: ${found} elements, the shape has ${count(shape)}`);
  } else if (!(datatype in SIZES)) {
    throw new TensorError(`${name}: no datatype ${datatype}`);
  } else if (data.length !== count(shape) * SIZES[datatype]) {
    throw new TensorError(`${name}: ${data.length} bytes, the shape has ${count(shape) * SIZES[datatype]}`);
  }
}

/** The elements of a tensor as the text of a JSON array; integers are exact. */
export function toJson(tensor) {
  check(tensor);
  const items = tensor.datatype === "BYTES" ? split(tensor.data) : slices(tensor.data, SIZES[tensor.datatype]);
  return `[${items.map((item) => element(tensor.datatype, item)).join(",")}]`;
}

function slices(data, size) {
  return Array.from({length: data.length / size}, (_, place) => data.subarray(place * size, (place + 1) * size));
}

function element(datatype, item) {
  if (datatype === "BYTES") return JSON.stringify(text(item));
  if (datatype === "BOOL") return item[0] ? "true" : "false";
  const [integer, unsigned] = INTEGER.exec(datatype) ?? [];
  if (integer) return String(BigInt[unsigned ? "asUintN" : "asIntN"](item.length * 8, littleEndian(item)));
  if (datatype !== "FP32" && datatype !== "FP64") throw new TensorError(`${datatype} has no JSON form`);
  const number = datatype === "FP32" ? item.readFloatLE() : item.readDoubleLE();
  if (!Number.isFinite(number)) throw new TensorError(`${number} has no JSON form`);
  return Object.is(number, -0) ? "-0.0" : String(number);
}

function text(item) {
  try {
    return UTF8.decode(item);
  } catch {
    throw new TensorError("an element of BYTES that is not UTF-8 has no JSON form");
  }
}

function littleEndian(item) {
  return item.reduceRight((number, byte) => (number << 8n) | BigInt(byte), 0n);
}

/** The binary form of `data` in an answer, as `read` of json.mjs returns it. */
export function fromJson(datatype, data) {
  if (!Array.isArray(data)) throw new TensorError("`data` is no array");
  const items = data.flat(Infinity).map((item) => binary(datatype, item));
  return datatype === "BYTES" ? framed(items) : Buffer.concat(items);
}

function binary(datatype, item) {
  const octets = Buffer.alloc(SIZES[datatype] ?? 0);
  const [integer, unsigned, bits] = INTEGER.exec(datatype) ?? [];
  if (datatype === "BYTES" && typeof item === "string") return Buffer.from(item, "utf8");
  if (datatype === "BOOL" && typeof item === "boolean") octets[0] = item ? 1 : 0;
  else if (datatype === "FP32" && typeof item !== "boolean" && isNumber(item)) octets.writeFloatLE(Number(item));
  else if (datatype === "FP64" && isNumber(item)) octets.writeDoubleLE(Number(item));
  else if (integer && isNumber(item)) writeInteger(octets, BigInt(item), !unsigned, Number(bits));
  else throw new TensorError(`${item} is no element of ${datatype}`);
  return octets;
}

function isNumber(item) {
  return typeof item === "number" || typeof item === "bigint";
}

function writeInteger(octets, number, signed, bits) {
  if (BigInt[signed ? "asIntN" : "asUintN"](bits, number) !== number) {
    throw new TensorError(`${number} is no integer of ${bits} bits`);
  }
  for (let place = 0; place < octets.length; place += 1) octets[place] = Number((number >> BigInt(8 * place)) & 255n);
}
