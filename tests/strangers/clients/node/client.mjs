// A client of the V2 / Open Inference Protocol over HTTP, with Triton's binary
// tensor data, raw binary request and classification extensions.
//
// A tensor is { name, datatype, shape, data }: data is a Buffer in the binary form
// of the protocol, shape has numbers or BigInts.
import http from 'node:http'
import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { check, decodeUtf8, encodeUtf8, fromJson, toJson } from './codec.mjs'
import { Num, parse } from './json.mjs'

const HEADER_LENGTH = 'Inference-Header-Content-Length'
const CODINGS = {
  gzip: { pack: promisify(zlib.gzip), unpack: promisify(zlib.gunzip) },
  deflate: { pack: promisify(zlib.deflate), unpack: promisify(zlib.inflate) },
}

export class InferenceError extends Error {
  constructor(message, status) {
    super(message)
    this.name = 'InferenceError'
    this.status = status
  }
}

export class Client {
  constructor(base, { timeout = 60_000, maxSockets = Infinity } = {}) {
    this.base = new URL(base)
    this.timeout = timeout
    this.agent = new http.Agent({ keepAlive: true, maxSockets, maxFreeSockets: 256 })
  }

  // Makes one inference: { model, version, id, parameters, inputs, outputs, allOutputs, raw, coding, accepts }.
  // Inputs are tensors with `binary`; outputs have `name`, and may have `binary` and `classes`.
  async infer(asks) {
    let { body, jsonLength } = encode(asks)
    const headers = { 'Content-Type': 'application/json' }
    if (jsonLength !== undefined) {
      headers['Content-Type'] = 'application/octet-stream'
      headers[HEADER_LENGTH] = String(jsonLength)
    }
    if (asks.coding) {
      headers['Content-Encoding'] = asks.coding
      body = await CODINGS[asks.coding].pack(body)
    }
    if (asks.accepts) headers['Accept-Encoding'] = asks.accepts
    headers['Content-Length'] = body.length
    const answer = await this.exchange(this.path(asks), headers, body)
    const content = await decompress(answer)
    if (answer.status !== 200) throw new InferenceError(errorMessage(answer.status, content), answer.status)
    return decode(asks, answer.headers, content)
  }

  path({ model, version }) {
    const prefix = this.base.pathname.replace(/\/+$/, '')
    const versions = version ? `/versions/${encodeURIComponent(version)}` : ''
    return `${prefix}/v2/models/${encodeURIComponent(model)}${versions}/infer`
  }

  // Sends a request. If a kept connection had ended before, without a byte of an answer, tries once more.
  async exchange(path, headers, body) {
    const end = Date.now() + this.timeout
    for (;;) {
      try {
        return await this.send(path, headers, body, end)
      } catch (error) {
        if (!error.stale) throw error
      }
    }
  }

  send(path, headers, body, end) {
    return new Promise((resolve, reject) => {
      const { hostname, port } = this.base
      const host = hostname.replace(/^\[|\]$/g, '')
      const request = http.request({ method: 'POST', host, port, path, headers, agent: this.agent })
      const timer = setTimeout(
        () => request.destroy(new Error('the answer took too long')),
        Math.max(end - Date.now(), 0),
      )
      let answered = false
      const fail = (error) => {
        clearTimeout(timer)
        error.stale = request.reusedSocket && !answered && ['ECONNRESET', 'EPIPE'].includes(error.code)
        reject(error)
      }
      request.on('error', fail)
      request.on('response', (response) => {
        answered = true
        const chunks = []
        response.on('data', (chunk) => chunks.push(chunk))
        response.on('error', fail)
        response.on('end', () => {
          clearTimeout(timer)
          if (!response.complete) return fail(new Error('the answer is cut off'))
          resolve({ status: response.statusCode, headers: response.headersDistinct, content: Buffer.concat(chunks) })
        })
      })
      request.end(body)
    })
  }
}

async function decompress({ headers, content }) {
  const coding = (headers['content-encoding'] ?? ['identity']).join(',').trim().toLowerCase()
  if (coding === 'identity' || coding === '') return content
  const known = CODINGS[coding.replace(/^x-/, '')]
  if (!known) throw new InferenceError(`unknown Content-Encoding ${coding}`)
  return known.unpack(content)
}

function errorMessage(status, content) {
  try {
    const message = parse(decodeUtf8(content)).get('error')
    if (typeof message === 'string') return message
  } catch {
    // No error object: the status has to do.
  }
  return `HTTP status ${status}`
}

// ---- requests

function encode(asks) {
  asks.inputs.forEach(check)
  if (asks.raw) {
    if (asks.inputs.length !== 1 || asks.inputs[0].datatype === 'BYTES') {
      throw new Error('a raw request has one input, and none of BYTES')
    }
    return { body: asks.inputs[0].data, jsonLength: 0 }
  }
  const parameters = { ...asks.parameters }
  if (asks.allOutputs !== undefined) parameters.binary_data_output = asks.allOutputs === 'binary'
  const members = []
  if (asks.id !== undefined) members.push(`"id":${JSON.stringify(asks.id)}`)
  if (Object.keys(parameters).length > 0) members.push(`"parameters":${JSON.stringify(parameters)}`)
  members.push(`"inputs":[${asks.inputs.map(encodeInput).join(',')}]`)
  if (asks.outputs !== undefined) members.push(`"outputs":${JSON.stringify(asks.outputs.map(encodeOutput))}`)
  const head = encodeUtf8(`{${members.join(',')}}`)
  const tails = asks.inputs.filter((input) => input.binary).map((input) => input.data)
  if (tails.length === 0) return { body: head }
  return { body: Buffer.concat([head, ...tails]), jsonLength: head.length }
}

function encodeInput(input) {
  const { name, datatype, shape, binary, data } = input
  const contents = binary ? `"parameters":{"binary_data_size":${data.length}}` : `"data":${toJson(input)}`
  return `{"name":${JSON.stringify(name)},"shape":[${shape.join(',')}],"datatype":"${datatype}",${contents}}`
}

function encodeOutput({ name, binary, classes }) {
  const parameters = {}
  if (binary !== undefined) parameters.binary_data = binary
  if (classes) parameters.classification = classes
  return Object.keys(parameters).length > 0 ? { name, parameters } : { name }
}

// ---- answers

function decode(asks, headers, content) {
  let jsonLength = content.length
  const lengths = headers[HEADER_LENGTH.toLowerCase()]
  if (lengths !== undefined) {
    if (lengths.length > 1 || !/^\d+$/.test(lengths[0].trim())) throw new InferenceError(`${HEADER_LENGTH}: ${lengths}`)
    jsonLength = Number(lengths[0])
    if (jsonLength > content.length) throw new InferenceError(`${HEADER_LENGTH} is ${jsonLength} of ${content.length}`)
  }
  const object = parse(decodeUtf8(content.subarray(0, jsonLength)))
  if (!(object instanceof Map)) throw new InferenceError('the answer is no JSON object')
  const id = object.get('id') ?? undefined
  if (id !== undefined && typeof id !== 'string') throw new InferenceError('id is no string')
  if (id !== undefined && asks.id !== undefined && !asks.raw && id !== asks.id) {
    throw new InferenceError(`the answer has id ${id} instead of ${asks.id}`)
  }
  const items = object.get('outputs')
  if (!Array.isArray(items)) throw new InferenceError(String(object.get('error') ?? 'an answer without outputs'))
  const outputs = []
  let at = jsonLength
  for (const item of items) {
    if (!(item instanceof Map)) throw new InferenceError('an output is no object')
    const tensor = { name: text(item, 'name'), datatype: text(item, 'datatype'), shape: shapeOf(item.get('shape')) }
    if (tensor.datatype === 'STRING') tensor.datatype = 'BYTES' // so the examples of the classification extension
    const size = binarySize(item.get('parameters'))
    if (size === undefined) {
      tensor.data = fromJson(tensor.datatype, tensor.shape, item.get('data'))
    } else {
      if (size > content.length - at) throw new InferenceError(`${size} bytes of ${tensor.name} are not there`)
      if (size > 0 && lengths === undefined) throw new InferenceError(`binary data without ${HEADER_LENGTH}`)
      if (item.get('data')?.length > 0) throw new InferenceError('both data and binary_data_size')
      tensor.data = content.subarray(at, at + size)
      at += size
    }
    check(tensor)
    outputs.push(tensor)
  }
  if (at < content.length) throw new InferenceError(`${content.length - at} bytes follow the binary data`)
  return { id, outputs }
}

function text(item, member) {
  const value = item.get(member)
  if (typeof value !== 'string') throw new InferenceError(`an output without ${member}`)
  return value
}

function shapeOf(value) {
  if (!Array.isArray(value)) throw new InferenceError('an output without shape')
  return value.map((item) => {
    const size = item instanceof Num ? item.integer() : -1n
    if (size !== BigInt.asUintN(64, size)) throw new InferenceError('a dimension that is none')
    return size
  })
}

function binarySize(parameters) {
  if (parameters === undefined || parameters === null) return undefined
  if (!(parameters instanceof Map)) throw new InferenceError('parameters are no object')
  const size = parameters.get('binary_data_size') ?? undefined
  if (size === undefined) return undefined
  const value = size instanceof Num ? size.integer() : -1n
  if (value < 0n || value > 2n ** 53n) throw new InferenceError('binary_data_size is none')
  return Number(value)
}
