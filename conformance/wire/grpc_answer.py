"""A ModelInferResponse taken apart: each output as an array, whichever of the two forms it came in. Never raises.

What is wrong with the forms themselves (both at once, an entry too many, another datatype's field) is left to the
checks of the forms, which look at the message: here an output is read as it can best be understood.

Source: Open Inference Protocol, gRPC, "Inference" and "Tensor Data".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from conformance.wire import tensor
from conformance.wire.datatypes import DATATYPES
from conformance.wire.finding import DecodeError, Finding
from conformance.wire.grpc_request import FIELDS, Pb, stubs
from conformance.wire.outputs import RANK_LIMIT, Output
from conformance.wire.response import Answer

RAW_OUTPUTS = 6  # the number of the field raw_output_contents in a ModelInferResponse
_DELIMITED = 2  # the wire type of a field that has its length in front

Span = tuple[int, int]


def response(body: bytes, method: str = "ModelInfer") -> Pb | None:
    """Return the response message of a method, or None where the bytes are none."""
    from google.protobuf.message import DecodeError as NotAMessage

    try:
        return getattr(stubs(), f"{method}Response").FromString(body)
    except NotAMessage:
        return None


def take_apart(body: bytes) -> Answer:
    """Take the answer to an inference request apart."""
    message = response(body)
    if message is None:
        return Answer(body, None, 0, (), ())
    spans = list(raw_spans(body))
    places = _places(message, len(spans))
    outputs = tuple(
        _raw(index, entry, body, spans[places[index]]) if index in places else _typed(index, entry)
        for index, entry in enumerate(message.outputs)
    )
    findings = tuple(finding for output in outputs for finding in output.findings)
    return Answer(body, _document(message), 0, outputs, findings)


def _places(message: Pb, entries: int) -> dict[int, int]:
    """Return output -> entry of raw_output_contents; where those are too few, they are for outputs without contents."""
    outputs = range(len(message.outputs))
    if entries < len(message.outputs):
        outputs_without = [index for index in outputs if not message.outputs[index].contents.ListFields()]
        if len(outputs_without) == entries:
            return {index: place for place, index in enumerate(outputs_without)}
    return {index: index for index in outputs if index < entries}


def _document(message: Pb) -> dict[str, Any]:
    """Return what checks look for in the JSON of an answer over HTTP; of elements, texts alone."""
    outputs = [
        {
            "name": entry.name,
            "datatype": entry.datatype,
            "shape": list(entry.shape),
            "data": [text.decode("utf-8", "surrogateescape") for text in entry.contents.bytes_contents],
        }
        for entry in message.outputs
    ]
    named = {"model_name": message.model_name, "model_version": message.model_version}
    return {**named, **({"id": message.id} if message.id else {}), "outputs": outputs}


def _shape(entry: Pb) -> tuple[int, ...] | None:
    shape = tuple(entry.shape)
    return shape if len(shape) <= RANK_LIMIT and all(size >= 0 for size in shape) else None


def _raw(index: int, entry: Pb, body: bytes, span: Span) -> Output:
    shape, size = _shape(entry), span[1] - span[0]
    array: np.ndarray[Any, Any] | None = None
    findings: tuple[Finding, ...] = ()
    if shape is not None and entry.datatype in DATATYPES:
        try:
            array = tensor.decode(entry.datatype, shape, body[slice(*span)])
        except DecodeError as error:
            findings = (error.finding,)
        except ValueError:
            pass  # a shape that numpy cannot have, of no elements
    return Output(index, entry.name, entry.datatype, shape, True, size, span, array, findings)


def _typed(index: int, entry: Pb) -> Output:
    shape = _shape(entry)
    array: np.ndarray[Any, Any] | None = None
    findings: tuple[Finding, ...] = ()
    if shape is not None and entry.datatype in DATATYPES:
        values = elements(entry)
        if len(values) != math.prod(shape):
            expected = f"{math.prod(shape)} elements for shape {list(shape)}"
            findings = (Finding("data-count", f"outputs[{index}].contents", None, expected, f"{len(values)}"),)
        else:
            array = _array(entry.datatype, shape, values)
    return Output(index, entry.name, entry.datatype, shape, False, None, None, array, findings)


def elements(entry: Pb) -> Sequence[Any]:
    """Return the elements of an output's contents: of the field for its datatype, or of the first that has any."""
    own: Sequence[Any] = getattr(entry.contents, FIELDS.get(entry.datatype, "bytes_contents"))
    return own or next((values for _, values in entry.contents.ListFields()), ())


def _array(datatype: str, shape: Sequence[int], values: Sequence[Any]) -> np.ndarray[Any, Any] | None:
    try:
        return tensor.Tensor.of("", datatype, list(values), shape).array
    except (ValueError, TypeError, OverflowError):
        return None  # elements that the datatype cannot hold


# --- protobuf's encoding ---------------------------------------------------------------------------------------------


def raw_spans(body: bytes, field: int = RAW_OUTPUTS) -> Iterator[Span]:
    """Yield where the entries of raw_output_contents, or of another field, lie in a message that protobuf takes."""
    at = 0
    while at < len(body):
        tag, at = _varint(body, at)
        if tag & 7 == _DELIMITED:
            length, at = _varint(body, at)
            if tag >> 3 == field:
                yield at, at + length
            at += length
        elif tag & 7 == 0:
            _, at = _varint(body, at)
        else:
            at += {1: 8, 5: 4}.get(tag & 7, len(body))


def _varint(body: bytes, at: int) -> tuple[int, int]:
    """Return an integer of groups of seven bits, the lowest first, and where it ends."""
    value = shift = 0
    while at < len(body):
        byte = body[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            break
    return value, at
