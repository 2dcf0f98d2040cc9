"""The models of `oip-conformance roles`: a table of signatures and the few functions that compute them, on `array` alone."""

from __future__ import annotations

import operator
import struct
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

# array typecode and size of every fixed-size datatype (OIP, "Tensor Data Types"). FP16 and BF16 are kept as their bit
# patterns: `array` has no half floats, and bits survive untouched where a detour over float would rewrite NaNs.
TYPECODES = {
    "BOOL": "B", "UINT8": "B", "UINT16": "H", "UINT32": "I", "UINT64": "Q", "INT8": "b", "INT16": "h", "INT32": "i",
    "INT64": "q", "FP16": "H", "BF16": "H", "FP32": "f", "FP64": "d",
}  # fmt: skip
DATATYPES = (*TYPECODES, "BYTES")
MAX_BATCH = 8
MAX_EMITTED = 1 << 21

Values: TypeAlias = Any  # array of the datatype's typecode, or list[bytes] for BYTES


class ModelError(ValueError):
    """The inputs fit the signature, but the model cannot compute an answer from them."""


@dataclass(frozen=True, slots=True)
class Tensor:
    shape: tuple[int, ...]
    values: Values


@dataclass(frozen=True, slots=True)
class Spec:
    name: str
    datatype: str
    shape: tuple[int, ...]


Compute: TypeAlias = Callable[..., list[Tensor]]


@dataclass(frozen=True, slots=True)
class Model:
    name: str
    inputs: tuple[Spec, ...]
    outputs: tuple[Spec, ...]
    compute: Compute  # called with the inputs in declared order, returns the outputs in declared order
    batching: bool = False
    labels: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def full_shape(self, spec: Spec) -> tuple[int, ...]:
        """The shape a client sees: "the shape and data must represent the full shape ... of the entire batch"."""
        return (-1, *spec.shape) if self.batching else spec.shape


def halves_to_floats(bits: array[Any]) -> array[Any]:
    return array("f", struct.unpack(f"={len(bits)}e", bits.tobytes()))


def brains_to_floats(bits: array[Any]) -> array[Any]:
    floats = array("f")
    floats.frombytes(array("I", (b << 16 for b in bits)).tobytes())
    return floats


def floats_to_halves(floats: Iterable[float]) -> array[Any]:
    def half(value: float) -> int:
        try:
            return int.from_bytes(struct.pack("<e", value), "little")
        except OverflowError:  # IEEE 754 rounds what is too large to infinity; struct will not
            return 0x7C00 if value > 0 else 0xFC00

    return array("H", map(half, floats))


def floats_to_brains(floats: array[Any]) -> array[Any]:
    def brain(bits: int) -> int:
        if bits & 0x7FFFFFFF > 0x7F800000:
            return bits >> 16 | 0x40  # keep a NaN a NaN even if its payload was in the lower half
        return bits + 0x7FFF + (bits >> 16 & 1) >> 16  # to nearest, ties to even

    return array("H", map(brain, array("I", floats.tobytes())))


def copy(*inputs: Tensor) -> list[Tensor]:
    return list(inputs)


def cast(convert: Callable[[Any], Values]) -> Compute:
    return lambda tensor: [Tensor(tensor.shape, convert(tensor.values))]


to_fp32 = cast(lambda values: array("f", values))


def flat(values: Values) -> Tensor:
    return Tensor((len(values),), values)


def emit(counts: Tensor) -> list[Tensor]:
    numbers, texts = counts.values
    if not (0 <= numbers <= MAX_EMITTED and 0 <= texts <= MAX_EMITTED):
        raise ModelError(f"COUNTS must be between 0 and {MAX_EMITTED}")
    return [flat(array("i", range(1, numbers + 1))), flat([b"t%d" % k for k in range(1, texts + 1)])]


def add_sub(b: Tensor, a: Tensor) -> list[Tensor]:
    if a.shape != b.shape:
        raise ModelError("A and B must have the same shape")
    try:
        return [Tensor(a.shape, array("i", map(op, a.values, b.values))) for op in (operator.add, operator.sub)]
    except OverflowError:
        raise ModelError("a sum or difference does not fit INT32") from None


def string_length(texts: Tensor) -> list[Tensor]:
    return [Tensor(texts.shape, array("i", map(len, texts.values)))]


def weighted_sum(tensor: Tensor) -> list[Tensor]:
    try:
        return [flat(array("q", [sum(k * value for k, value in enumerate(tensor.values, 1))]))]
    except OverflowError:
        raise ModelError("the weighted sum does not fit INT64") from None


def numbers_and_texts(numbers: Tensor) -> list[Tensor]:
    return [numbers, Tensor(numbers.shape, [b"%d" % n for n in numbers.values])]


def rows_fp32(numbers: Tensor, flags: Tensor) -> list[Tensor]:
    pairs = zip(flags.values, numbers.values[:3], strict=True)  # the fourth number is in no row
    return [Tensor((3, 2), array("f", (x for pair in pairs for x in pair)))]


def rows_fp16(halves: Tensor, integers: Tensor, flags: Tensor) -> list[Tensor]:
    pairs = zip((0x3C00 * flag for flag in flags.values), halves.values[:3], strict=True)  # 0x3C00 is 1.0
    rows = array("H", (x for pair in pairs for x in pair))
    sums = array("f", map(operator.add, halves_to_floats(halves.values), integers.values))
    return [Tensor((3, 2), rows), Tensor((2, 2), sums)]


def mirror(pair: Tensor) -> list[Tensor]:
    a, b = pair.values
    return [Tensor((3, 2), floats_to_halves((a, b, b, a, 0, 0))), Tensor((2, 2), array("f", (a, b, b, a)))]


def windows(four: Tensor) -> list[Tensor]:
    return [Tensor((3, 1), four.values[:3]), Tensor((3, 1), four.values[1:])]


def lookup(indices: Tensor) -> list[Tensor]:
    if not all(1 <= index <= 4 for index in indices.values):
        raise ModelError("the elements of input0 must be between 1 and 4")
    scores = (1.1, 3.3, 0.5, 2.4)
    return [flat(array("f", (scores[index - 1] for index in indices.values)))]


BATCHING = {"batching": True}
PETS = {"labels": {"SCORES": ("cat", "dog", "bird", "fish")}}

TABLE: tuple[tuple[str, str, str, Compute, dict[str, Any]], ...] = (
    *((f"identity_{t.lower()}", f"INPUT {t} [-1]", f"OUTPUT {t} [-1]", copy, {}) for t in DATATYPES),
    ("rank0", "INPUT INT32 []", "OUTPUT INT32 []", copy, {}),
    ("rank2", "INPUT INT32 [-1 -1]", "OUTPUT INT32 [-1 -1]", copy, {}),
    ("rank3", "INPUT INT16 [-1 -1 -1]", "OUTPUT INT16 [-1 -1 -1]", copy, {}),
    ("rank4", "INPUT FP64 [-1 -1 -1 -1]", "OUTPUT FP64 [-1 -1 -1 -1]", copy, {}),
    ("rank2_bytes", "INPUT BYTES [-1 -1]", "OUTPUT BYTES [-1 -1]", copy, {}),
    ("batching", "INPUT INT32 [3]", "OUTPUT INT32 [3]", copy, BATCHING),
    ("fixed", "INPUT INT32 [2 3]", "OUTPUT INT32 [2 3]", copy, {}),
    ("multi", "IN_INT64 INT64 [-1], IN_BOOL BOOL [-1], IN_FP32 FP32 [-1], IN_BYTES BYTES [-1]",
     "OUT_INT64 INT64 [-1], OUT_BOOL BOOL [-1], OUT_FP32 FP32 [-1], OUT_BYTES BYTES [-1]", copy, {}),
    ("emit", "COUNTS INT32 [2]", "NUMBERS INT32 [-1], TEXTS BYTES [-1]", emit, {}),
    ("cast_int32_fp32", "INPUT INT32 [-1]", "OUTPUT FP32 [-1]", to_fp32, {}),
    ("cast_fp16_fp32", "INPUT FP16 [-1]", "OUTPUT FP32 [-1]", cast(halves_to_floats), {}),
    ("cast_fp32_fp16", "INPUT FP32 [-1]", "OUTPUT FP16 [-1]", cast(floats_to_halves), {}),
    ("cast_bf16_fp32", "INPUT BF16 [-1]", "OUTPUT FP32 [-1]", cast(brains_to_floats), {}),
    ("cast_fp32_bf16", "INPUT FP32 [-1]", "OUTPUT BF16 [-1]", cast(floats_to_brains), {}),
    ("add_sub", "B INT32 [-1], A INT32 [-1]", "SUM INT32 [-1], DIFFERENCE INT32 [-1]", add_sub, {}),
    ("string_length", "INPUT BYTES [-1]", "LENGTH INT32 [-1]", string_length, {}),
    ("weighted_sum", "INPUT INT32 [-1 -1]", "OUTPUT INT64 [1]", weighted_sum, {}),
    ("raw_fixed", "INPUT INT32 [2 2]", "OUTPUT FP32 [2 2]", to_fp32, {}),
    ("raw_variable", "INPUT INT32 [-1 2]", "OUTPUT FP32 [-1 2]", to_fp32, {}),
    ("raw_middle", "INPUT INT16 [2 -1 3]", "OUTPUT INT16 [2 -1 3]", copy, {}),
    ("raw_two_variable", "INPUT INT32 [-1 -1]", "OUTPUT INT32 [-1 -1]", copy, {}),
    ("raw_bytes_one", "INPUT BYTES [1]", "OUTPUT BYTES [1]", copy, {}),
    ("raw_bytes_two", "INPUT BYTES [2]", "OUTPUT BYTES [2]", copy, {}),
    ("raw_bytes_variable", "INPUT BYTES [-1]", "OUTPUT BYTES [-1]", copy, {}),
    ("raw_two_inputs", "INPUT0 INT32 [-1], INPUT1 INT32 [-1]", "OUTPUT0 INT32 [-1], OUTPUT1 INT32 [-1]", copy, {}),
    ("raw_two_outputs", "INPUT INT32 [-1]", "NUMBER INT32 [-1], TEXT BYTES [-1]", numbers_and_texts, {}),
    ("raw_batching", "INPUT INT32 [4]", "OUTPUT FP32 [4]", to_fp32, BATCHING),
    ("raw_batching_variable", "INPUT INT32 [-1]", "OUTPUT FP32 [-1]", to_fp32, BATCHING),
    ("scores", "INPUT FP32 [4]", "SCORES FP32 [4]", copy, {}),
    ("scores_labelled", "INPUT FP32 [4]", "SCORES FP32 [4]", copy, PETS),
    ("scores_some_labels", "INPUT FP32 [4]", "SCORES FP32 [4]", copy, {"labels": {"SCORES": ("cat", "dog")}}),
    ("scores_odd_labels", "INPUT FP32 [4]", "SCORES FP32 [4]", copy,
     {"labels": {"SCORES": ("a:b:c", "two words", "Füße", "猫")}}),
    ("scores_batching", "INPUT FP32 [4]", "SCORES FP32 [4]", copy, BATCHING),
    ("scores_batching_labelled", "INPUT FP32 [4]", "SCORES FP32 [4]", copy, PETS | BATCHING),
    ("scores_rank2", "INPUT FP32 [2 3]", "SCORES FP32 [2 3]", copy, {}),
    ("scores_batching_rank2", "INPUT FP32 [2 2]", "SCORES FP32 [2 2]", copy, PETS | BATCHING),
    ("scores_two_outputs", "IN_SCORES FP32 [4], IN_RANKS INT32 [3]", "SCORES FP32 [4], RANKS INT32 [3]", copy,
     {"labels": {"RANKS": ("low", "middle", "high")}}),
    ("documented_binary", "input0 UINT32 [2 2], input1 BOOL [3]", "output0 FP32 [3 2]", rows_fp32, {}),
    ("documented_mixed", "input0 FP16 [2 2], input1 UINT32 [2 2], input2 BOOL [3]",
     "output0 FP16 [3 2], output1 FP32 [2 2]", rows_fp16, {}),
    ("documented_all_outputs", "input_tensor FP32 [1 2]", "output_tensor0 FP16 [3 2], output_tensor1 FP32 [2 2]",
     mirror, {}),
    ("documented_raw", "input FP32 [4]", "output0 FP32 [3 1], output1 FP32 [3 1]", windows, {}),
    ("documented_scores", "input0 UINT32 [2 2]", "output0 FP32 [4]", lookup, {}),
    ("documented_scores_labelled", "input0 UINT32 [2 2]", "output0 FP32 [4]", lookup,
     {"labels": {"output0": tuple(f"index_{k}_label" for k in range(4))}}),
)  # fmt: skip


def signature(text: str) -> tuple[Spec, ...]:
    specs = []
    for tensor in text.split(", "):
        name, datatype, shape = tensor.split(" ", 2)
        specs.append(Spec(name, datatype, tuple(int(dim) for dim in shape.strip("[]").split())))
    return tuple(specs)


MODELS = {
    name: Model(name, signature(inputs), signature(outputs), compute, **options)
    for name, inputs, outputs, compute, options in TABLE
}
