"""Wrong answers over HTTP: each contradicts itself, so that a client cannot trust any tensor in it.

A wrong answer is an honest one and the edits that put one fault into it. All outputs are binary data, or all are JSON.
The model has at least two outputs: the first has several elements of a fixed size, another is BYTES.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from conformance.clients.answers.honest import Style
from conformance.clients.answers.script import Delivery, HttpAnswer, HttpScript, Tensors
from conformance.clients.inference import Inference
from conformance.wire.client_request import ClientRequest
from conformance.wire.edits import DocumentEdit, Drop, Set, chain, cut, plus, times
from conformance.wire.message_edits import Body, Data, Edit, encode_edited, measure_body, measure_json, set_length
from conformance.wire.request import Message

Answer = TypeVar("Answer", covariant=True)


class AnswerStyle(Protocol[Answer]):
    """Encodes and delivers honest answers: `Style` over HTTP, `CallStyle` over gRPC."""

    def encode_with(
        self, received: ClientRequest, inference: Inference, tensors: Tensors, edit: DocumentEdit, /
    ) -> Message:
        """Return the honest answer to a request, after an edit of its document."""

    def deliver(self, message: Message, received: ClientRequest, /) -> Answer:
        """Return the answer that sends a message."""


@dataclass(frozen=True, slots=True)
class WrongAnswer(Generic[Answer]):
    """Answers with one fault: honest answers in a style, changed by edits; a script over the transport of the style.

    Attributes:
        style: encodes the honest answer.
        edits: put the fault into it.
    """

    style: AnswerStyle[Answer]
    edits: tuple[Edit, ...]

    def __call__(self, received: ClientRequest, inference: Inference, tensors: Tensors) -> Answer:
        """Return the wrong answer to a request."""
        encode = partial(self.style.encode_with, received, inference, tensors)
        return self.style.deliver(encode_edited(encode, self.edits), received)


def make_wrong_answers(
    style: AnswerStyle[Answer], faults: Mapping[str, Edit | tuple[Edit, ...]]
) -> dict[str, WrongAnswer[Answer]]:
    """Return a script of wrong answers for each entry of a table."""
    return {name: WrongAnswer(style, edits if isinstance(edits, tuple) else (edits,)) for name, edits in faults.items()}


BINARY: Final = Style(form="binary")
JSON: Final = Style(form="json")


# --- the JSON ---------------------------------------------------------------------------------------------------------

FIRST_SIZE: Final = "outputs.0.parameters.binary_data_size"
SECOND_SIZE: Final = "outputs.1.parameters.binary_data_size"
LAST_SIZE: Final = "outputs.-1.parameters.binary_data_size"
OTHER_ID: Final = Set("id", "another-id")
SHAPE_TOO_LARGE: Final = Set("outputs.0.shape.-1", plus(1))
SHAPE_TOO_SMALL: Final = Set("outputs.0.shape.-1", plus(-1))

JSON_OF_BINARY: Final[Mapping[str, Edit]] = {
    "size-too-large": Set(LAST_SIZE, plus(8)),
    "size-too-small": Set(LAST_SIZE, plus(-1)),
    "sizes-shifted": chain(Set(FIRST_SIZE, plus(4)), Set(SECOND_SIZE, plus(-4))),  # their sum is right
    "size-negative": Set(FIRST_SIZE, times(-1)),
    "size-missing": Drop("outputs.0.parameters"),
    "shape-too-large": SHAPE_TOO_LARGE,
    "shape-too-small": SHAPE_TOO_SMALL,
    "shape-huge": Set("outputs.0.shape", [2**31, 2**31]),  # more elements than fit into any memory
    "datatype-wider": Set("outputs.0.datatype", "FP64"),
    "datatype-unknown": Set("outputs.0.datatype", "FLOAT"),
    # A client that reads sizes into 32 bits does not notice these.
    "size-wrapped": Set(FIRST_SIZE, plus(2**32)),
    "last-size-wrapped": Set(LAST_SIZE, plus(2**32)),
}
JSON_OF_DATA: Final[Mapping[str, Edit]] = {
    "json-element-missing": Drop("outputs.0.data.-1"),
    "json-element-too-many": Set("outputs.0.data", plus([7])),
    "json-element-of-another-type": Set("outputs.0.data.0", "seven"),
    "json-element-out-of-range": Set("outputs.0.data.0", 2**40),
    "json-data-missing": Drop("outputs.0.data"),  # without a size, too
}


# --- the binary data --------------------------------------------------------------------------------------------------


def point_prefix_past_end(octets: bytes) -> bytes:
    """Return BYTES data whose first length prefix points past the end of the tensor."""
    return (len(octets) + 100).to_bytes(4, "little") + octets[4:]


def shorten_prefix(octets: bytes) -> bytes:
    """Return BYTES data whose first length prefix is too small by one, which shifts all later elements."""
    return (int.from_bytes(octets[:4], "little") - 1).to_bytes(4, "little") + octets[4:]


def set_huge_prefix(octets: bytes) -> bytes:
    """Return BYTES data whose first length prefix is 2**32 - 1."""
    return b"\xff\xff\xff\xff" + octets[4:]


FRAMES: Final[Mapping[str, Edit | tuple[Edit, ...]]] = {
    "prefix-past-the-end": Data(point_prefix_past_end, "@BYTES"),
    "prefix-short": Data(shorten_prefix, "@BYTES"),
    "prefix-huge": Data(set_huge_prefix, "@BYTES"),
    # The tensor ends inside the length prefix of an extra element; the size in the JSON is that of these data.
    "prefix-cut": (Set("outputs.@BYTES.parameters.binary_data_size", plus(2)), Data(plus(b"\x01\x00"), "@BYTES")),
}
# Content-Length and the inference header stay correct.
LENGTHS: Final[Mapping[str, Edit]] = {
    "bytes-left-over": Body(plus(b"\x01\x02\x03\x04")),
    "last-tensor-missing": Data(b"", "-1"),
    "last-tensor-short": Data(cut(4), "-1"),
}

HEADERS: Final[Mapping[str, Edit]] = {
    "header-past-the-end": set_length(measure_body(plus(1))),
    "header-inside-the-json": set_length(measure_json(plus(-9))),
    "header-inside-the-binary-data": set_length(measure_json(plus(3))),
    "header-negative": set_length("-1"),
    "header-no-number": set_length("abc"),
}

# Bodies without valid outputs, sent with status 200.
BODIES: Final[Mapping[str, Edit]] = {
    "error-with-200": Body(b'{"error":"out of memory"}'),
    "empty-with-200": Body(b""),
    "text-with-200": Body(b"upstream is busy"),
    "json-broken-off": Body(b'{"model_name":"m","outputs":[{"name":"OUT0","datatype":"INT32","shape":[2],"data":[1'),
    "outputs-no-array": Body(b'{"model_name":"m","outputs":7}'),
}


# --- elements ---------------------------------------------------------------------------------------------------------

# Elements of JSON data that are invalid for their datatype: the datatype, the name of the value, and the value.
WRONG_ELEMENTS: Final[tuple[tuple[str, str, Any], ...]] = (
    ("INT32", "fraction", 7.5),
    ("INT64", "fraction", -0.25),
    ("UINT8", "fraction", 7.5),
    ("UINT8", "256", 256),
    ("INT8", "minus-129", -129),
    ("UINT16", "negative", -1),
    ("INT32", "null", None),
    ("FP32", "text", "1.5"),
    ("BOOL", "text", "true"),
    ("BYTES", "number", 7),
)
WRONG_PLACES: Final[Mapping[str, tuple[int, int]]] = {
    "first-of-the-first": (0, 0),
    "last-of-the-first": (0, -1),
    "first-of-the-second": (1, 0),
    "last-of-the-second": (1, -1),
}


def make_wrong_element(output: int, element: int, value: Any) -> WrongAnswer[HttpAnswer]:
    """Return answers in JSON in which one element of an output has this value."""
    return WrongAnswer(JSON, (Set(f"outputs.{output}.data.{element}", value),))


def make_wrong_bool(output: int, element: int) -> WrongAnswer[HttpAnswer]:
    """Return binary answers in which one element of a BOOL output is the byte 2."""

    def set_byte(octets: bytes) -> bytes:
        changed = bytearray(octets)
        changed[element] = 2
        return bytes(changed)

    return WrongAnswer(BINARY, (Data(set_byte, str(output)),))


# --- the answers ------------------------------------------------------------------------------------------------------

WRONG_BINARY: Final = make_wrong_answers(BINARY, {**HEADERS, **JSON_OF_BINARY, **FRAMES})
WRONG_JSON: Final = make_wrong_answers(JSON, {**JSON_OF_DATA, **BODIES})
WRONG_LENGTHS: Final = make_wrong_answers(BINARY, LENGTHS)
# An answer in JSON alone, whose inference header exceeds the length of the body.
HEADER_PAST_JSON: Final = WrongAnswer(JSON, (set_length(measure_json(plus(4))),))
# An answer that announces a content coding without applying it.
FALSE_CODING: Final[HttpScript] = Style(delivery=Delivery(declared_coding="gzip"))
