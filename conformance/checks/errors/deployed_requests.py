"""Requests with one fault, derived from the inputs of any deployed model; they are not sent to roles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from conformance.checks.support.refusals import Refusal
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import MessageBuilder, Model
from conformance.spec.fit import JSON, SCORE_DATATYPES, Fit
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor


def sample_inputs(model: Model) -> Sequence[Tensor]:
    """Return the inputs of a good request."""
    return model.sample()


def change_data(change: Callable[[list[Any], int], list[Any]]) -> MessageBuilder:
    """Return a builder of a JSON request that is good except for the data of its first input; the shape stays.

    `change` receives the elements, and the number of elements in one item along the first dimension.

    Raises:
        NotApplicable: there would be no elements left.
    """

    def make(model: Model) -> Message:
        request = model.request(send="json")
        tensor = request.inputs[0].tensor
        data = change(tensor.to_json(), prod(tensor.shape[1:]))
        if not data:
            raise NotApplicableError(f"{tensor.name} has too few elements")
        return request.edited(lambda document: document["inputs"][0].update(data=data))

    return make


def enlarge_fixed_dimension(model: Model) -> Message:
    """Return a JSON request in which the last fixed dimension of the first input is larger by one.

    Raises:
        NotApplicable: the metadata fix no dimension.
    """
    request = model.request(send="json")
    tensor, declared = request.inputs[0].tensor, model.role.inputs[0].shape
    fixed = [place for place, size in enumerate(declared) if size > 0] if len(declared) == len(tensor.shape) else []
    if not fixed:
        raise NotApplicableError(f"the metadata of {model.name} fix no dimension of {tensor.name}")
    shape = [size + (place == fixed[-1]) for place, size in enumerate(tensor.shape)]
    data = (tensor.to_json() * 2)[: prod(shape)]
    return request.edited(lambda document: document["inputs"][0].update(shape=shape, data=data))


def make_first_dimension_variable(model: Model) -> Message:
    """Return a JSON request that is good except for -1 as the first dimension of its first input."""
    return model.request(send="json").edited(lambda document: document["inputs"][0]["shape"].__setitem__(0, -1))


def make_ragged(model: Model) -> Message:
    """Return a JSON request with nested data, whose last innermost array lacks its last element.

    Raises:
        NotApplicable: that array would be empty.
    """
    request = model.request(send="json")
    data = request.inputs[0].tensor.to_json(nested=True)
    last = data[-1]
    while isinstance(last[-1], list):
        last = last[-1]
    if len(last) < 2:
        raise NotApplicableError(f"the innermost arrays of {request.inputs[0].tensor.name} have too few elements")
    del last[-1]
    return request.edited(lambda document: document["inputs"][0].update(data=data))


def write_dimensions_as_strings(model: Model) -> Message:
    """Return a JSON request that is good except for the dimensions of its first input, which are strings."""
    request = model.request(send="json")
    shape = [str(size) for size in request.inputs[0].tensor.shape]
    return request.edited(lambda document: document["inputs"][0].update(shape=shape))


ITEMS = Fit(min_rank=2, is_json=True)
OWN: tuple[Refusal, ...] = (
    Refusal("last-element-missing", "OIP-REFUSAL", None, change_data(lambda data, _: data[:-1]), fit=JSON),
    Refusal("last-item-missing", "OIP-REFUSAL", None, change_data(lambda data, item: data[:-item]), fit=ITEMS),
    Refusal("last-nested-element-missing", "OIP-REFUSAL", None, make_ragged, fit=ITEMS),
    Refusal("one-item-too-many", "OIP-REFUSAL", None, change_data(lambda data, item: data + data[-item:]), fit=JSON),
    Refusal(
        "word-for-the-first-number",
        "OIP-RANGE",
        None,
        change_data(lambda data, _: ["word", *data[1:]]),
        fit=Fit(inputs=SCORE_DATATYPES, is_json=True),
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
        make_first_dimension_variable,
        tensors=sample_inputs,
        fit=Fit(min_rank=1, is_json=True),
    ),
)
