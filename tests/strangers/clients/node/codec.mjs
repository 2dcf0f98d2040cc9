// Elements of tensors, from binary data to JSON and back.
import { Num } from './json.mjs'

export const SIZES = {
  BOOL: 1, UINT8: 1, INT8: 1, UINT16: 2, INT16: 2, FP16: 2, BF16: 2, UINT32: 4, INT32: 4, FP32: 4,
  UINT64: 8, INT64: 8, FP64: 8,
}
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export const decodeUtf8 = (data) => utf8.decode(data)

export function encodeUtf8(text) {
  if (!text.isWellFormed()) throw new Error('a string with a lone surrogate')
  return Buffer.from(text, 'utf8')
}

export const count = (shape) => shape.reduce((product, size) => product * BigInt(size), 1n)

export function sizeOf(datatype) {
  if (!Object.hasOwn(SIZES, datatype)) throw new Error(`unknown datatype ${datatype}`)
  return SIZES[datatype]
}

// Throws unless the data fit the datatype and the shape.
export function check({ datatype, shape, data }) {
  const elements = count(shape)
  if (datatype === 'BYTES') {
    const parts = split(data).length
    if (elements !== BigInt(parts)) throw new Error(`${parts} elements instead of ${elements}`)
    return
  }
  if (elements * BigInt(sizeOf(datatype)) !== BigInt(data.length)) {
    throw new Error(`${data.length} bytes for ${elements} elements of ${datatype}`)
  }
  if (datatype === 'BOOL' && data.some((one) => one > 1)) throw new Error('a byte that is no BOOL')
}

// The elements of the binary form of a BYTES tensor.
export function split(data) {
  const parts = []
  for (let at = 0; at < data.length; ) {
    if (data.length - at < 4) throw new Error('a length of BYTES is cut off')
    const length = data.readUInt32LE(at)
    at += 4
    if (length > data.length - at) throw new Error('an element of BYTES is cut off')
    parts.push(data.subarray(at, at + length))
    at += length
  }
  return parts
}

export function join(parts) {
  return Buffer.concat(
    parts.flatMap((part) => {
      const length = Buffer.alloc(4)
      length.writeUInt32LE(part.length)
      return [length, part]
    }),
  )
}

const READERS = {
  BOOL: (data, at) => data[at] !== 0,
  UINT8: (data, at) => data.readUInt8(at),
  INT8: (data, at) => data.readInt8(at),
  UINT16: (data, at) => data.readUInt16LE(at),
  INT16: (data, at) => data.readInt16LE(at),
  UINT32: (data, at) => data.readUInt32LE(at),
  INT32: (data, at) => data.readInt32LE(at),
  UINT64: (data, at) => data.readBigUInt64LE(at),
  INT64: (data, at) => data.readBigInt64LE(at),
  FP16: (data, at) => fromSmall(data.readUInt16LE(at), 5),
  BF16: (data, at) => fromSmall(data.readUInt16LE(at), 8),
  FP32: (data, at) => data.readFloatLE(at),
  FP64: (data, at) => data.readDoubleLE(at),
}

// The elements of a tensor as the text of a flat JSON array.
export function toJson({ datatype, data }) {
  if (datatype === 'BYTES') return JSON.stringify(split(data).map(decodeUtf8))
  const size = sizeOf(datatype)
  const items = []
  for (let at = 0; at < data.length; at += size) {
    const value = READERS[datatype](data, at)
    if (typeof value === 'number' && !Number.isFinite(value)) throw new Error(`JSON cannot represent ${value}`)
    items.push(Object.is(value, -0) ? '-0.0' : String(value))
  }
  return `[${items.join(',')}]`
}

function flatten(items, shape, depth, flat) {
  if (!Array.isArray(items) || depth >= shape.length || BigInt(items.length) !== BigInt(shape[depth])) {
    throw new Error('the nesting of data is not that of the shape')
  }
  for (const item of items) {
    if (depth < shape.length - 1) flatten(item, shape, depth + 1, flat)
    else flat.push(item)
  }
}

// The binary data of a JSON array, flat or nested as the shape is.
export function fromJson(datatype, shape, items) {
  if (!Array.isArray(items)) throw new Error('no array of data')
  let flat = items
  if (items.some(Array.isArray)) {
    flat = []
    flatten(items, shape, 0, flat)
  }
  if (BigInt(flat.length) !== count(shape)) throw new Error(`${flat.length} elements instead of ${count(shape)}`)
  if (datatype === 'BYTES') {
    return join(
      flat.map((item) => {
        if (typeof item !== 'string') throw new Error('an element of BYTES is no string')
        return encodeUtf8(item)
      }),
    )
  }
  const size = sizeOf(datatype)
  const data = Buffer.alloc(size * flat.length)
  flat.forEach((item, index) => put(data, index * size, datatype, size, item))
  return data
}

function put(data, at, datatype, size, item) {
  if (datatype === 'BOOL') {
    if (typeof item !== 'boolean') throw new Error('an element of BOOL is no boolean')
    data[at] = item ? 1 : 0
    return
  }
  if (!(item instanceof Num)) throw new Error(`an element of ${datatype} is no number`)
  if (datatype.includes('F')) {
    const value = Number(item.text)
    if (!Number.isFinite(datatype === 'FP32' ? Math.fround(value) : value)) {
      throw new Error(`${item.text} is out of range`)
    }
    if (datatype === 'FP64') data.writeDoubleLE(value, at)
    else if (datatype === 'FP32') data.writeFloatLE(value, at)
    else data.writeUInt16LE(toSmall(value, datatype === 'FP16' ? 5 : 8), at)
    return
  }
  const value = item.integer()
  const bits = size * 8
  const wrapped = datatype.startsWith('U') ? BigInt.asUintN(bits, value) : BigInt.asIntN(bits, value)
  if (wrapped !== value) throw new Error(`${item.text} is no ${datatype}`)
  let word = BigInt.asUintN(64, value)
  for (let i = 0; i < size; i++) {
    data[at + i] = Number(word & 255n)
    word >>= 8n
  }
}

// The value of a float of 16 bits with so many exponent bits.
export function fromSmall(word, exponentBits) {
  const mantissaBits = 15 - exponentBits
  const bias = 2 ** (exponentBits - 1) - 1
  const exponent = (word >> mantissaBits) & (2 ** exponentBits - 1)
  const mantissa = word & (2 ** mantissaBits - 1)
  let value
  if (exponent === 2 ** exponentBits - 1) value = mantissa ? NaN : Infinity
  else if (exponent === 0) value = mantissa * 2 ** (1 - bias - mantissaBits)
  else value = (mantissa + 2 ** mantissaBits) * 2 ** (exponent - bias - mantissaBits)
  return word & 0x8000 ? -value : value
}

// Rounds to the nearest float of 16 bits, half to even.
export function toSmall(value, exponentBits) {
  const mantissaBits = 15 - exponentBits
  const bias = 2 ** (exponentBits - 1) - 1
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0
  const magnitude = Math.abs(value)
  let exponent = 1 - bias
  while (exponent <= bias && magnitude >= 2 ** (exponent + 1)) exponent++
  if (exponent > bias) throw new Error(`${value} is out of range`)
  const scaled = magnitude / 2 ** (exponent - mantissaBits)
  let steps = Math.floor(scaled)
  const rest = scaled - steps
  if (rest > 0.5 || (rest === 0.5 && steps % 2 === 1)) steps++
  // A carry goes on into the exponent, and from subnormal to normal.
  const word = (exponent + bias - 1) * 2 ** mantissaBits + steps
  if (word >= (2 ** exponentBits - 1) * 2 ** mantissaBits) throw new Error(`${value} is out of range`)
  return sign | word
}
