"""Correct HTTP answers: the same tensors, in every encoding that the documents allow a server.

Binary data are little-endian, row-major, packed; each BYTES element has a 4-byte length prefix (Triton,
Binary Tensor Data Extension, "Data Representation").
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal

from conformance.clients.answers.script import PLAIN, VERSION, Delivery, HttpAnswer, Tensors
from conformance.clients.inference import Inference
from conformance.wire.client_request import ClientRequest
from conformance.wire.json_writing import COMPACT, JsonStyle
from conformance.wire.request import INFERENCE_HEADER, JSON, OCTET_STREAM, Form
from conformance.wire.tensor import Tensor


def encode_binary(tensor: Tensor) -> bytes:
    """Encode a tensor as binary data."""
    flat = tensor.array.reshape(-1)
    if tensor.datatype == "BYTES":
        return b"".join(len(element).to_bytes(4, "little") + element for element in flat.tolist())
    return bytes(flat.astype(flat.dtype.newbyteorder("<"), copy=False).tobytes())


def encode_elements(tensor: Tensor, *, nested: bool = False) -> list[Any]:
    """Return the elements of a tensor as JSON values, in a flat list or in lists nested like the shape.

    A tensor without dimensions becomes a list of one element.

    Raises:
        ValueError: JSON cannot represent an element.
    """
    values = tensor.array.tolist() if nested and tensor.array.ndim else tensor.array.reshape(-1).tolist()
    texts: list[Any] = _decode_strings(values) if tensor.datatype == "BYTES" else values
    return texts


def _decode_strings(values: Any) -> Any:
    return [_decode_strings(value) for value in values] if isinstance(values, list) else values.decode()


Document = dict[str, Any]
HeaderUse = Literal["usual", "always", "never"]


@dataclass(frozen=True, slots=True)
class Style:
    """How to encode a correct HTTP answer. An object of this class is an `HttpScript`.

    Attributes:
        form: how to encode every output, `binary` or `json`; None: as requested.
        order: returns the tensors in the order in which to send them.
        edit: returns the JSON to send for the JSON that it receives; both have the same meaning in a correct answer.
        writing: which whitespace and escapes the JSON has.
        delivery: the HTTP framing of the answer.
        nested: whether `data` is nested like the shape.
        header: when to send the inference header: `usual`, only with binary data; `always`, also with JSON alone;
            `never`, which is valid only if all binary data are empty.
        content_type: the Content-Type of every answer; None: depending on whether the answer has binary data.
    """

    form: Form | None = None
    order: Callable[[Tensors], Tensors] = tuple
    edit: Callable[[Document], Document] = dict
    writing: JsonStyle = COMPACT
    delivery: Delivery = PLAIN
    nested: bool = False
    header: HeaderUse = "usual"
    content_type: str | None = None

    def __call__(self, received: ClientRequest, inference: Inference, tensors: Tensors) -> HttpAnswer:
        """Return the answer to a request."""
        parts = self.build_parts(received, inference, tensors)
        headers = make_framing_headers(parts, self.header, self.content_type)
        return self.delivery.answer(200, headers, parts.json + parts.binary, received)

    def build_parts(self, received: ClientRequest, inference: Inference, tensors: Tensors) -> AnswerParts:
        """Return the JSON and the binary data of the answer to a request."""
        listed = self.order(tensors)
        forms = {tensor.name: self.form or find_requested_form(tensor.name, received, inference) for tensor in listed}
        outputs = [make_output_entry(tensor, forms[tensor.name], nested=self.nested) for tensor in listed]
        document = self.edit(make_document(inference, outputs))
        blobs = tuple(encode_binary(tensor) for tensor in listed if forms[tensor.name] == "binary")
        return AnswerParts(self.writing.write(document), blobs, document)


@dataclass(frozen=True, slots=True)
class AnswerParts:
    """The body of an answer in parts.

    Attributes:
        json: the JSON as sent.
        blobs: the binary data of each binary output, in order.
        document: the JSON before it was written.
    """

    json: bytes
    blobs: tuple[bytes, ...]
    document: Document

    @property
    def binary(self) -> bytes:
        """The bytes that follow the JSON in the body."""
        return b"".join(self.blobs)


def make_output_entry(tensor: Tensor, form: Form, *, nested: bool = False) -> Document:
    """Return the entry of one output in the JSON of an answer."""
    entry: Document = {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}
    if form == "binary":
        return {**entry, "parameters": {"binary_data_size": len(encode_binary(tensor))}}
    return {**entry, "data": encode_elements(tensor, nested=nested)}


def make_document(inference: Inference, outputs: list[Document]) -> Document:
    """Return the JSON of an answer with these output entries."""
    named = {"model_name": inference.model, "model_version": inference.version or VERSION}
    return {**named, **({} if inference.id is None else {"id": inference.id}), "outputs": outputs}


def make_framing_headers(
    parts: AnswerParts, use: HeaderUse = "usual", content_type: str | None = None
) -> tuple[tuple[str, str], ...]:
    """Return the headers of an answer: the Content-Type and, depending on `use`, the inference header.

    By default the Content-Type depends on whether the answer has binary data.
    """
    kind = ("Content-Type", content_type or (OCTET_STREAM if parts.blobs else JSON))
    has_header = use == "always" or (use == "usual" and bool(parts.blobs))
    return (kind, (INFERENCE_HEADER, str(len(parts.json)))) if has_header else (kind,)


def find_requested_form(name: str, received: ClientRequest, inference: Inference) -> Form:
    """Return how to encode an output in the answer: `binary` or `json`.

    This is what the caller requested, or else what the client's request says. Always `binary` for a raw request.
    """
    if inference.is_raw:
        return "binary"
    asked = next((output for output in inference.outputs or () if output.name == name), None)
    form = (asked and asked.form) or inference.all_outputs
    return form or ("binary" if _is_binary_requested(name, received) else "json")


def _is_binary_requested(name: str, received: ClientRequest) -> bool:
    """Whether the request asks for binary data for this output, by `binary_data` or else by `binary_data_output`."""
    head = received.header(INFERENCE_HEADER) or ""
    length = int(head) if head.isascii() and head.isdigit() else len(received.body)
    with suppress(ValueError, AttributeError, TypeError, KeyError):
        document = json.loads(received.body[:length])
        listed = {output["name"]: output.get("parameters") or {} for output in document.get("outputs") or ()}
        usual = (document.get("parameters") or {}).get("binary_data_output", False)
        return bool(listed.get(name, {}).get("binary_data", usual))
    return False


USUAL: Final = Style()
