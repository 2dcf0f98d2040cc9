"""The models of `oip-conformance roles` as numpy functions, and the table that names and describes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Compute = Callable[..., tuple[Array, ...]]

# Little-endian, as the binary extension sends them. numpy has no BF16: its tensors are the 16 bits. BYTES tensors are
# object arrays of bytes, because numpy's own S type drops trailing zero bytes.
DTYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype("?"),
    **{f"UINT{8 * size}": np.dtype(f"<u{size}") for size in (1, 2, 4, 8)},
    **{f"INT{8 * size}": np.dtype(f"<i{size}") for size in (1, 2, 4, 8)},
    **{f"FP{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
    "BF16": np.dtype("<u2"),
    "BYTES": np.dtype(object),
}

MAX_BATCH = 8
MAX_EMITTED = 2_000_000


class Refused(ValueError):
    """A request, or inputs, that cannot be answered; the client gets the text."""


@dataclass(frozen=True)
class TensorSpec:
    name: str
    datatype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Model:
    """`inputs` and `outputs` have the shapes a client sees; a batching model's begin with -1, the batch."""

    inputs: Sequence[TensorSpec]
    outputs: Sequence[TensorSpec]
    compute: Compute
    batching: bool = False
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)


def bytes_array(items: Sequence[bytes], shape: tuple[int, ...]) -> Array:
    return np.fromiter(items, dtype=object, count=len(items)).reshape(shape)


def widen_bf16(bits: Array) -> Array:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def narrow_bf16(x: Array) -> Array:
    bits = x.view(np.uint32)
    nearest_even = bits + np.uint32(0x7FFF) + (bits >> 16 & 1)
    return (np.where(np.isnan(x), bits | np.uint32(0x400000), nearest_even) >> 16).astype(np.uint16)


def identity(*arrays: Array) -> tuple[Array, ...]:
    return arrays


def to_fp32(x: Array) -> tuple[Array]:
    return (x.astype(np.float32),)


def to_fp16(x: Array) -> tuple[Array]:
    return (x.astype(np.float16),)


def from_bf16(x: Array) -> tuple[Array]:
    return (widen_bf16(x),)


def to_bf16(x: Array) -> tuple[Array]:
    return (narrow_bf16(x),)


def emit(counts: Array) -> tuple[Array, Array]:
    numbers, texts = counts.tolist()
    if not (0 <= numbers <= MAX_EMITTED and 0 <= texts <= MAX_EMITTED):
        raise Refused(f"each of COUNTS must be from 0 to {MAX_EMITTED}")
    return np.arange(1, numbers + 1, dtype=np.int32), bytes_array([b"t%d" % k for k in range(1, texts + 1)], (-1,))


def add_sub(b: Array, a: Array) -> tuple[Array, ...]:
    if a.shape != b.shape:
        raise Refused("A and B must be of the same length")
    wide = a.astype(np.int64), b.astype(np.int64)
    results = wide[0] + wide[1], wide[0] - wide[1]
    narrow = tuple(result.astype(np.int32) for result in results)
    if any((n != r).any() for n, r in zip(narrow, results, strict=True)):  # numpy would wrap around in silence
        raise Refused("a sum or difference overflows INT32")
    return narrow


def string_length(x: Array) -> tuple[Array]:
    return (np.fromiter(map(len, x), dtype=np.int32, count=x.size),)


def weighted_sum(x: Array) -> tuple[Array]:
    products = np.arange(1, x.size + 1, dtype=np.int64) * x.ravel()
    total = sum(products.tolist())  # in Python's integers, which do not overflow
    if not -(2**63) <= total < 2**63:
        raise Refused("the weighted sum overflows INT64")
    return (np.array([total], dtype=np.int64),)


def number_and_text(x: Array) -> tuple[Array, Array]:
    return x, bytes_array([b"%d" % number for number in x.tolist()], x.shape)


def rows(numbers: Array, flags: Array) -> tuple[Array]:
    return (np.stack([flags, numbers.ravel()[:3]], axis=1, dtype=np.float32, casting="same_kind"),)


def rows_and_sum(halves: Array, integers: Array, flags: Array) -> tuple[Array, Array]:
    pairs = np.stack([flags.astype(np.float16), halves.ravel()[:3]], axis=1)
    return pairs, (halves.astype(np.float64) + integers).astype(np.float32)


def mirror(pair: Array) -> tuple[Array, Array]:
    both = np.concatenate([pair, pair[:, ::-1]])
    return np.concatenate([both, [[0, 0]]]).astype(np.float16), both


def windows(x: Array) -> tuple[Array, Array]:
    return x[:3, np.newaxis], x[1:, np.newaxis]


def lookup(x: Array) -> tuple[Array]:
    if not ((x >= 1) & (x <= 4)).all():  # index -1 would be the last one to numpy
        raise Refused("each element of input0 must be from 1 to 4")
    return (np.array([1.1, 3.3, 0.5, 2.4], dtype=np.float32)[x.ravel() - 1],)


def tensor(name: str, datatype: str, *shape: int) -> TensorSpec:
    return TensorSpec(name, datatype, shape)


def unary(compute: Compute, source: str, target: str, *shape: int, batching: bool = False) -> Model:
    """One INPUT and one OUTPUT of the same shape."""
    full = (-1, *shape) if batching else shape
    return Model([tensor("INPUT", source, *full)], [tensor("OUTPUT", target, *full)], compute, batching)


def scores(*shape: int, labels: Sequence[str] = (), batching: bool = False) -> Model:
    full = (-1, *shape) if batching else shape
    return Model(
        [tensor("INPUT", "FP32", *full)], [tensor("SCORES", "FP32", *full)], identity, batching, {"SCORES": labels}
    )


def looked_up(labels: Sequence[str] = ()) -> Model:
    return Model([tensor("input0", "UINT32", 2, 2)], [tensor("output0", "FP32", 4)], lookup, labels={"output0": labels})


PETS = ("cat", "dog", "bird", "fish")
INT32 = ("INT32", "INT32")

MODELS: dict[str, Model] = {
    **{f"identity_{t.lower()}": unary(identity, t, t, -1) for t in DTYPES},
    "rank0": unary(identity, *INT32),
    "rank2": unary(identity, *INT32, -1, -1),
    "rank3": unary(identity, "INT16", "INT16", -1, -1, -1),
    "rank4": unary(identity, "FP64", "FP64", -1, -1, -1, -1),
    "rank2_bytes": unary(identity, "BYTES", "BYTES", -1, -1),
    "batching": unary(identity, *INT32, 3, batching=True),
    "fixed": unary(identity, *INT32, 2, 3),
    "multi": Model(
        [tensor(f"IN_{t}", t, -1) for t in ("INT64", "BOOL", "FP32", "BYTES")],
        [tensor(f"OUT_{t}", t, -1) for t in ("INT64", "BOOL", "FP32", "BYTES")],
        identity,
    ),
    "emit": Model([tensor("COUNTS", "INT32", 2)], [tensor("NUMBERS", "INT32", -1), tensor("TEXTS", "BYTES", -1)], emit),
    "cast_int32_fp32": unary(to_fp32, "INT32", "FP32", -1),
    "cast_fp16_fp32": unary(to_fp32, "FP16", "FP32", -1),
    "cast_fp32_fp16": unary(to_fp16, "FP32", "FP16", -1),
    "cast_bf16_fp32": unary(from_bf16, "BF16", "FP32", -1),
    "cast_fp32_bf16": unary(to_bf16, "FP32", "BF16", -1),
    "add_sub": Model(
        [tensor("B", "INT32", -1), tensor("A", "INT32", -1)],
        [tensor("SUM", "INT32", -1), tensor("DIFFERENCE", "INT32", -1)],
        add_sub,
    ),
    "string_length": Model([tensor("INPUT", "BYTES", -1)], [tensor("LENGTH", "INT32", -1)], string_length),
    "weighted_sum": Model([tensor("INPUT", "INT32", -1, -1)], [tensor("OUTPUT", "INT64", 1)], weighted_sum),
    "raw_fixed": unary(to_fp32, "INT32", "FP32", 2, 2),
    "raw_variable": unary(to_fp32, "INT32", "FP32", -1, 2),
    "raw_middle": unary(identity, "INT16", "INT16", 2, -1, 3),
    "raw_two_variable": unary(identity, *INT32, -1, -1),
    "raw_bytes_one": unary(identity, "BYTES", "BYTES", 1),
    "raw_bytes_two": unary(identity, "BYTES", "BYTES", 2),
    "raw_bytes_variable": unary(identity, "BYTES", "BYTES", -1),
    "raw_two_inputs": Model(
        [tensor("INPUT0", "INT32", -1), tensor("INPUT1", "INT32", -1)],
        [tensor("OUTPUT0", "INT32", -1), tensor("OUTPUT1", "INT32", -1)],
        identity,
    ),
    "raw_two_outputs": Model(
        [tensor("INPUT", "INT32", -1)],
        [tensor("NUMBER", "INT32", -1), tensor("TEXT", "BYTES", -1)],
        number_and_text,
    ),
    "raw_batching": unary(to_fp32, "INT32", "FP32", 4, batching=True),
    "raw_batching_variable": unary(to_fp32, "INT32", "FP32", -1, batching=True),
    "scores": scores(4),
    "scores_labelled": scores(4, labels=PETS),
    "scores_some_labels": scores(4, labels=PETS[:2]),
    "scores_odd_labels": scores(4, labels=("a:b:c", "two words", "Füße", "猫")),
    "scores_batching": scores(4, batching=True),
    "scores_batching_labelled": scores(4, labels=PETS, batching=True),
    "scores_rank2": scores(2, 3),
    "scores_batching_rank2": scores(2, 2, labels=PETS, batching=True),
    "scores_two_outputs": Model(
        [tensor("IN_SCORES", "FP32", 4), tensor("IN_RANKS", "INT32", 3)],
        [tensor("SCORES", "FP32", 4), tensor("RANKS", "INT32", 3)],
        identity,
        labels={"RANKS": ("low", "middle", "high")},
    ),
    "documented_binary": Model(
        [tensor("input0", "UINT32", 2, 2), tensor("input1", "BOOL", 3)], [tensor("output0", "FP32", 3, 2)], rows
    ),
    "documented_mixed": Model(
        [tensor("input0", "FP16", 2, 2), tensor("input1", "UINT32", 2, 2), tensor("input2", "BOOL", 3)],
        [tensor("output0", "FP16", 3, 2), tensor("output1", "FP32", 2, 2)],
        rows_and_sum,
    ),
    "documented_all_outputs": Model(
        [tensor("input_tensor", "FP32", 1, 2)],
        [tensor("output_tensor0", "FP16", 3, 2), tensor("output_tensor1", "FP32", 2, 2)],
        mirror,
    ),
    "documented_raw": Model(
        [tensor("input", "FP32", 4)], [tensor("output0", "FP32", 3, 1), tensor("output1", "FP32", 3, 1)], windows
    ),
    "documented_scores": looked_up(),
    "documented_scores_labelled": looked_up([f"index_{k}_label" for k in range(4)]),
}
