"""The functions that the models compute: `FUNCTIONS`, by the name that `roles.toml` uses.

Each takes the model and all inputs by name, and returns the outputs in declared order. As in hardware, integers wrap
around and floats overflow to infinity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from reference_server.errors import InferenceError
from reference_server.tensors import NUMPY, Signature, Tensor, iterate_items, make_array, make_objects

Inputs = Mapping[str, Tensor]
MAX_EMITTED = 10_000


def make_outputs(model: Signature, *values: ArrayLike) -> list[Tensor]:
    """Return the outputs with the declared datatypes and (fixed) shapes, from their elements in row-major order."""
    return [
        Tensor(spec.datatype, spec.shape, np.ravel(elements).astype(NUMPY[spec.datatype]))
        for spec, elements in zip(model.outputs, values, strict=True)
    ]


def identity(model: Signature, inputs: Inputs) -> list[Tensor]:
    """Return the inputs."""
    return [inputs[spec.name] for spec in model.inputs]


def cast(model: Signature, inputs: Inputs) -> list[Tensor]:
    """Return the inputs, converted to the outputs' datatypes."""
    return [
        Tensor(spec.datatype, tensor.shape, tensor.elements.astype(NUMPY[spec.datatype]))
        for spec, tensor in zip(model.outputs, identity(model, inputs), strict=True)
    ]


def add_sub(_model: Signature, inputs: Inputs) -> list[Tensor]:
    """Return A + B and A - B."""
    a, b = inputs["A"], inputs["B"]
    if a.shape != b.shape:
        raise InferenceError(f"inputs 'A' and 'B' must have the same shape, not {list(a.shape)} and {list(b.shape)}")
    results = (a.elements + b.elements, a.elements - b.elements)
    return [Tensor(a.datatype, a.shape, elements) for elements in results]


def length(_model: Signature, inputs: Inputs) -> list[Tensor]:
    """Return the number of bytes in each element."""
    texts = inputs["INPUT"]
    return [Tensor("INT32", texts.shape, make_array([len(item) for item in texts.elements], NUMPY["INT32"]))]


def weighted_sum(model: Signature, inputs: Inputs) -> list[Tensor]:
    """Return the sum of (k + 1) * element k."""
    elements = inputs["INPUT"].elements.astype(np.int64)
    return make_outputs(model, np.dot(elements, np.arange(1, elements.size + 1)))


def emit(_model: Signature, inputs: Inputs) -> list[Tensor]:
    """Return the numbers 1 to a, and the texts "t1" to "tb", for an input of two counts [a, b]."""
    a, b = inputs["COUNTS"].elements.tolist()
    if not (0 <= a <= MAX_EMITTED and 0 <= b <= MAX_EMITTED):
        raise InferenceError(f"input 'COUNTS' is [{a}, {b}], but each count must be 0 to {MAX_EMITTED}")
    numbers = np.arange(1, a + 1, dtype=NUMPY["INT32"])
    return [Tensor("INT32", (a,), numbers), Tensor("BYTES", (b,), make_objects(b"t%d" % k for k in range(1, b + 1)))]


def text(_model: Signature, inputs: Inputs) -> list[Tensor]:
    """Return the input, and its elements as decimal text."""
    numbers = inputs["INPUT"]
    return [
        numbers,
        Tensor("BYTES", numbers.shape, make_objects(b"%d" % number for number in iterate_items(numbers.elements))),
    ]


def table(model: Signature, inputs: Inputs) -> list[Tensor]:
    """Return table[x - 1] for each element x."""
    positions = next(iter(inputs.values())).elements.tolist()
    if not all(1 <= position <= len(model.table) for position in positions):
        raise InferenceError(
            f"input '{model.inputs[0].name}' must have elements from 1 to {len(model.table)}, not {positions}"
        )
    return make_outputs(model, [model.table[position - 1] for position in positions])


def transpose(_model: Signature, inputs: Inputs) -> list[Tensor]:
    """Return the input, and its first matrix as decimal text, both with their dimensions in reverse order."""
    numbers = inputs["INPUT"].elements.reshape(inputs["INPUT"].shape).T
    first = numbers[:, :, 0]
    return [
        Tensor("INT32", numbers.shape, numbers.ravel()),
        Tensor("BYTES", first.shape, make_objects(b"%d" % number for number in first.ravel().tolist())),
    ]


def add_version(model: Signature, inputs: Inputs) -> list[Tensor]:
    """Return each element plus the number of the version."""
    numbers = inputs["INPUT"]
    return [Tensor("INT32", numbers.shape, numbers.elements + np.int32(model.version))]


def documented_binary(model: Signature, inputs: Inputs) -> list[Tensor]:
    """Return rows of [input1[k], element k of input0]."""
    flags = inputs["input1"].elements
    return make_outputs(model, np.column_stack([flags, inputs["input0"].elements[: flags.size]]))


def documented_mixed(model: Signature, inputs: Inputs) -> list[Tensor]:
    """Return rows of [input2[k], element k of input0], and input0 + input1."""
    halves, words, flags = (inputs[name].elements for name in ("input0", "input1", "input2"))
    return make_outputs(model, np.column_stack([flags, halves[: flags.size]]), halves.astype(np.float64) + words)


def documented_all_outputs(model: Signature, inputs: Inputs) -> list[Tensor]:
    """Return [[a, b], [b, a], [0, 0]] and [[a, b], [b, a]] for [[a, b]]."""
    a, b = inputs["input_tensor"].elements
    return make_outputs(model, [a, b, b, a, 0, 0], [a, b, b, a])


def documented_raw(model: Signature, inputs: Inputs) -> list[Tensor]:
    """Return the first three elements and the last three."""
    elements = inputs["input"].elements
    return make_outputs(model, elements[:3], elements[1:])


FUNCTIONS: dict[str, Callable[[Signature, Inputs], list[Tensor]]] = {
    "identity": identity,
    "cast": cast,
    "add_sub": add_sub,
    "length": length,
    "weighted_sum": weighted_sum,
    "emit": emit,
    "text": text,
    "table": table,
    "transpose": transpose,
    "add_version": add_version,
    "documented_binary": documented_binary,
    "documented_mixed": documented_mixed,
    "documented_all_outputs": documented_all_outputs,
    "documented_raw": documented_raw,
}
