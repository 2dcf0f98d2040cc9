"""Parses a ModelInferRequest: each input becomes an array, from raw or typed contents. Never raises.

The generated protobuf classes are in the extra `grpc`; they are imported on first use.
Source: Open Inference Protocol, gRPC, "Inference" and "Tensor Data".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from conformance.wire import tensor
from conformance.wire.client_request import ClientRequest
from conformance.wire.datatypes import DATATYPES
from conformance.wire.finding import DecodeError, Finding, format_value
from conformance.wire.grpc_fields import Span, scan_raw_spans
from conformance.wire.grpc_request import CONTENTS_FIELDS, Pb, load_stubs
from conformance.wire.orders import is_other_bool_encoding, list_other_orders
from conformance.wire.outputs import MAX_RANK, Output

RAW_INPUTS_FIELD: Final = 7  # the number of the field raw_input_contents in a ModelInferRequest
# An input with this parameter has its tensor outside of the request.
_ELSEWHERE: Final = "shared_memory_region"


@dataclass(frozen=True, slots=True, eq=False)
class ParsedCall:
    """A parsed call of ModelInfer.

    Attributes:
        body: the serialized message; the offsets of findings are offsets in this body.
        entries: start and end of each entry of raw_input_contents in the body.
        inputs: the inputs in the order of the message; `Output.binary` is true for inputs in raw contents.
        findings: all findings, including the findings of the inputs.
    """

    message: Pb
    body: bytes
    entries: tuple[Span, ...]
    inputs: tuple[Output, ...]
    findings: tuple[Finding, ...]


@lru_cache(maxsize=4)  # as in `parsed_request`
def parse(received: ClientRequest) -> ParsedCall | None:
    """Parse a call of ModelInfer; None if its body is not a ModelInferRequest."""
    from google.protobuf.message import DecodeError as NotAMessage

    try:
        message = load_stubs().ModelInferRequest.FromString(received.body)
    except NotAMessage:
        return None
    body, entries = received.body, tuple(scan_raw_spans(received.body, RAW_INPUTS_FIELD))
    raw, faults = _map_raw_entries(message, len(entries))
    inputs = [
        _decode_raw_input(_build_input(index, entry), body, entries[raw[index]])
        if index in raw
        else _decode_typed_input(index, entry)
        for index, entry in enumerate(message.inputs)
    ]
    if not faults:
        inputs = _find_other_order(inputs, body) or inputs
    hidden = {"data-count"} if faults else set()
    found = [finding for one in inputs for finding in one.findings if finding.kind not in hidden]
    return ParsedCall(message, body, entries, tuple(inputs), (*faults, *found))


def _map_raw_entries(message: Pb, entries: int) -> tuple[dict[int, int], list[Finding]]:
    """Map the index of each input to the index of its entry in raw_input_contents; also return the findings.

    Findings are about the number of entries, and about requests with both raw and typed contents.
    """
    if not entries:
        return {}, []
    here = [index for index, entry in enumerate(message.inputs) if _ELSEWHERE not in entry.parameters]
    typed = {index for index in here if message.inputs[index].contents.ListFields()}
    bare = [index for index in here if index not in typed]
    if typed:
        fault = Finding(
            "raw-and-typed",
            "request",
            None,
            "raw or typed contents",
            f"raw contents, and {len(typed)} inputs with typed contents",
        )
        raw = bare if len(bare) == entries else []
        return {index: entry_index for entry_index, index in enumerate(raw)}, [fault]
    if len(here) != entries:
        expected = f"{len(here)} entries, one for each input"
        return {}, [Finding("entry-count", "raw_input_contents", None, expected, f"{entries} entries")]
    return {index: entry_index for entry_index, index in enumerate(here)}, []


def _build_input(index: int, entry: Pb) -> Output:
    shape = tuple(entry.shape)
    usable = len(shape) <= MAX_RANK and all(size >= 0 for size in shape)
    return Output(index, entry.name, entry.datatype, shape if usable else None, False, None, member="inputs")


def _decode_raw_input(one: Output, body: bytes, span: Span) -> Output:
    placed = replace(one, binary=True, declared_size=span[1] - span[0], span=span, array=None, findings=())
    if one.shape is None or one.datatype not in DATATYPES:
        return placed
    try:
        array = tensor.decode(one.datatype, one.shape, memoryview(body)[slice(*span)])
    except DecodeError as error:
        return placed.with_findings(_relocate_finding(error.finding, one, span))
    except ValueError:
        return placed  # an empty shape that numpy does not support
    found = tensor.find_bool_faults(array) if one.datatype == "BOOL" else ()
    return replace(placed, array=array).with_findings(*(_relocate_finding(finding, one, span) for finding in found))


def _relocate_finding(finding: Finding, one: Output, span: Span) -> Finding:
    return replace(finding, field=f"{one.label} {finding.field}", offset=span[0] + (finding.offset or 0))


# --- typed contents --------------------------------------------------------------------------------------------------


def _decode_typed_input(index: int, entry: Pb) -> Output:
    one = _build_input(index, entry)
    filled = {field.name: values for field, values in entry.contents.ListFields()}
    if one.shape is None or one.datatype not in DATATYPES or _ELSEWHERE in entry.parameters:
        return one
    own = CONTENTS_FIELDS.get(one.datatype)
    if own is None:
        fields = ", ".join(sorted(filled))
        if not filled and one.native_size == 0:
            return one
        actual = fields or "no contents"
        return one.with_findings(Finding("half-precision-typed", one.json_path, None, "raw_input_contents", actual))
    others = sorted(filled.keys() - {own})
    if others:
        return one.with_findings(Finding("field-of-another", f"{one.json_path}.contents", None, own, ", ".join(others)))
    return _add_elements(one, list(filled.get(own, ())))


def read_typed_elements(entry: Pb) -> list[Any] | None:
    """Return an input's elements from the field of its datatype, unchanged; None if the datatype has no field."""
    own = CONTENTS_FIELDS.get(entry.datatype)
    return None if own is None else list(getattr(entry.contents, own))


def _add_elements(one: Output, values: list[Any]) -> Output:
    shape = one.shape or ()
    try:
        if one.datatype == "BYTES":
            texts = [""] * len(values)  # the elements are bytes already; only their number is checked here
            tensor.from_json(one.datatype, shape, texts)
            array = tensor.Tensor.from_values("", "BYTES", values, shape).array
        else:
            array = tensor.from_json(one.datatype, shape, values)
    except DecodeError as error:
        return one.with_findings(replace(error.finding, field=f"{one.json_path}.contents {error.finding.field}"))
    except ValueError:
        return one  # an empty shape that numpy does not support
    return replace(one, array=array)


# --- the order of entries --------------------------------------------------------------------------------------------


def _find_other_order(inputs: Sequence[Output], body: bytes) -> list[Output] | None:
    """Return the inputs with raw entries in another order, in which all are valid; None without such an order."""
    raw = [one for one in inputs if one.span is not None]
    if is_other_bool_encoding(raw, body):
        return None
    for order in list_other_orders([one.name for one in raw]):
        placed = {
            one.index: _decode_raw_input(one, body, span)
            for one, span in zip(raw, _list_spans(raw, order), strict=True)
        }
        if not any(one.findings for one in placed.values()):
            moved = [placed.get(one.index, one) for one in inputs]
            return _mark_first_moved(inputs, moved)
    return None


def _list_spans(raw: Sequence[Output], order: Sequence[int]) -> Iterator[Span]:
    for index in order:
        span = raw[index].span
        if span is not None:
            yield span


def _mark_first_moved(inputs: Sequence[Output], moved: list[Output]) -> list[Output]:
    first = next(place for place, one in enumerate(inputs) if one.span != moved[place].span)
    given = moved[first].datatype
    datatype = given if given in DATATYPES else format_value(given)  # untrusted text
    expected = f"the bytes of {moved[first].label}, {datatype} {format_value(list(moved[first].shape or ()))}"
    span = inputs[first].span
    actual = f"{(span[1] - span[0]) if span else 0} bytes that belong to another input"
    moved[first] = moved[first].with_findings(
        Finding("order", "raw_input_contents", span and span[0], expected, actual)
    )
    return moved
