'use strict';

const { HALF, DATATYPES, RequestError, cast } = require('./tensors');

const MAX_BATCH_SIZE = 8;
const MAX_EMITTED = 2_000_000;

// A compute function takes the input tensors by name ({ datatype, shape, data }) and returns the
// output tensors by name ({ shape, data }). Shapes include the batch dimension.

const vector = (data) => ({ shape: [data.length], data });

/** Each output is the input of the same position, as the output's datatype. */
function convert(inputs, model) {
  const tensors = model.inputs.map(({ name }) => inputs[name]);
  return Object.fromEntries(model.outputs.map(({ name, datatype }, k) => {
    const { shape, data } = tensors[k];
    return [name, { shape, data: tensors[k].datatype === datatype ? data : cast(tensors[k], datatype) }];
  }));
}

function storeExactly(datatype, value) {
  const stored = DATATYPES[datatype].fromJson(value);
  if (stored === undefined) throw new RequestError(`the result ${value} is out of range for ${datatype}`);
  return stored;
}

function addSub({ A, B }) {
  if (A.data.length !== B.data.length) throw new RequestError('A and B must have the same shape');
  const each = (compute) =>
    vector(A.data.map((a, k) => storeExactly('INT32', compute(a, B.data[k]))));
  return { SUM: each((a, b) => a + b), DIFFERENCE: each((a, b) => a - b) };
}

function emit({ COUNTS }) {
  const [numbers, texts] = COUNTS.data;
  if (Math.min(numbers, texts) < 0 || Math.max(numbers, texts) > MAX_EMITTED) {
    throw new RequestError(`COUNTS must be between 0 and ${MAX_EMITTED}`);
  }
  return {
    NUMBERS: vector(Int32Array.from({ length: numbers }, (_, k) => k + 1)),
    TEXTS: vector(Array.from({ length: texts }, (_, k) => Buffer.from(`t${k + 1}`))),
  };
}

function weightedSum({ INPUT }) {
  let sum = 0n;
  INPUT.data.forEach((value, k) => { sum += BigInt(k + 1) * BigInt(value); });
  return { OUTPUT: vector(BigInt64Array.of(storeExactly('INT64', sum))) };
}

const EXAMPLE_SCORES = [1.1, 3.3, 0.5, 2.4];

function exampleScores({ input0 }) {
  const scores = Array.from(input0.data, (value) => EXAMPLE_SCORES[value - 1]);
  if (scores.includes(undefined)) throw new RequestError('input0 must hold numbers from 1 to 4');
  return { output0: vector(Float32Array.from(scores)) };
}

/** The first rows of two tensors side by side, as in the documents' examples. */
const rows = (count, left, right) =>
  ({ shape: [count, 2], data: Array.from({ length: 2 * count }, (_, k) => (k % 2 ? right : left)(k >> 1)) });

function documentedBinary({ input0, input1 }) {
  const { shape, data } = rows(3, (k) => input1.data[k], (k) => input0.data[k]);
  return { output0: { shape, data: Float32Array.from(data) } };
}

function documentedMixed({ input0, input1, input2 }) {
  const { shape, data } = rows(3, (k) => HALF.encode(input2.data[k]), (k) => input0.data[k]);
  const sum = Float32Array.from(input1.data, (value, k) => HALF.decode(input0.data[k]) + value);
  return { output0: { shape, data: Uint16Array.from(data) }, output1: { shape: [2, 2], data: sum } };
}

function documentedAllOutputs({ input_tensor: { data: [a, b] } }) {
  return {
    output_tensor0: { shape: [3, 2], data: Uint16Array.from([a, b, b, a, 0, 0], HALF.encode) },
    output_tensor1: { shape: [2, 2], data: Float32Array.of(a, b, b, a) },
  };
}

const documentedRaw = ({ input: { data } }) => ({
  output0: { shape: [3, 1], data: data.slice(0, 3) },
  output1: { shape: [3, 1], data: data.slice(1, 4) },
});

const rawTwoOutputs = ({ INPUT: { shape, data } }) => ({
  NUMBER: { shape, data },
  TEXT: { shape, data: Array.from(data, (value) => Buffer.from(String(value))) },
});

const stringLength = ({ INPUT: { shape, data } }) =>
  ({ LENGTH: { shape, data: Int32Array.from(data, (element) => element.length) } });

const batching = true;
const ANIMALS = ['cat', 'dog', 'bird', 'fish'];
const SCORES = ['INPUT FP32 [4]', 'SCORES FP32 [4]', convert];

// name: [inputs, outputs, compute, { batching, labels }]
const TABLE = {
  ...Object.fromEntries(Object.keys(DATATYPES).map((datatype) => [
    `identity_${datatype.toLowerCase()}`,
    [`INPUT ${datatype} [-1]`, `OUTPUT ${datatype} [-1]`, convert],
  ])),
  rank0: ['INPUT INT32 []', 'OUTPUT INT32 []', convert],
  rank2: ['INPUT INT32 [-1, -1]', 'OUTPUT INT32 [-1, -1]', convert],
  rank3: ['INPUT INT16 [-1, -1, -1]', 'OUTPUT INT16 [-1, -1, -1]', convert],
  rank4: ['INPUT FP64 [-1, -1, -1, -1]', 'OUTPUT FP64 [-1, -1, -1, -1]', convert],
  rank2_bytes: ['INPUT BYTES [-1, -1]', 'OUTPUT BYTES [-1, -1]', convert],
  batching: ['INPUT INT32 [3]', 'OUTPUT INT32 [3]', convert, { batching }],
  fixed: ['INPUT INT32 [2, 3]', 'OUTPUT INT32 [2, 3]', convert],
  multi: [
    'IN_INT64 INT64 [-1], IN_BOOL BOOL [-1], IN_FP32 FP32 [-1], IN_BYTES BYTES [-1]',
    'OUT_INT64 INT64 [-1], OUT_BOOL BOOL [-1], OUT_FP32 FP32 [-1], OUT_BYTES BYTES [-1]', convert],
  emit: ['COUNTS INT32 [2]', 'NUMBERS INT32 [-1], TEXTS BYTES [-1]', emit],
  cast_int32_fp32: ['INPUT INT32 [-1]', 'OUTPUT FP32 [-1]', convert],
  cast_fp16_fp32: ['INPUT FP16 [-1]', 'OUTPUT FP32 [-1]', convert],
  cast_fp32_fp16: ['INPUT FP32 [-1]', 'OUTPUT FP16 [-1]', convert],
  cast_bf16_fp32: ['INPUT BF16 [-1]', 'OUTPUT FP32 [-1]', convert],
  cast_fp32_bf16: ['INPUT FP32 [-1]', 'OUTPUT BF16 [-1]', convert],
  add_sub: ['B INT32 [-1], A INT32 [-1]', 'SUM INT32 [-1], DIFFERENCE INT32 [-1]', addSub],
  string_length: ['INPUT BYTES [-1]', 'LENGTH INT32 [-1]', stringLength],
  weighted_sum: ['INPUT INT32 [-1, -1]', 'OUTPUT INT64 [1]', weightedSum],
  raw_fixed: ['INPUT INT32 [2, 2]', 'OUTPUT FP32 [2, 2]', convert],
  raw_variable: ['INPUT INT32 [-1, 2]', 'OUTPUT FP32 [-1, 2]', convert],
  raw_middle: ['INPUT INT16 [2, -1, 3]', 'OUTPUT INT16 [2, -1, 3]', convert],
  raw_two_variable: ['INPUT INT32 [-1, -1]', 'OUTPUT INT32 [-1, -1]', convert],
  raw_bytes_one: ['INPUT BYTES [1]', 'OUTPUT BYTES [1]', convert],
  raw_bytes_two: ['INPUT BYTES [2]', 'OUTPUT BYTES [2]', convert],
  raw_bytes_variable: ['INPUT BYTES [-1]', 'OUTPUT BYTES [-1]', convert],
  raw_two_inputs: [
    'INPUT0 INT32 [-1], INPUT1 INT32 [-1]', 'OUTPUT0 INT32 [-1], OUTPUT1 INT32 [-1]', convert],
  raw_two_outputs: ['INPUT INT32 [-1]', 'NUMBER INT32 [-1], TEXT BYTES [-1]', rawTwoOutputs],
  raw_batching: ['INPUT INT32 [4]', 'OUTPUT FP32 [4]', convert, { batching }],
  raw_batching_variable: ['INPUT INT32 [-1]', 'OUTPUT FP32 [-1]', convert, { batching }],
  scores: SCORES,
  scores_labelled: [...SCORES, { labels: { SCORES: ANIMALS } }],
  scores_some_labels: [...SCORES, { labels: { SCORES: ['cat', 'dog'] } }],
  scores_odd_labels: [...SCORES, { labels: { SCORES: ['a:b:c', 'two words', 'Füße', '猫'] } }],
  scores_batching: [...SCORES, { batching }],
  scores_batching_labelled: [...SCORES, { batching, labels: { SCORES: ANIMALS } }],
  scores_rank2: ['INPUT FP32 [2, 3]', 'SCORES FP32 [2, 3]', convert],
  scores_batching_rank2: [
    'INPUT FP32 [2, 2]', 'SCORES FP32 [2, 2]', convert, { batching, labels: { SCORES: ANIMALS } }],
  scores_two_outputs: [
    'IN_SCORES FP32 [4], IN_RANKS INT32 [3]', 'SCORES FP32 [4], RANKS INT32 [3]', convert,
    { labels: { RANKS: ['low', 'middle', 'high'] } }],
  documented_binary: ['input0 UINT32 [2, 2], input1 BOOL [3]', 'output0 FP32 [3, 2]', documentedBinary],
  documented_mixed: [
    'input0 FP16 [2, 2], input1 UINT32 [2, 2], input2 BOOL [3]',
    'output0 FP16 [3, 2], output1 FP32 [2, 2]', documentedMixed],
  documented_all_outputs: [
    'input_tensor FP32 [1, 2]', 'output_tensor0 FP16 [3, 2], output_tensor1 FP32 [2, 2]',
    documentedAllOutputs],
  documented_raw: ['input FP32 [4]', 'output0 FP32 [3, 1], output1 FP32 [3, 1]', documentedRaw],
  documented_scores: ['input0 UINT32 [2, 2]', 'output0 FP32 [4]', exampleScores],
  documented_scores_labelled: ['input0 UINT32 [2, 2]', 'output0 FP32 [4]', exampleScores,
    { labels: { output0: [0, 1, 2, 3].map((k) => `index_${k}_label`) } }],
};

const parseSignature = (text) =>
  Array.from(text.matchAll(/(\w+) (\w+) (\[[^\]]*\])/g), ([, name, datatype, shape]) =>
    ({ name, datatype, shape: JSON.parse(shape) }));

const MODELS = new Map(Object.entries(TABLE).map(
  ([name, [inputs, outputs, compute, { batching = false, labels = {} } = {}]]) => [name, {
    name,
    inputs: parseSignature(inputs),
    outputs: parseSignature(outputs),
    compute,
    batching,
    labels,
  }]));

module.exports = { MAX_BATCH_SIZE, MODELS };
