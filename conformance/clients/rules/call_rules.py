"""The rules for calls over gRPC, as one table, and what they look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from conformance.clients.rules.rule import Fault, Faults, Rule, judge_kinds
from conformance.clients.rules.tensors import has_content
from conformance.roles.roles import BINARY_ONLY
from conformance.wire.datatypes import DATATYPES
from conformance.wire.finding import format_value
from conformance.wire.parsed_call import ParsedCall

_CLASSIFICATION: Final = "classification"
_OUTPUT: Final = "a requested output"


def _named(call: ParsedCall) -> Faults:
    """The call names its model."""
    return () if call.message.model_name else [Fault("a model_name", "none")]


def _members(call: ParsedCall) -> Iterator[Fault]:
    """Inputs have a name, a datatype and a shape, requested outputs a name."""
    for index, entry in enumerate(call.message.inputs):
        if not entry.name:
            yield Fault("a name", f"inputs[{index}]: none")
        if entry.datatype not in DATATYPES:
            yield Fault("a datatype of the protocol", f"inputs[{index}].datatype: {format_value(entry.datatype)}")
        if any(size < 0 for size in entry.shape):
            yield Fault("dimensions from 0", f"inputs[{index}].shape: {format_value(list(entry.shape))}")
    for index, entry in enumerate(call.message.outputs):
        if not entry.name:
            yield Fault("a name", f"outputs[{index}]: none")


def _classification(call: ParsedCall) -> Faults:
    """`classification`, in the parameters of a requested output, is a count of classes as int64_param."""
    asked = [
        (f"outputs[{index}]", entry.parameters[_CLASSIFICATION])
        for index, entry in enumerate(call.message.outputs)
        if _CLASSIFICATION in entry.parameters
    ]
    found = [
        Fault("an int64_param from 0", f"{field}: {_shown(value)}") for field, value in asked if not _is_count(value)
    ]
    return found if asked else None


def _place_of_classification(call: ParsedCall) -> Faults:
    """A count of classes stands nowhere but in the parameters of a requested output."""
    message = call.message
    owners = [("request", message), *((f"inputs[{index}]", entry) for index, entry in enumerate(message.inputs))]
    found = [
        Fault(f"{_CLASSIFICATION} in the parameters of {_OUTPUT}", f"in those of {field}")
        for field, owner in owners
        # A parameter of another kind is the server's own.
        if _CLASSIFICATION in owner.parameters and _is_count(owner.parameters[_CLASSIFICATION])
    ]
    return found if found or any(_CLASSIFICATION in entry.parameters for entry in message.outputs) else None


def _is_count(parameter: Any) -> bool:
    return parameter.WhichOneof("parameter_choice") == "int64_param" and int(parameter.int64_param) >= 0


def _shown(parameter: Any) -> str:
    kind = parameter.WhichOneof("parameter_choice")
    return "no value" if kind is None else f"{kind} {format_value(getattr(parameter, kind))}"


def _has_typed(call: ParsedCall) -> bool:
    return any(not one.binary and one.array is not None for one in call.inputs)


def _has_half_precision(call: ParsedCall) -> bool:
    return any(one.datatype in BINARY_ONLY and one.binary for one in call.inputs)


def _has_numbers(call: ParsedCall) -> bool:
    return any(one.binary and one.native_size is not None for one in call.inputs)


_Rule = Rule[ParsedCall]

CALL_RULES: Final[tuple[_Rule, ...]] = (
    _Rule("CLIENT-SENDS-POST/grpc", _named),
    _Rule("CLIENT-SENDS-MEMBERS/grpc", _members),
    _Rule("CLIENT-SENDS-CLASSIFICATION/grpc", _classification),
    _Rule("CLIENT-SENDS-CLASSIFICATION-PLACE/grpc", _place_of_classification),
    _Rule("CLIENT-SENDS-DATA/grpc", judge_kinds("data-count", "field-of-another", where=_has_typed)),
    _Rule("CLIENT-SENDS-ELEMENTS/grpc", judge_kinds("data-value", where=_has_typed)),
    _Rule("CLIENT-SENDS-FP16/grpc", judge_kinds("half-precision-typed", where=_has_half_precision)),
    _Rule("CLIENT-SENDS-SIZE/grpc", judge_kinds("size-mismatch", where=_has_numbers)),
    _Rule("CLIENT-SENDS-ORDER/grpc", judge_kinds("order", "entry-count", where=lambda call: len(call.entries) > 1)),
    _Rule(
        "CLIENT-SENDS-BYTES/grpc",
        judge_kinds(
            *("bytes-prefix-truncated", "bytes-past-end", "bytes-count", "bytes-stray"),
            where=lambda call: has_content("BYTES", [one for one in call.inputs if one.binary]),
        ),
    ),
    _Rule(
        "CLIENT-SENDS-BOOL/grpc",
        judge_kinds("bool-byte", where=lambda call: has_content("BOOL", [one for one in call.inputs if one.binary])),
    ),
    _Rule("CLIENT-SENDS-ONE-FORM", judge_kinds("raw-and-typed", where=lambda call: bool(call.message.inputs))),
)
