// A small client of the Open Inference Protocol over HTTP, with binary tensor data, raw binary requests and
// classification. It needs nothing but Node.

import {Agent, request as send} from "node:http";
import {deflateSync, gunzipSync, gzipSync, inflateSync} from "node:zlib";

import {read} from "./json.mjs";
import {check, fromJson, TensorError, toJson} from "./tensors.mjs";

const HEADER = "inference-header-content-length";
const ENCODED = {gzip: gzipSync, deflate: deflateSync};
const DECODED = {gzip: gunzipSync, deflate: inflateSync};

/** An inference that the server refused; `status` is that of HTTP. */
export class RefusedError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** A client of one server; connections are kept. */
export class Client {
  constructor(address, timeout) {
    this.address = address;
    this.timeout = timeout; // seconds, for an inference from its first byte to its last
    this.agent = new Agent({keepAlive: true});
  }

  /**
   * Make an inference.
   *
   * Inputs are tensors with `form`, "binary" or "json"; outputs are {name, form, classes}, or undefined for all of them.
   * Returns {id, outputs}, the outputs as tensors in the order of the answer.
   */
  async infer({model, version, id, inputs, outputs, allOutputs, raw, coding, accepts}) {
    const {head, rest} = raw ? rawBody(inputs) : body({id, inputs, outputs, allOutputs});
    const plain = Buffer.concat([head, ...rest]);
    const octets = coding ? ENCODED[coding](plain) : plain;
    const isBinary = raw || rest.length > 0;
    const headers = {
      "Content-Type": isBinary ? "application/octet-stream" : "application/json",
      "Content-Length": octets.length,
      ...(isBinary ? {"Inference-Header-Content-Length": head.length} : {}),
      ...(coding ? {"Content-Encoding": coding} : {}),
      ...(accepts ? {"Accept-Encoding": accepts} : {}),
    };
    const at = version === undefined ? "" : `/versions/${encodeURIComponent(version)}`;
    const answer = await this.exchange(`/v2/models/${encodeURIComponent(model)}${at}/infer`, headers, octets);
    return results(answer, outputs);
  }

  exchange(path, headers, octets) {
    return new Promise((resolve, reject) => {
      const signal = AbortSignal.timeout(this.timeout * 1000);
      const sent = send(this.address + path, {method: "POST", headers, agent: this.agent, signal}, (answer) => {
        const parts = [];
        answer.on("data", (part) => parts.push(part));
        answer.on("error", reject);
        answer.on("end", () => resolve({status: answer.statusCode, headers: answer.headers, body: Buffer.concat(parts)}));
      });
      sent.on("error", reject);
      sent.end(octets);
    });
  }
}

// --- requests --------------------------------------------------------------------------------------------------------

function rawBody(inputs) {
  if (inputs.length !== 1) throw new TensorError("a raw binary request has one input");
  check(inputs[0]);
  return {head: Buffer.alloc(0), rest: [inputs[0].data]};
}

function body({id, inputs, outputs, allOutputs}) {
  const members = [
    ...(id === undefined ? [] : [`"id":${JSON.stringify(id)}`]),
    `"inputs":[${inputs.map(input).join(",")}]`,
    ...(outputs === undefined ? [] : [`"outputs":${JSON.stringify(outputs.map(wish))}`]),
    ...(allOutputs === undefined ? [] : [`"parameters":{"binary_data_output":${allOutputs === "binary"}}`]),
  ];
  const rest = inputs.filter((tensor) => tensor.form === "binary").map((tensor) => tensor.data);
  return {head: Buffer.from(`{${members.join(",")}}`), rest};
}

function input(tensor) {
  check(tensor);
  const {name, datatype, shape, data, form} = tensor;
  const described = JSON.stringify({name, datatype, shape}).slice(0, -1);
  return form === "binary"
    ? `${described},"parameters":{"binary_data_size":${data.length}}}`
    : `${described},"data":${toJson(tensor)}}`;
}

function wish({name, form, classes}) {
  const parameters = {
    ...(form === undefined ? {} : {binary_data: form === "binary"}),
    ...(classes === undefined ? {} : {classification: classes}),
  };
  return {name, ...(Object.keys(parameters).length > 0 ? {parameters} : {})};
}

// --- answers ---------------------------------------------------------------------------------------------------------

function results({status, headers, body: octets}, wishes) {
  const coding = headers["content-encoding"];
  const plain = coding in DECODED ? DECODED[coding](octets) : octets;
  if (status !== 200) throw new RefusedError(reason(plain) ?? `status ${status}`, status);
  const length = headers[HEADER] === undefined ? plain.length : headerLength(headers[HEADER], plain.length);
  const said = read(plain.subarray(0, length));
  if (!Array.isArray(said?.outputs)) throw new TensorError(`an answer without outputs: ${said?.error ?? ""}`);
  const outputs = tensors(said.outputs, plain.subarray(length));
  for (const {name} of wishes ?? []) {
    if (!outputs.some((output) => output.name === name)) throw new TensorError(`the answer has no output ${name}`);
  }
  return {id: said.id ?? undefined, outputs};
}

function reason(octets) {
  try {
    const said = JSON.parse(octets.toString());
    return typeof said.error === "string" && said.error ? said.error : undefined;
  } catch {
    return octets.toString() || undefined;
  }
}

function headerLength(value, limit) {
  if (!/^\d+$/.test(value) || Number(value) > limit) throw new TensorError(`the inference header cannot be ${value}`);
  return Number(value);
}

function tensors(described, rest) {
  let place = 0;
  const outputs = described.map((output) => {
    const size = output.parameters?.binary_data_size ?? undefined;
    if (size === undefined) return tensor(output, fromJson(output.datatype, output.data));
    if (!Number.isInteger(size) || size < 0 || place + size > rest.length) {
      throw new TensorError(`${output.name}: no ${size} bytes at byte ${place} of ${rest.length}`);
    }
    place += size;
    return tensor(output, rest.subarray(place - size, place));
  });
  if (place !== rest.length) throw new TensorError(`${rest.length - place} bytes of the answer belong to no output`);
  return outputs;
}

function tensor({name, datatype, shape}, data) {
  if (typeof name !== "string") throw new TensorError("an output has no name");
  const isShape = Array.isArray(shape) && shape.every((size) => Number.isInteger(size) && size >= 0);
  if (!isShape) throw new TensorError(`${name}: ${JSON.stringify(shape)} is no shape`);
  const made = {name, datatype, shape, data};
  check(made);
  return made;
}
