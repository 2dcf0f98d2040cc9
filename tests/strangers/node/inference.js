'use strict';

const { isUtf8 } = require('node:buffer');
const { parseJson } = require('./json');
const { MAX_BATCH_SIZE } = require('./models');
const {
  DATATYPES, RequestError, elementCount, fromBinary, fromJsonData, toBinary, toJsonData,
} = require('./tensors');

const MAX_DIMENSION = 2n ** 64n - 1n;
const INFERENCE_HEADER_LENGTH = 'inference-header-content-length';

function demand(condition, message) {
  if (!condition) throw new RequestError(message);
}

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

// ---- Request -----------------------------------------------------------------------------------

/** The length of the JSON object in front of the binary data; undefined if there is no header. */
function inferenceHeaderLength(headers, body) {
  const text = headers[INFERENCE_HEADER_LENGTH];
  if (text === undefined) return undefined;
  demand(/^[0-9]+$/.test(text), 'Inference-Header-Content-Length must be a decimal number');
  demand(Number(text) <= body.length,
    `Inference-Header-Content-Length is ${text}, but the body has ${body.length} bytes`);
  return Number(text);
}

function parseHeader(bytes) {
  demand(isUtf8(bytes), 'the inference request must be JSON in UTF-8');
  let request;
  try {
    request = parseJson(bytes.toString());
  } catch (error) {
    if (error instanceof SyntaxError) throw new RequestError(`malformed JSON: ${error.message}`);
    throw error;
  }
  demand(isObject(request), 'the inference request must be a JSON object');
  return request;
}

/** The parameters of a request, an input or an output. Unknown ones may stand there: they are custom. */
function parametersOf(holder, where) {
  if (holder.parameters === undefined) return {};
  demand(isObject(holder.parameters), `${where}: "parameters" must be an object`);
  for (const [name, value] of Object.entries(holder.parameters)) {
    demand(['string', 'number', 'bigint', 'boolean'].includes(typeof value),
      `${where}: parameter ${JSON.stringify(name)} must be a string, number or boolean`);
  }
  return holder.parameters;
}

function flag(parameters, name, where) {
  const value = parameters[name];
  demand(value === undefined || typeof value === 'boolean', `${where}: "${name}" must be a boolean`);
  return value;
}

/** The declared tensors that the entries of "inputs" or "outputs" name, each at most once. */
function* declaredTensors(entries, declared, kind, model) {
  const seen = new Set();
  for (const [k, entry] of entries.entries()) {
    demand(isObject(entry) && typeof entry.name === 'string',
      `${kind} ${k} must be an object with a "name"`);
    const where = `${kind} ${JSON.stringify(entry.name)}`;
    const tensor = declared.find(({ name }) => name === entry.name);
    demand(tensor, `${where} is unknown to model "${model.name}"`);
    demand(!seen.has(entry.name), `${where} is given twice`);
    seen.add(entry.name);
    yield { entry, tensor, where };
  }
}

/** A model that supports batching has a batch dimension in front of every shape. */
const fullShape = (model, shape, batch = -1) => (model.batching ? [batch, ...shape] : shape);

function checkShape(shape, tensor, model, where) {
  demand(Array.isArray(shape), `${where}: "shape" must be an array`);
  for (const dimension of shape) {
    // "Each dimension must be an integer representable as an unsigned 64-bit integer value."
    demand((Number.isSafeInteger(dimension) || typeof dimension === 'bigint') &&
      dimension >= 0 && dimension <= MAX_DIMENSION, `${where}: "shape" holds no valid dimensions`);
  }
  const expected = fullShape(model, tensor.shape);
  demand(shape.length === expected.length &&
    expected.every((dimension, k) => dimension === -1 || dimension === shape[k]),
  `${where}: shape [${shape}] does not match the model's [${expected}]`);
  demand(!model.batching || (shape[0] >= 1 && shape[0] <= MAX_BATCH_SIZE),
    `${where}: a batch of ${shape[0]}, but the model takes 1 to ${MAX_BATCH_SIZE}`);
}

function readInputs(model, request, binary) {
  demand(Array.isArray(request.inputs), '"inputs" must be an array');
  const inputs = {};
  let at = 0;
  for (const { entry, tensor, where } of declaredTensors(request.inputs, model.inputs, 'input', model)) {
    const { name, datatype } = tensor;
    const { shape, data } = entry;
    demand(entry.datatype === datatype, `${where}: the datatype must be ${datatype}`);
    checkShape(shape, tensor, model, where);
    const size = parametersOf(entry, where).binary_data_size;
    demand((size === undefined) !== (data === undefined),
      `${where} needs either "data" or the parameter "binary_data_size"`);
    if (size === undefined) {
      inputs[name] = { datatype, shape, data: fromJsonData(datatype, shape, data, where) };
      continue;
    }
    demand(Number.isSafeInteger(size) && size >= 0,
      `${where}: "binary_data_size" must be a non-negative integer`);
    demand(binary !== undefined || size === 0,
      `${where}: binary data needs the header Inference-Header-Content-Length`);
    const bytes = binary?.subarray(at, at + size) ?? Buffer.alloc(0);
    demand(bytes.length === size, `${where}: the body ends before its ${size} bytes of binary data`);
    inputs[name] = { datatype, shape, data: fromBinary(datatype, shape, bytes, where) };
    at += size;
  }
  demand(binary === undefined || at === binary.length,
    'the body goes on after the binary data of the inputs');
  for (const { name } of model.inputs) {
    demand(Object.hasOwn(inputs, name), `input "${name}" is missing`);
  }
  const batches = new Set(Object.values(inputs).map(({ shape }) => shape[0]));
  demand(!model.batching || batches.size === 1, 'all inputs must have the same batch size');
  return inputs;
}

function readOutputs(model, request) {
  const { outputs = [] } = request;
  demand(Array.isArray(outputs), '"outputs" must be an array');
  const binaryByDefault =
    flag(parametersOf(request, 'request'), 'binary_data_output', 'request') ?? false;
  // An empty list requests nothing in particular, so it counts as "not specified".
  const entries = outputs.length > 0 ? outputs : model.outputs.map(({ name }) => ({ name }));
  return Array.from(declaredTensors(entries, model.outputs, 'output', model),
    ({ entry, tensor, where }) => {
      const parameters = parametersOf(entry, where);
      const { classification } = parameters;
      demand(classification === undefined ||
        (Number.isSafeInteger(classification) && classification >= 1),
      `${where}: "classification" must be a positive integer`);
      return {
        tensor,
        where,
        classification,
        binary: flag(parameters, 'binary_data', where) ?? binaryByDefault,
      };
    });
}

/** A raw binary request: the body is the data of the only input, whose shape follows from its size. */
function readRawInput(model, body) {
  demand(model.inputs.length === 1,
    `model "${model.name}" has several inputs, so it takes no raw binary request`);
  const [{ name, datatype, shape }] = model.inputs;
  const where = `input "${name}"`;
  const variable = shape.filter((dimension) => dimension === -1).length;
  let itemShape = shape;
  if (datatype === 'BYTES') {
    demand(shape.length === 1 && shape[0] === 1,
      `${where}: a raw binary request with BYTES needs a model of shape [1]`);
  } else {
    demand(variable <= 1, `${where}: its shape cannot be deduced from the size of the binary data`);
    const step = elementCount(shape.filter((dimension) => dimension !== -1)) *
      DATATYPES[datatype].ArrayType.BYTES_PER_ELEMENT;
    demand(variable === 0 || body.length % step === 0,
      `${where}: ${body.length} bytes of binary data, but the size must be a multiple of ${step}`);
    itemShape = shape.map((dimension) => (dimension === -1 ? body.length / step : dimension));
  }
  // "If the model supports batching, the request will be treated as batch-1 request."
  const full = fullShape(model, itemShape, 1);
  return { [name]: { datatype, shape: full, data: fromBinary(datatype, full, body, where) } };
}

function readRequest(model, headers, body) {
  const headerLength = inferenceHeaderLength(headers, body);
  if (headerLength === 0) {
    const request = { parameters: { binary_data_output: true } };
    return { inputs: readRawInput(model, body), outputs: readOutputs(model, request) };
  }
  const request = parseHeader(body.subarray(0, headerLength));
  const { id } = request;
  demand(id === undefined || typeof id === 'string', '"id" must be a string');
  const binary = headerLength === undefined ? undefined : body.subarray(headerLength);
  // The outputs come first: they are cheap to check.
  const outputs = readOutputs(model, request);
  return { id, inputs: readInputs(model, request, binary), outputs };
}

// ---- Classification ----------------------------------------------------------------------------

function classify({ datatype, shape, data }, count, { batching }, labels = [], where) {
  const { decode, text } = DATATYPES[datatype];
  demand(text, `${where}: ${datatype} has no order to classify by`);
  const items = batching ? shape[0] : 1;
  const classes = data.length / items;
  // The returned dimension "will equal" the count, so it cannot be cut down to the classes.
  demand(count <= classes, `${where}: ${count} classes requested of ${classes}`);
  const elements = [];
  for (let item = 0; item < items; item++) {
    const values = Array.from(data.subarray(item * classes, (item + 1) * classes), decode);
    demand(!values.some(Number.isNaN), `${where}: NaN cannot be ranked`);
    // The sort is stable: of equal values the lower index comes first.
    const ranking = Array.from(values.keys())
      .sort((a, b) => (values[a] < values[b]) - (values[a] > values[b]));
    for (const index of ranking.slice(0, count)) {
      const label = index < labels.length ? `:${labels[index]}` : '';
      elements.push(Buffer.from(`${text(values[index])}:${index}${label}`));
    }
  }
  return { datatype: 'BYTES', shape: batching ? [items, count] : [count], data: elements };
}

// ---- Response ----------------------------------------------------------------------------------

function encodeResponse(model, id, outputs) {
  const chunks = [];
  const tensors = outputs.map(({ tensor, binary, where, name }) => {
    // Written by hand, because JSON.stringify knows neither BigInt nor -0.0.
    const head = `"name":${JSON.stringify(name)},"datatype":"${tensor.datatype}",` +
      `"shape":[${tensor.shape}]`;
    if (!binary) return `{${head},"data":${toJsonData(tensor, where)}}`;
    const bytes = toBinary(tensor);
    chunks.push(bytes);
    return `{${head},"parameters":{"binary_data_size":${bytes.length}}}`;
  });
  const json = Buffer.from(`{"model_name":${JSON.stringify(model.name)},` +
    `${id === undefined ? '' : `"id":${JSON.stringify(id)},`}"outputs":[${tensors.join(',')}]}`);
  // Needed for binary data of no bytes as well: its size parameter calls for it.
  if (chunks.length === 0) return { headers: { 'Content-Type': 'application/json' }, body: json };
  return {
    headers: {
      'Content-Type': 'application/octet-stream',
      'Inference-Header-Content-Length': json.length,
    },
    body: Buffer.concat([json, ...chunks]),
  };
}

/** Answers an inference request: { headers, body }, or throws a RequestError. */
function infer(model, headers, body) {
  const { id, inputs, outputs } = readRequest(model, headers, body);
  const computed = model.compute(inputs, model);
  const answers = outputs.map(({ tensor: { name, datatype }, where, classification, binary }) => {
    const tensor = { datatype, ...computed[name] };
    if (elementCount(tensor.shape) !== tensor.data.length) {
      throw new Error(`model ${model.name}: data and shape of output ${name} disagree`);
    }
    return {
      name,
      where,
      binary,
      tensor: classification === undefined
        ? tensor : classify(tensor, classification, model, model.labels[name], where),
    };
  });
  return encodeResponse(model, id, answers);
}

function metadata(model) {
  const describe = ({ name, datatype, shape }) =>
    ({ name, datatype, shape: fullShape(model, shape) });
  return {
    name: model.name,
    platform: 'nodejs_function',
    inputs: model.inputs.map(describe),
    outputs: model.outputs.map(describe),
  };
}

module.exports = { infer, metadata };
