"""Sizes and shapes gone wrong at one place: behind the first input, beside an empty one, past 64 bits."""

from __future__ import annotations

import math
from typing import Any

from reference_server.faults import fault
from reference_server.faults.ordering import is_sound, sort_inputs
from reference_server.faults.sizes import get_declared_size, get_remaining, set_declared_size
from reference_server.members import Object
from reference_server.models import Model
from reference_server.signature import TensorSpec

# --- order -----------------------------------------------------------------------------------------------------------


@fault("request.parse_inputs", breaks="BIN-ORDER-I")
def inputs_beside_an_empty_one_read_in_declared_order(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """Where an input has no bytes, all are read in the order in which the model declares them."""
    names = [spec.name for spec in model.inputs]
    if is_sound(request) and rest is not None and any(get_declared_size(entry) == 0 for entry in request["inputs"]):
        known = [entry for entry in request["inputs"] if entry["name"] in names]
        if len(known) == len(request["inputs"]):
            request = sort_inputs(request, lambda entry: names.index(entry["name"]))
    return original(model, request, rest)


# --- sizes -----------------------------------------------------------------------------------------------------------


@fault("request.parse_inputs", breaks=("BIN-SIZE-FALSE", "BIN-SIZE-TYPE", "BIN-SIZE-MISSING"))
def size_of_the_last_input_not_read(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """The last of several inputs takes as many bytes as are left, whatever its size says."""
    if is_sound(request) and rest is not None and len(request["inputs"]) > 1 and "data" not in request["inputs"][-1]:
        *others, last = request["inputs"]
        sizes = [get_declared_size(entry) for entry in others]
        if all(type(size) is int and size >= 0 for size in sizes) and sum(sizes) <= len(get_remaining(rest)):
            request = request | {"inputs": [*others, set_declared_size(last, len(get_remaining(rest)) - sum(sizes))]}
    return original(model, request, rest)


# --- shapes ----------------------------------------------------------------------------------------------------------


@fault("request.parse_input", breaks=("BIN-SIZE-WRONG", "OIP-REFUSAL"))
def elements_counted_in_sixty_four_bits(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """The product of the dimensions wraps around at 2^64."""
    shape = entry.get("shape")
    whole = isinstance(shape, list) and all(type(extent) is int and extent >= 0 for extent in shape)
    if whole and shape and math.prod(shape) >= 2**64:
        entry = entry | {"shape": [math.prod(shape) % 2**64, *[1] * (len(shape) - 1)]}
    return original(model, spec, entry, rest)
