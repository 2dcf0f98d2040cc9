// Adapter of the client in client.mjs, for `pytest --client-adapter="node targets/clients/node/adapter.mjs"`.

import {createInterface} from "node:readline";

import {Client} from "./client.mjs";

const INTRODUCTION = {name: "oip-node", version: "1.0.0", language: "JavaScript", transports: ["http"]};

const clients = new Map();

function clientOf(address, timeout) {
  const key = `${address} ${timeout}`;
  if (!clients.has(key)) clients.set(key, new Client(address, timeout));
  return clients.get(key);
}

const decoded = (tensor) => ({...tensor, data: Buffer.from(tensor.data, "base64")});
const encoded = ({name, datatype, shape, data}) => ({name, datatype, shape, data: data.toString("base64")});

/** Why the client has no way to make an inference, or undefined. */
function reason(inference) {
  const hasBytes = inference.inputs.some((input) => input.datatype === "BYTES");
  if (inference.raw && hasBytes) return "raw requests of BYTES are not made: the documents frame them in two ways";
  const isShort = inference.inputs.some((input) => input.form === "json" && ["FP16", "BF16"].includes(input.datatype));
  return isShort ? "FP16 and BF16 have no JSON form" : undefined;
}

async function result(client, inference) {
  const cannot = reason(inference);
  if (cannot) return {cannot};
  try {
    const asked = {...inference, allOutputs: inference.all_outputs, inputs: inference.inputs.map(decoded)};
    const {id, outputs} = await client.infer(asked);
    return {outputs: outputs.map(encoded), ...(id === undefined ? {} : {id})};
  } catch (error) {
    const status = error.status === undefined ? {} : {status: error.status};
    return {error: {message: error.message || String(error), ...status}};
  }
}

async function results({address, timeout_s: timeout, at_once: atOnce, inferences}) {
  const client = clientOf(address, timeout);
  if (atOnce) return Promise.all(inferences.map((inference) => result(client, inference)));
  const made = [];
  for (const inference of inferences) made.push(await result(client, inference));
  return made;
}

for await (const line of createInterface({input: process.stdin})) {
  const command = JSON.parse(line);
  const said = command.command === "hello" ? {client: INTRODUCTION} : {results: await results(command)};
  process.stdout.write(`${JSON.stringify({seq: command.seq, ...said})}\n`);
}
process.exit(0);
