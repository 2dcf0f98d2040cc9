"""Parses response messages; each output of a ModelInferResponse becomes an array. Never raises.

If a message is ambiguous, the parser chooses the most plausible interpretation of each output. Three faults have no
finding here, because checks of the message report them: an output with both raw and typed contents, a raw entry without
an output, and elements in the field of another datatype.

Source: Open Inference Protocol, gRPC, "Inference" and "Tensor Data".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from conformance.wire import tensor
from conformance.wire.datatypes import DATATYPES
from conformance.wire.finding import DecodeError, Finding
from conformance.wire.grpc_fields import Span, find_excess, scan_raw_spans
from conformance.wire.grpc_request import CONTENTS_FIELDS, Pb, load_stubs
from conformance.wire.json_part import MAX_TENSORS
from conformance.wire.outputs import MAX_RANK, Output
from conformance.wire.response import Answer

# Elements and dimensions that become Python objects: as many as the largest answer of a row has in typed contents.
MAX_ELEMENTS = 5 * 1024 * 1024


def parse_message(body: bytes, method: str = "ModelInfer") -> Pb | None:
    """Parse the response message of a method; None for an unknown method, and invalid or too large bytes."""
    from google.protobuf.message import DecodeError as NotAMessage

    if find_excess(body):
        return None
    try:
        return getattr(load_stubs(), f"{method}Response").FromString(body)
    except (NotAMessage, AttributeError):
        return None


def parse(body: bytes, method: str = "ModelInfer") -> Answer:
    """Parse the serialized response message of a method."""
    message = parse_message(body, method)
    if message is not None and method != "ModelInfer":
        return Answer(body, _list_fields(message), 0, (), ())
    too_large = find_excess(body) if message is None else _find_excess(message)
    if message is None or too_large:
        return Answer(body, None, 0, (), (too_large,) if too_large else ())
    spans = list(scan_raw_spans(body))
    places = _map_raw_entries(message, len(spans))
    outputs = tuple(
        _decode_raw_output(index, entry, body, spans[places[index]])
        if index in places
        else _decode_typed_output(index, entry)
        for index, entry in enumerate(message.outputs)
    )
    findings = tuple(finding for output in outputs for finding in output.findings)
    return Answer(body, _build_document(message), 0, outputs, findings)


def _find_excess(message: Pb) -> Finding | None:
    """Return a finding if a message exceeds the limits of outputs or elements."""
    if (count := len(message.outputs)) > MAX_TENSORS:
        return Finding("outputs-too-many", "outputs", None, f"at most {MAX_TENSORS}", f"{count}")
    total = sum(_count_values(entry) for entry in message.outputs) + _estimate_bytes_elements(message)
    if total > MAX_ELEMENTS:
        return Finding("message-too-large", "outputs", None, f"at most {MAX_ELEMENTS} elements", f"{total}")
    return None


def _count_values(entry: Pb) -> int:
    return len(entry.shape) + sum(len(values) for _, values in entry.contents.ListFields())


def _estimate_bytes_elements(message: Pb) -> int:
    """Return an upper bound for the number of BYTES elements in raw contents, where each takes at least four bytes."""
    shapes = [_parse_shape(entry) for entry in message.outputs if entry.datatype == "BYTES"]
    return min(sum(math.prod(shape) for shape in shapes if shape), sum(map(len, message.raw_output_contents)) // 4)


def _map_raw_entries(message: Pb, entries: int) -> dict[int, int]:
    """Map the index of each output to the index of its entry in raw_output_contents.

    If there are as many entries as outputs without typed contents, the entries belong to these outputs.
    """
    outputs = range(len(message.outputs))
    if entries < len(message.outputs):
        outputs_without = [index for index in outputs if not message.outputs[index].contents.ListFields()]
        if len(outputs_without) == entries:
            return {index: entry_index for entry_index, index in enumerate(outputs_without)}
    return {index: index for index in outputs if index < entries}


def _build_document(message: Pb) -> dict[str, Any]:
    """Return the JSON document that an HTTP answer would have, but with `data` only for BYTES outputs."""
    outputs = [
        {
            **_drop_empty({"name": entry.name, "datatype": entry.datatype}),
            "shape": list(entry.shape),
            "data": [text.decode("utf-8", "surrogateescape") for text in entry.contents.bytes_contents],
        }
        for entry in message.outputs
    ]
    named = {name: getattr(message, name) for name in ("model_name", "model_version", "id")}
    return {**_drop_empty(named), "outputs": outputs}


def _drop_empty(members: dict[str, Any]) -> dict[str, Any]:
    """Return the members without empty strings, which stand for absent fields."""
    return {name: value for name, value in members.items() if value != ""}


def _list_fields(message: Pb) -> dict[str, Any]:
    """Return the fields of a message of metadata or health as a JSON object."""
    return {field.name: _to_json(getattr(message, field.name)) for field in message.DESCRIPTOR.fields}


def _to_json(value: Any) -> Any:
    if isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Mapping):
        return {str(name): _to_json(each) for name, each in value.items()}
    return _list_fields(value) if hasattr(value, "DESCRIPTOR") else [_to_json(each) for each in value]


def _parse_shape(entry: Pb) -> tuple[int, ...] | None:
    if len(entry.shape) > MAX_RANK:
        return None
    shape = tuple(entry.shape)
    return shape if all(size >= 0 for size in shape) else None


def _decode_raw_output(index: int, entry: Pb, body: bytes, span: Span) -> Output:
    shape, size = _parse_shape(entry), span[1] - span[0]
    array: np.ndarray[Any, Any] | None = None
    findings: tuple[Finding, ...] = ()
    if shape is not None and entry.datatype in DATATYPES:
        try:
            array = tensor.decode(entry.datatype, shape, body[slice(*span)])
        except DecodeError as error:
            findings = (error.finding,)
        except ValueError:
            pass  # an empty shape that numpy does not support
    return Output(index, entry.name, entry.datatype, shape, True, size, span, array, findings)


def _decode_typed_output(index: int, entry: Pb) -> Output:
    shape = _parse_shape(entry)
    array: np.ndarray[Any, Any] | None = None
    findings: tuple[Finding, ...] = ()
    if shape is not None and entry.datatype in DATATYPES:
        values = read_elements(entry)
        if len(values) != math.prod(shape):
            expected = f"{math.prod(shape)} elements for the shape {list(shape)}"
            findings = (Finding("data-count", f"outputs[{index}].contents", None, expected, f"{len(values)}"),)
        else:
            array = _build_array(entry.datatype, shape, values)
    return Output(index, entry.name, entry.datatype, shape, False, None, None, array, findings)


def read_elements(entry: Pb) -> Sequence[Any]:
    """Return an output's typed elements: from the field of its datatype, or else from the first field with elements."""
    own: Sequence[Any] = getattr(entry.contents, CONTENTS_FIELDS.get(entry.datatype, "bytes_contents"))
    return own or next((values for _, values in entry.contents.ListFields()), ())


def _build_array(datatype: str, shape: Sequence[int], values: Sequence[Any]) -> np.ndarray[Any, Any] | None:
    try:
        return tensor.Tensor.from_values("", datatype, list(values), shape).array
    except (ValueError, TypeError, OverflowError):
        return None  # the datatype cannot represent the elements
