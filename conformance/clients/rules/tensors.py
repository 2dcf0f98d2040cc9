"""The rules for the tensors of an HTTP request: as JSON, as binary data, or as the body of a raw request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from conformance.clients.rules.rule import Fault, Faults, to_fault
from conformance.roles.roles import BINARY_ONLY
from conformance.wire.finding import format_value
from conformance.wire.json_data import flatten
from conformance.wire.outputs import Output
from conformance.wire.parsed_request import ParsedRequest
from conformance.wire.request import INFERENCE_HEADER

_DATA: Final = frozenset({"data-missing", "data-count"})
# The types of elements in the protocol: number, string or boolean, which is an int in Python.
_ELEMENTS: Final = (int, float, str)
_HEADERS: Final = ("text", "negative", "beyond-body", "cuts-json", "covers-binary")


def judge_header_once(request: ParsedRequest) -> Faults:
    """With binary data, the inference header is present exactly once."""
    count = len(request.received.values(INFERENCE_HEADER))
    if count > 1:
        return [Fault(f"one {INFERENCE_HEADER}", f"{count} of them")]
    missing = [to_fault(finding) for finding in request.findings if finding.kind == "inference-header-missing"]
    return missing if missing or request.has_binary_data else None


def judge_header_length(request: ParsedRequest) -> Faults:
    """The inference header is the length of the JSON before binary data; it is not 0, which marks a raw request."""
    found = _find_header_faults(request, "zero", *(_HEADERS if request.has_binary_data else ()))
    return found if found or (request.has_binary_data and request.header is not None) else None


def judge_header_on_json(request: ParsedRequest) -> Faults:
    """An inference header of a request without binary data is the length of the JSON."""
    if request.document is None or request.header is None or request.has_binary_data:
        return None
    return _find_header_faults(request, *_HEADERS)


def _find_header_faults(request: ParsedRequest, *kinds: str) -> list[Fault]:
    wanted = {f"inference-header-{kind}" for kind in kinds}
    return [to_fault(finding) for finding in request.findings if finding.kind in wanted]


def list_json_inputs(request: ParsedRequest) -> list[Output]:
    """Return the inputs whose elements are JSON, in `data`."""
    items = request.items()
    return [one for one in request.inputs if not one.binary and items[one.index].get("data") is not None]


def judge_data(request: ParsedRequest) -> Faults:
    """An input that is not binary has its elements in `data`, flat or nested like its shape."""
    found = [to_fault(finding) for finding in request.findings if finding.kind in _DATA]
    given = list_json_inputs(request)
    items = request.items()
    found += _find_value_faults(request, are_scalars=False)
    found += [
        fault for one in given if one.array is not None for fault in _find_nesting_faults(one, items[one.index]["data"])
    ]
    return found if found or given else None


def judge_elements(request: ParsedRequest) -> Faults:
    """The elements of `data` have the input's datatype and are within its range."""
    found = _find_value_faults(request, are_scalars=True)
    return found if found or any(one.array is not None for one in list_json_inputs(request)) else None


def _find_value_faults(request: ParsedRequest, *, are_scalars: bool) -> list[Fault]:
    """Return the faults of JSON values that are invalid for their datatype, in one of two groups of inputs.

    With `are_scalars`, only inputs whose elements are all numbers, strings or booleans; otherwise only the rest.

    """
    items = request.items()
    return [
        to_fault(finding)
        for one in list_json_inputs(request)
        for finding in one.findings
        if finding.kind == "data-value" and _has_only_scalars(items[one.index]["data"]) == are_scalars
    ]


def _has_only_scalars(data: Any) -> bool:
    return isinstance(data, list) and all(isinstance(one, _ELEMENTS) for one in flatten(data, ()))


def _find_nesting_faults(one: Output, given: Any) -> Iterator[Fault]:
    if one.shape and one.array is not None and one.array.size and not is_nested_as(given, one.shape):
        expected = f"elements in one array, or nested as {format_value(list(one.shape))}"
        yield Fault(expected, f"{one.json_path}.data: {format_value(given)}")


def is_nested_as(values: Any, shape: Sequence[int]) -> bool:
    """Whether JSON data are a flat list, or lists nested like the shape. Callers check the number of elements."""
    if not isinstance(values, list) or list not in set(map(type, values)):
        return True
    level = [values]
    for size, _ in pairwise((*shape, 0)):
        if any(not isinstance(one, list) or len(one) != size for one in level):
            return False
        level = [inner for one in level for inner in one]
    return not any(isinstance(one, list) for one in level)


def judge_half_precision(request: ParsedRequest) -> Faults:
    """FP16 and BF16 are not sent as JSON."""
    given = [one for one in list_json_inputs(request) if one.datatype in BINARY_ONLY]
    if given:
        return [Fault(f"{one.datatype} as binary data", f"{one.json_path}.data: JSON") for one in given]
    return () if any(one.datatype in BINARY_ONLY for one in request.binary) else None


def has_decoded_elements(datatype: str, inputs: Sequence[Output]) -> bool:
    """Whether one of the inputs has this datatype and at least one decoded element."""
    return any(one.datatype == datatype and one.array is not None and one.array.size for one in inputs)


def has_json_elements(datatype: str, request: ParsedRequest) -> bool:
    """Whether the request has an input of this datatype with at least one element as JSON."""
    return any(
        one.datatype == datatype and one.array is not None and one.array.size for one in list_json_inputs(request)
    )


def has_visible_order(request: ParsedRequest) -> bool:
    """Whether a wrong order of binary data can be detected: several inputs have binary data, one of them BYTES."""
    filled = [one for one in request.binary if one.span is not None and one.span[0] < one.span[1]]
    return len(filled) > 1 and has_decoded_elements("BYTES", filled)


def judge_raw(request: ParsedRequest) -> Faults:
    """A raw binary request has an inference header of 0."""
    if not request.is_raw:
        return None
    return [to_fault(finding) for finding in request.findings if finding.kind == "raw-without-header"]
