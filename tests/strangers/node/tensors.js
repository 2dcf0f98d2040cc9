'use strict';

const { isUtf8 } = require('node:buffer');
const { endianness } = require('node:os');

// Typed arrays have the byte order of the machine, the wire has little-endian.
if (endianness() !== 'LE') throw new Error('this server needs a little-endian machine');

/** What the client did wrong; everything else that is thrown is the server's fault. */
class RequestError extends Error {
  constructor(message, status = 400, headers = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

/**
 * Binary floating point of 16 bits, kept as bits in a Uint16Array: a tensor that is only passed
 * on keeps its NaN payloads. Rounds to nearest, ties to even.
 */
function float16Bits(exponentBits, mantissaBits) {
  const bias = 2 ** (exponentBits - 1) - 1;
  const minExponent = 1 - bias;
  const infinity = (2 ** exponentBits - 1) << mantissaBits;
  const double = new Float64Array(1);
  const words = new Uint32Array(double.buffer);

  return {
    encode(number) {
      double[0] = number;
      const sign = (words[1] >>> 31) << 15;
      if (Number.isNaN(number)) return infinity | (1 << (mantissaBits - 1));
      if (!Number.isFinite(number)) return sign | infinity;
      const exponent = Math.max(((words[1] >>> 20) & 0x7ff) - 1023, minExponent);
      const scaled = Math.abs(number) * 2 ** (mantissaBits - exponent);
      const mantissa = scaled + 2 ** 52 - 2 ** 52; // rounded as doubles are, ties to even
      // The hidden bit of a normal number, or the carry of the rounding, raises the exponent.
      return sign | Math.min(((exponent - minExponent) << mantissaBits) + mantissa, infinity);
    },
    decode(bits) {
      const sign = bits & 0x8000 ? -1 : 1;
      const magnitude = bits & 0x7fff;
      const mantissa = magnitude & (2 ** mantissaBits - 1);
      const exponent = magnitude >>> mantissaBits;
      if (magnitude >= infinity) return mantissa ? NaN : sign * Infinity;
      if (exponent === 0) return sign * mantissa * 2 ** (minExponent - mantissaBits);
      return sign * (mantissa + 2 ** mantissaBits) * 2 ** (exponent - bias - mantissaBits);
    },
  };
}

/** The fewest digits that give the value back once rounded to its datatype: FP32 3.3 is "3.3". */
function shortestDecimal(value, round) {
  if (Object.is(value, -0)) return '-0';
  for (let digits = 1; digits < 17; digits++) {
    const candidate = Number(value.toPrecision(digits));
    if (round(candidate) === value) return String(candidate);
  }
  return String(value);
}

// Each datatype has: ArrayType, what its tensors are stored in; fromJson, the stored form of a JSON
// value or undefined; toJson, the JSON text of an element or undefined; decode, its number; and
// text, for classification, if its elements have an order.

const same = (value) => value;

const integer = (ArrayType, min, max) => ({
  ArrayType,
  decode: same,
  encode: same,
  fromJson: (value) => (Number.isInteger(value) && value >= min && value <= max ? value : undefined),
  toJson: String,
  text: String,
});

const integer64 = (ArrayType, min, max) => ({
  ArrayType,
  decode: same,
  encode: same,
  fromJson(value) {
    if (typeof value !== 'bigint' && !Number.isSafeInteger(value)) return undefined;
    const big = BigInt(value);
    return big >= min && big <= max ? big : undefined;
  },
  toJson: String,
  text: String,
});

const float = (ArrayType, encode = same, decode = same) => ({
  ArrayType,
  decode,
  encode,
  fromJson(value) {
    if (typeof value !== 'number' && typeof value !== 'bigint') return undefined;
    const stored = encode(Number(value));
    return Number.isFinite(decode(stored)) ? stored : undefined;
  },
  toJson(stored) {
    const value = decode(stored);
    if (Object.is(value, -0)) return '-0.0';
    return Number.isFinite(value) ? String(value) : undefined;
  },
  text: (value) => shortestDecimal(value, (number) => decode(encode(number))),
});

const HALF = float16Bits(5, 10);
const BFLOAT = float16Bits(8, 7);

const DATATYPES = {
  BOOL: {
    ArrayType: Uint8Array,
    decode: same,
    encode: same,
    fromJson: (value) => (typeof value === 'boolean' ? Number(value) : undefined),
    toJson: (stored) => (stored ? 'true' : 'false'),
  },
  UINT8: integer(Uint8Array, 0, 0xff),
  UINT16: integer(Uint16Array, 0, 0xffff),
  UINT32: integer(Uint32Array, 0, 0xffffffff),
  UINT64: integer64(BigUint64Array, 0n, 2n ** 64n - 1n),
  INT8: integer(Int8Array, -(2 ** 7), 2 ** 7 - 1),
  INT16: integer(Int16Array, -(2 ** 15), 2 ** 15 - 1),
  INT32: integer(Int32Array, -(2 ** 31), 2 ** 31 - 1),
  INT64: integer64(BigInt64Array, -(2n ** 63n), 2n ** 63n - 1n),
  // The protocol calls FP16 and BF16 in JSON "problematic", not wrong: a JSON number is the
  // element's value, never its bits.
  FP16: float(Uint16Array, HALF.encode, HALF.decode),
  BF16: float(Uint16Array, BFLOAT.encode, BFLOAT.decode),
  FP32: float(Float32Array, Math.fround),
  FP64: float(Float64Array),
  BYTES: {
    ArrayType: Array, // of Buffer
    // A lone surrogate has no UTF-8 form; Buffer.from would put U+FFFD in its place.
    fromJson: (value) =>
      (typeof value === 'string' && value.isWellFormed() ? Buffer.from(value) : undefined),
    toJson: (element) => (isUtf8(element) ? JSON.stringify(element.toString()) : undefined),
  },
};

// Dimensions may be BigInt (up to 2^64 - 1 beside a zero), so multiply as doubles: a product too
// large to be exact equals no length that a body can have.
const elementCount = (shape) => shape.reduce((count, dimension) => count * Number(dimension), 1);

/** The elements of "data" in row-major order, given either nested as the shape says or flat. */
function flatten(data, shape, where) {
  const mismatch = () => new RequestError(`${where}: "data" does not match the shape [${shape}]`);
  if (!Array.isArray(data)) throw new RequestError(`${where}: "data" must be an array`);
  if (!data.some((element) => Array.isArray(element))) {
    if (data.length !== elementCount(shape)) throw mismatch();
    return data;
  }
  const flat = [];
  const walk = (level, depth) => {
    if (level.length !== shape[depth]) throw mismatch();
    const innermost = depth === shape.length - 1;
    for (const element of level) {
      if (Array.isArray(element) === innermost) throw mismatch();
      if (innermost) flat.push(element);
      else walk(element, depth + 1);
    }
  };
  walk(data, 0);
  return flat;
}

function fromJsonData(datatype, shape, data, where) {
  const { ArrayType, fromJson } = DATATYPES[datatype];
  const elements = flatten(data, shape, where);
  const stored = new ArrayType(elements.length);
  for (let k = 0; k < elements.length; k++) {
    const value = fromJson(elements[k]);
    if (value === undefined) {
      throw new RequestError(`${where}: element ${k} of "data" is not a valid ${datatype} value`);
    }
    stored[k] = value;
  }
  return stored;
}

function toJsonData({ datatype, data }, where) {
  const { toJson } = DATATYPES[datatype];
  const texts = Array.from(data, (element, k) => {
    const text = toJson(element);
    if (text === undefined) {
      const what = datatype === 'BYTES' ? 'not UTF-8 text' : 'NaN or infinite';
      throw new RequestError(
        `${where}: element ${k} is ${what}, which JSON cannot represent; request it as binary data`);
    }
    return text;
  });
  return `[${texts.join(',')}]`;
}

function fromBinary(datatype, shape, bytes, where) {
  const count = elementCount(shape);
  if (datatype === 'BYTES') return splitBytes(bytes, count, where);
  const { ArrayType } = DATATYPES[datatype];
  const size = count * ArrayType.BYTES_PER_ELEMENT;
  if (bytes.length !== size) {
    throw new RequestError(`${where}: ${bytes.length} bytes of binary data, but ${datatype} of ` +
      `shape [${shape}] takes ${size}`);
  }
  if (datatype === 'BOOL' && bytes.some((byte) => byte > 1)) {
    throw new RequestError(`${where}: a BOOL in binary data must be a byte of 0 or 1`);
  }
  return new ArrayType(new Uint8Array(bytes).buffer); // copied, for alignment
}

function splitBytes(bytes, count, where) {
  const elements = [];
  let at = 0;
  while (at < bytes.length) {
    const start = at + 4;
    const end = start <= bytes.length ? start + bytes.readUInt32LE(at) : Infinity;
    if (end > bytes.length) {
      throw new RequestError(`${where}: BYTES element ${elements.length} exceeds the binary data`);
    }
    elements.push(bytes.subarray(start, end));
    at = end;
  }
  if (elements.length !== count) {
    throw new RequestError(
      `${where}: ${elements.length} BYTES elements in the binary data, but the shape has ${count}`);
  }
  return elements;
}

function toBinary({ datatype, data }) {
  if (datatype !== 'BYTES') return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const bytes = Buffer.allocUnsafe(data.reduce((size, element) => size + 4 + element.length, 0));
  let at = 0;
  for (const element of data) {
    at = bytes.writeUInt32LE(element.length, at);
    at += element.copy(bytes, at);
  }
  return bytes;
}

/** The data of a numeric tensor converted to another datatype. */
function cast({ datatype, data }, target) {
  const { decode } = DATATYPES[datatype];
  const { ArrayType, encode } = DATATYPES[target];
  return ArrayType.from(data, (stored) => encode(decode(stored)));
}

module.exports = {
  BFLOAT, DATATYPES, HALF, RequestError,
  cast, elementCount, fromBinary, fromJsonData, toBinary, toJsonData,
};
