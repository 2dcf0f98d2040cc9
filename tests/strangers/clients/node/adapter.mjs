// An adapter of the client for oip-conformance: JSON lines over stdin and stdout.
import { createInterface } from 'node:readline'
import { Client } from './client.mjs'

const ME = { name: 'outside-node', version: '1.0', language: 'JavaScript', transports: ['http'] }
const clients = new Map()

function clientFor(address, timeout) {
  const key = `${timeout} ${address}`
  if (!clients.has(key)) clients.set(key, new Client(address, { timeout: timeout * 1000 }))
  return clients.get(key)
}

const binary = (form) => (form === undefined ? undefined : form === 'binary')

function request(asks) {
  return {
    ...asks,
    inputs: asks.inputs.map(({ form, data, ...rest }) => {
      return { ...rest, data: Buffer.from(data, 'base64'), binary: binary(form) }
    }),
    outputs: asks.outputs?.map(({ form, ...rest }) => ({ ...rest, binary: binary(form) })),
    allOutputs: asks.all_outputs,
  }
}

// A dimension may be larger than a number of JavaScript can be.
const spelled = (value) =>
  JSON.stringify(value, (_, one) => (typeof one === 'bigint' ? `\u0001${one}\u0001` : one)).replace(
    /"\\u0001(\d+)\\u0001"/g,
    '$1',
  )

async function infer(client, asks) {
  try {
    const { id, outputs } = await client.infer(request(asks))
    return { id, outputs: outputs.map((one) => ({ ...one, data: one.data.toString('base64') })) }
  } catch (error) {
    return { error: { message: String(error.message), status: error.status } }
  }
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const command = JSON.parse(line)
  const said = { seq: command.seq }
  if (command.command === 'hello') {
    said.client = ME
  } else {
    const client = clientFor(command.address, command.timeout_s)
    if (command.at_once) {
      said.results = await Promise.all(command.inferences.map((asks) => infer(client, asks)))
    } else {
      said.results = []
      for (const asks of command.inferences) said.results.push(await infer(client, asks))
    }
  }
  process.stdout.write(spelled(said) + '\n')
}
