"""Wrong HTTP answers: each contradicts itself, so that a client cannot trust any tensor in it.

Each function makes one part of a correct answer wrong; its docstring states the resulting fault. All outputs are binary
data, or all are JSON. The model has at least two outputs: the first has several elements of a fixed size, another is
BYTES.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from conformance.clients.answers.honest import AnswerParts, Document, Style, encode_binary, make_framing_headers
from conformance.clients.answers.honest_calls import CallStyle
from conformance.clients.answers.script import PLAIN, CallAnswer, Delivery, HttpAnswer, HttpScript, Tensors
from conformance.clients.inference import Inference
from conformance.wire.client_request import ClientRequest
from conformance.wire.request import INFERENCE_HEADER, JSON, OCTET_STREAM, Form

SIZE: Final = "binary_data_size"


# --- the JSON ---------------------------------------------------------------------------------------------------------


def enlarge_last_size(document: Document) -> None:
    """The last output declares 8 bytes more than follow."""
    document["outputs"][-1]["parameters"][SIZE] += 8


def shrink_last_size(document: Document) -> None:
    """The last output declares one byte less than follows."""
    document["outputs"][-1]["parameters"][SIZE] -= 1


def shift_sizes(document: Document) -> None:
    """The sizes add up, but one is 4 bytes too large and the next one 4 bytes too small."""
    document["outputs"][0]["parameters"][SIZE] += 4
    document["outputs"][1]["parameters"][SIZE] -= 4


def negate_size(document: Document) -> None:
    """A size is negative."""
    document["outputs"][0]["parameters"][SIZE] *= -1


def drop_size(document: Document) -> None:
    """An output has neither `data` nor a size, although its binary data follow."""
    del document["outputs"][0]["parameters"]


def enlarge_shape(document: Document) -> None:
    """The last dimension of a shape is too large by one."""
    document["outputs"][0]["shape"][-1] += 1


def shrink_shape(document: Document) -> None:
    """The last dimension of a shape is too small by one."""
    document["outputs"][0]["shape"][-1] -= 1


def set_huge_shape(document: Document) -> None:
    """A shape has more elements than fit into any memory."""
    document["outputs"][0]["shape"] = [2**31, 2**31]


def widen_datatype(document: Document) -> None:
    """The datatype has elements of 8 bytes (FP64)."""
    document["outputs"][0]["datatype"] = "FP64"


def set_unknown_datatype(document: Document) -> None:
    """The datatype is not in the protocol."""
    document["outputs"][0]["datatype"] = "FLOAT"


def drop_last_element(document: Document) -> None:
    """JSON data lack the last element."""
    del document["outputs"][0]["data"][-1]


def append_element(document: Document) -> None:
    """JSON data have an extra element."""
    document["outputs"][0]["data"].append(7)


def replace_number_by_string(document: Document) -> None:
    """A number is replaced by a string."""
    document["outputs"][0]["data"][0] = "seven"


def exceed_range(document: Document) -> None:
    """A number is out of range for the datatype."""
    document["outputs"][0]["data"][0] = 2**40


def drop_data(document: Document) -> None:
    """An output has neither `data` nor a size, and no binary data follow."""
    del document["outputs"][0]["data"]


def wrap_size(document: Document) -> None:
    """A size is too large by 2**32. A client that reads sizes into 32 bits does not notice the fault."""
    document["outputs"][0]["parameters"][SIZE] += 2**32


def wrap_last_size(document: Document) -> None:
    """The size of the last output is too large by 2**32."""
    document["outputs"][-1]["parameters"][SIZE] += 2**32


def set_other_id(document: Document) -> None:
    """The answer has the id of another request."""
    document["id"] = "another-id"


JSON_OF_BINARY: Final[Mapping[str, Callable[[Document], None]]] = {
    "size-too-large": enlarge_last_size,
    "size-too-small": shrink_last_size,
    "sizes-shifted": shift_sizes,
    "size-negative": negate_size,
    "size-missing": drop_size,
    "shape-too-large": enlarge_shape,
    "shape-too-small": shrink_shape,
    "shape-huge": set_huge_shape,
    "datatype-wider": widen_datatype,
    "datatype-unknown": set_unknown_datatype,
    "size-wrapped": wrap_size,
    "last-size-wrapped": wrap_last_size,
}
JSON_OF_DATA: Final[Mapping[str, Callable[[Document], None]]] = {
    "json-element-missing": drop_last_element,
    "json-element-too-many": append_element,
    "json-element-of-another-type": replace_number_by_string,
    "json-element-out-of-range": exceed_range,
    "json-data-missing": drop_data,
}


# --- the binary data --------------------------------------------------------------------------------------------------


def point_prefix_past_end(octets: bytes) -> bytes:
    """The first length prefix of a BYTES tensor points past the end of the tensor."""
    return (len(octets) + 100).to_bytes(4, "little") + octets[4:]


def shorten_prefix(octets: bytes) -> bytes:
    """The first length prefix of a BYTES tensor is too small by one, which shifts all later elements."""
    return (int.from_bytes(octets[:4], "little") - 1).to_bytes(4, "little") + octets[4:]


def set_huge_prefix(octets: bytes) -> bytes:
    """The first length prefix of a BYTES tensor is 2**32 - 1."""
    return b"\xff\xff\xff\xff" + octets[4:]


def append_cut_prefix(octets: bytes) -> bytes:
    """A BYTES tensor ends inside the length prefix of an extra element."""
    return octets + b"\x01\x00"


# The size in the JSON is adjusted to the data, so that only the length prefixes of elements are wrong.
FRAMES: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "prefix-past-the-end": point_prefix_past_end,
    "prefix-short": shorten_prefix,
    "prefix-huge": set_huge_prefix,
    "prefix-cut": append_cut_prefix,
}


# --- the inference header ---------------------------------------------------------------------------------------------

HEADERS: Final[Mapping[str, Callable[[AnswerParts], str]]] = {
    "header-past-the-end": lambda parts: str(len(parts.json) + len(parts.binary) + 1),
    "header-inside-the-json": lambda parts: str(len(parts.json) - 9),
    "header-inside-the-binary-data": lambda parts: str(len(parts.json) + 3),
    "header-negative": lambda _: "-1",
    "header-no-number": lambda _: "abc",
}


# --- the body ---------------------------------------------------------------------------------------------------------

# Bodies without valid outputs, sent with status 200.
BODIES: Final[Mapping[str, bytes]] = {
    "error-with-200": b'{"error":"out of memory"}',
    "empty-with-200": b"",
    "text-with-200": b"upstream is busy",
    "json-broken-off": b'{"model_name":"m","outputs":[{"name":"OUT0","datatype":"INT32","shape":[2],"data":[1',
    "outputs-no-array": b'{"model_name":"m","outputs":7}',
}


def make_json_script(change: Callable[[Document], None], form: Form) -> HttpScript:
    """Return a script of correct answers, except that `change` changes a copy of their JSON.

    All outputs are encoded as `form` says: `binary` or `json`.
    """

    def change_copy(document: Document) -> Document:
        copy: Document = json.loads(json.dumps(document))
        change(copy)
        return copy

    return Style(form=form, edit=change_copy)


def make_bytes_script(corrupt: Callable[[bytes], bytes]) -> HttpScript:
    """Return a script of answers in which `corrupt` changes the binary data of the first BYTES output."""

    def answer(received: ClientRequest, inference: Inference, tensors: Tensors) -> HttpAnswer:
        index = [one.datatype for one in tensors].index("BYTES")
        honest = Style(form="binary").build_parts(received, inference, tensors)
        blobs = tuple(corrupt(blob) if k == index else blob for k, blob in enumerate(honest.blobs))
        document: dict[str, Any] = json.loads(json.dumps(honest.document))
        document["outputs"][index]["parameters"][SIZE] = len(blobs[index])
        return _frame_answer(replace(honest, json=json.dumps(document).encode(), blobs=blobs), received)

    return answer


def make_header_script(value: Callable[[AnswerParts], str]) -> HttpScript:
    """Return a script of answers whose inference header has the value that `value` computes."""

    def answer(received: ClientRequest, inference: Inference, tensors: Tensors) -> HttpAnswer:
        parts = Style(form="binary").build_parts(received, inference, tensors)
        headers = (("Content-Type", OCTET_STREAM), (INFERENCE_HEADER, value(parts)))
        return PLAIN.answer(200, headers, parts.json + parts.binary, received)

    return answer


def make_body_script(body: bytes) -> HttpScript:
    """Return a script of answers with status 200 and this body."""

    def answer(received: ClientRequest, _inference: Inference, _tensors: Tensors) -> HttpAnswer:
        return PLAIN.answer(200, (("Content-Type", "application/json"),), body, received)

    return answer


def _frame_answer(parts: AnswerParts, received: ClientRequest) -> HttpAnswer:
    return PLAIN.answer(200, make_framing_headers(parts), parts.json + parts.binary, received)


def make_element_change(output: int, element: int, value: Any) -> Callable[[Document], None]:
    """Return a function that replaces one element in the data of a JSON answer, for `make_json_script`."""

    def change(document: Document) -> None:
        document["outputs"][output]["data"][element] = value

    return change


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


def make_bool_script(output: int, element: int) -> HttpScript:
    """Return a script of answers in which one element of a BOOL output is the byte 2."""

    def answer(received: ClientRequest, inference: Inference, tensors: Tensors) -> HttpAnswer:
        parts = Style(form="binary").build_parts(received, inference, tensors)
        blobs = [bytearray(blob) for blob in parts.blobs]
        blobs[output][element] = 2
        return _frame_answer(replace(parts, blobs=tuple(map(bytes, blobs))), received)

    return answer


WRONG_BINARY: Final[Mapping[str, HttpScript]] = {
    **{name: make_header_script(value) for name, value in HEADERS.items()},
    **{name: make_json_script(change, "binary") for name, change in JSON_OF_BINARY.items()},
    **{name: make_bytes_script(corrupt) for name, corrupt in FRAMES.items()},
}
WRONG_JSON: Final[Mapping[str, HttpScript]] = {
    **{name: make_json_script(change, "json") for name, change in JSON_OF_DATA.items()},
    **{name: make_body_script(body) for name, body in BODIES.items()},
}
# An answer that announces a content coding without applying it.
FALSE_CODING: Final[HttpScript] = Style(delivery=Delivery(declared_coding="gzip"))


def append_bytes(parts: AnswerParts) -> AnswerParts:
    """Extra bytes follow the last output."""
    return replace(parts, blobs=(*parts.blobs, b"\x01\x02\x03\x04"))


def drop_last_tensor(parts: AnswerParts) -> AnswerParts:
    """The body ends where the last output begins."""
    return replace(parts, blobs=parts.blobs[:-1])


def cut_last_tensor(parts: AnswerParts) -> AnswerParts:
    """The body ends inside the last output."""
    return replace(parts, blobs=(*parts.blobs[:-1], parts.blobs[-1][:-4]))


def make_parts_script(corrupt: Callable[[AnswerParts], AnswerParts]) -> HttpScript:
    """Return a script of answers whose JSON or binary data `corrupt` changes; Content-Length stays correct."""

    def answer(received: ClientRequest, inference: Inference, tensors: Tensors) -> HttpAnswer:
        parts = corrupt(Style(form="binary").build_parts(received, inference, tensors))
        return PLAIN.answer(200, make_framing_headers(parts), parts.json + parts.binary, received)

    return answer


def send_header_past_json(received: ClientRequest, inference: Inference, tensors: Tensors) -> HttpAnswer:
    """The answer is only JSON, and its inference header exceeds the length of the body."""
    parts = Style(form="json").build_parts(received, inference, tensors)
    headers = (("Content-Type", JSON), (INFERENCE_HEADER, str(len(parts.json) + 4)))
    return PLAIN.answer(200, headers, parts.json, received)


def send_extra_entry(_received: ClientRequest, inference: Inference, tensors: Tensors) -> CallAnswer:
    """A gRPC answer has one raw entry more than outputs."""
    style = CallStyle()
    raw = [encode_binary(one) for one in tensors]
    return CallAnswer(style.encode_message(inference, [style.encode_entry(one) for one in tensors], [*raw, raw[0]]))


WRONG_LENGTHS: Final[Mapping[str, HttpScript]] = {
    "bytes-left-over": make_parts_script(append_bytes),
    "last-tensor-missing": make_parts_script(drop_last_tensor),
    "last-tensor-short": make_parts_script(cut_last_tensor),
}
