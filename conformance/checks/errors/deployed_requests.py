"""Requests with a single fault, derived from the inputs of any deployed model.

The suite does not send these requests to model roles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from conformance.checks.support.refusals import Refusal
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import MessageBuilder, Model
from conformance.spec.fit import JSON, SCORE_DATATYPES, Fit
from conformance.wire.datatypes import INTEGERS
from conformance.wire.request import InferRequest, Message
from conformance.wire.tensor import Tensor

# datatype -> a wider one of the same kind, which can represent all its elements
WIDER = {
    "FP16": "FP32",
    "FP32": "FP64",
    **{f"{kind}{bits}": f"{kind}{2 * bits}" for kind in ("INT", "UINT") for bits in (8, 16, 32)},
}
_NARROW_INTEGERS = frozenset(WIDER) & frozenset(INTEGERS)


def sample_inputs(model: Model) -> Sequence[Tensor]:
    """Return the inputs of a valid request."""
    return model.sample()


def change_data(
    change: Callable[[list[Any], int], list[Any]], datatypes: frozenset[str] = frozenset()
) -> MessageBuilder:
    """Return a builder of a JSON request that is valid except for the data of one input, which keeps its shape.

    `change` receives the elements, and the number of elements in one item along the first dimension. The changed
    input is the first input, or the first input of these `datatypes`.

    Raises:
        NotApplicable: the changed input would have no elements.
    """

    def build(model: Model) -> Message:
        request = model.request(send="json")
        index = _find_input_index(request, datatypes)
        tensor = request.inputs[index].tensor
        data = change(tensor.to_json(), prod(tensor.shape[1:]))
        if not data:
            raise NotApplicableError(f"{tensor.name} has too few elements to remove any")
        return request.encode_with(lambda document: document["inputs"][index].update(data=data))

    return build


def _find_input_index(request: InferRequest, datatypes: frozenset[str]) -> int:
    """Return the index of the first input of these datatypes; 0 if `datatypes` is empty.

    Raises:
        NotApplicable: no input in the request has one of these datatypes.
    """
    for index, item in enumerate(request.inputs):
        if not datatypes or item.tensor.datatype in datatypes:
            return index
    raise NotApplicableError(f"the request has no {' or '.join(sorted(datatypes))} input")


def exceed_integer_range(model: Model) -> Message:
    """Return a JSON request whose first integer is too large for its datatype, with the low bits of a valid one.

    A server that drops the high bits reads an integer that the model accepts.
    """
    request = model.request(send="json")
    index = _find_input_index(request, frozenset(INTEGERS))
    tensor = request.inputs[index].tensor
    first, *others = tensor.to_json()
    data = [first + 2 ** (8 * tensor.array.itemsize), *others]
    return request.encode_with(lambda document: document["inputs"][index].update(data=data))


def widen_datatype(model: Model) -> Message:
    """Return a JSON request that is valid except that its first narrow integer input has a wider datatype."""
    request = model.request(send="json")
    index = _find_input_index(request, _NARROW_INTEGERS)
    datatype = WIDER[request.inputs[index].tensor.datatype]
    return request.encode_with(lambda document: document["inputs"][index].update(datatype=datatype))


def change_first_dimension(change: Callable[[int], int]) -> MessageBuilder:
    """Return a builder of a JSON request that is valid except for the first dimension of its first input."""

    def build(model: Model) -> Message:
        request = model.request(send="json")
        first, *others = request.inputs[0].tensor.shape
        return request.encode_with(lambda document: document["inputs"][0].update(shape=[change(first), *others]))

    return build


def enlarge_fixed_dimension(model: Model) -> Message:
    """Return a JSON request in which the last fixed dimension of the first input is larger by one.

    Raises:
        NotApplicable: the metadata give no fixed dimension for the first input.
    """
    request = model.request(send="json")
    tensor, declared = request.inputs[0].tensor, model.role.inputs[0].shape
    fixed = [index for index, size in enumerate(declared) if size > 0] if len(declared) == len(tensor.shape) else []
    if not fixed:
        raise NotApplicableError(f"the metadata of {model.name} give no fixed dimension for {tensor.name}")
    shape = [size + (index == fixed[-1]) for index, size in enumerate(tensor.shape)]
    data = (tensor.to_json() * 2)[: prod(shape)]
    return request.encode_with(lambda document: document["inputs"][0].update(shape=shape, data=data))


def shorten_innermost_array(model: Model) -> Message:
    """Return a JSON request with nested data, in which the last innermost array lacks its last element.

    Raises:
        NotApplicable: the innermost array would be empty.
    """
    request = model.request(send="json")
    data = request.inputs[0].tensor.to_json(nested=True)
    last = data[-1]
    while isinstance(last[-1], list):
        last = last[-1]
    if len(last) < 2:
        raise NotApplicableError(f"the innermost arrays of {request.inputs[0].tensor.name} have only one element")
    del last[-1]
    return request.encode_with(lambda document: document["inputs"][0].update(data=data))


def write_dimensions_as_strings(model: Model) -> Message:
    """Return a JSON request that is valid except that the dimensions of its first input are strings."""
    request = model.request(send="json")
    shape = [str(size) for size in request.inputs[0].tensor.shape]
    return request.encode_with(lambda document: document["inputs"][0].update(shape=shape))


_SEVERAL_DIMENSIONS = Fit(min_rank=2, is_json=True)
_SOME_INTEGERS = Fit(some_input=frozenset(INTEGERS), is_json=True)
DEPLOYED_MODEL_REFUSALS: tuple[Refusal, ...] = (
    Refusal("last-element-missing", "OIP-REFUSAL", None, change_data(lambda data, _: data[:-1]), fit=JSON),
    Refusal(
        "last-item-missing", "OIP-REFUSAL", None, change_data(lambda data, item: data[:-item]), fit=_SEVERAL_DIMENSIONS
    ),
    Refusal("last-nested-element-missing", "OIP-REFUSAL", None, shorten_innermost_array, fit=_SEVERAL_DIMENSIONS),
    Refusal("one-item-too-many", "OIP-REFUSAL", None, change_data(lambda data, item: data + data[-item:]), fit=JSON),
    Refusal(
        "word-for-the-first-number",
        "OIP-RANGE",
        None,
        change_data(lambda data, _: ["word", *data[1:]]),
        fit=Fit(inputs=SCORE_DATATYPES, is_json=True),
    ),
    Refusal(
        "word-for-the-first-integer",
        "OIP-RANGE",
        None,
        change_data(lambda data, _: ["word", *data[1:]], frozenset(INTEGERS)),
        fit=_SOME_INTEGERS,
    ),
    Refusal("integer-right-in-its-low-bits", "OIP-RANGE", None, exceed_integer_range, fit=_SOME_INTEGERS),
    Refusal(
        "integers-of-a-wider-datatype",
        "OIP-SIGNATURE",
        None,
        widen_datatype,
        fit=Fit(some_input=_NARROW_INTEGERS, is_json=True),
    ),
    Refusal(
        "first-dimension-right-in-64-bits",
        "OIP-REFUSAL",
        None,
        change_first_dimension(lambda size: size + 2**64),
        fit=Fit(min_rank=1, is_json=True),
    ),
    Refusal(
        "dimensions-in-strings",
        "OIP-MEMBER-MISSING",
        None,
        write_dimensions_as_strings,
        fit=Fit(min_rank=1, is_json=True),
    ),
    Refusal("fixed-dimension-one-larger", "OIP-SIGNATURE", None, enlarge_fixed_dimension, fit=JSON),
    Refusal(
        "minus-one-for-the-first-dimension",
        "OIP-DIMENSION-NEGATIVE",
        None,
        change_first_dimension(lambda _: -1),
        tensors=sample_inputs,
        fit=Fit(min_rank=1, is_json=True),
    ),
    Refusal(
        "first-dimension-negated",
        "OIP-DIMENSION-NEGATIVE",
        None,
        change_first_dimension(lambda size: -size),
        tensors=sample_inputs,
        fit=Fit(min_rank=1, is_json=True),
    ),
)
