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


def encode_binary(one: Tensor) -> bytes:
    """Return the binary form of a tensor."""
    flat = one.array.reshape(-1)
    if one.datatype == "BYTES":
        return b"".join(len(element).to_bytes(4, "little") + element for element in flat.tolist())
    return bytes(flat.astype(flat.dtype.newbyteorder("<"), copy=False).tobytes())


def encode_elements(one: Tensor, *, nested: bool = False) -> list[Any]:
    """Return the elements as JSON values, flat or nested like the shape; rank 0 is a list of one.

    Raises:
        ValueError: JSON cannot represent an element.
    """
    values = one.array.tolist() if nested and one.array.ndim else one.array.reshape(-1).tolist()
    texts: list[Any] = _decode_texts(values) if one.datatype == "BYTES" else values
    return texts


def _decode_texts(values: Any) -> Any:
    return [_decode_texts(value) for value in values] if isinstance(values, list) else values.decode()


Document = dict[str, Any]
HeaderUse = Literal["usual", "always", "never"]


@dataclass(frozen=True, slots=True)
class Style:
    """The encoding of a correct answer.

    Attributes:
        form: the form of every output; None: as requested.
        order: puts the outputs and their binary data into another order.
        edit: changes the JSON without changing its meaning.
        nested: whether `data` is nested like the shape.
        content_type: the Content-Type of every answer; None: by whether it has binary data.
        header: when to send the inference header: `usual`, only with binary data; `always`, also with JSON alone;
            `never`, valid if all binary data are empty.
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
        """Return the answer; makes a style an `HttpScript`."""
        parts = self.build_parts(received, inference, tensors)
        headers = make_framing_headers(parts, self.header, self.content_type)
        return self.delivery.answer(200, headers, parts.json + parts.binary, received)

    def build_parts(self, received: ClientRequest, inference: Inference, tensors: Tensors) -> AnswerParts:
        """Return the JSON and the binary data of the answer."""
        listed = self.order(tensors)
        forms = {one.name: self.form or find_requested_form(one.name, received, inference) for one in listed}
        outputs = [make_output_entry(one, forms[one.name], nested=self.nested) for one in listed]
        document = self.edit(make_document(inference, outputs))
        blobs = tuple(encode_binary(one) for one in listed if forms[one.name] == "binary")
        return AnswerParts(self.writing.write(document), blobs, document)


@dataclass(frozen=True, slots=True)
class AnswerParts:
    """An answer before framing: its JSON, and the binary data of each output that has any."""

    json: bytes
    blobs: tuple[bytes, ...]
    document: Document

    @property
    def binary(self) -> bytes:
        """The bytes that follow the JSON in the body."""
        return b"".join(self.blobs)


def make_output_entry(one: Tensor, form: Form, *, nested: bool = False) -> Document:
    """Return the JSON of one output."""
    entry: Document = {"name": one.name, "datatype": one.datatype, "shape": list(one.shape)}
    if form == "binary":
        return {**entry, "parameters": {"binary_data_size": len(encode_binary(one))}}
    return {**entry, "data": encode_elements(one, nested=nested)}


def make_document(inference: Inference, outputs: list[Document]) -> Document:
    """Return the JSON of an answer with these outputs."""
    named = {"model_name": inference.model, "model_version": inference.version or VERSION}
    return {**named, **({} if inference.id is None else {"id": inference.id}), "outputs": outputs}


def make_framing_headers(
    parts: AnswerParts, use: HeaderUse = "usual", content_type: str | None = None
) -> tuple[tuple[str, str], ...]:
    """Return the Content-Type, by default that of the form, and, depending on `use`, the inference header."""
    kind = ("Content-Type", content_type or (OCTET_STREAM if parts.blobs else JSON))
    has_header = use == "always" or (use == "usual" and bool(parts.blobs))
    return (kind, (INFERENCE_HEADER, str(len(parts.json)))) if has_header else (kind,)


def find_requested_form(name: str, received: ClientRequest, inference: Inference) -> Form:
    """Return the requested form of an output: the caller's choice, or else the form in the client's request."""
    if inference.is_raw:
        return "binary"
    asked = next((one for one in inference.outputs or () if one.name == name), None)
    form = (asked and asked.form) or inference.all_outputs
    return form or ("binary" if _is_binary_requested(name, received) else "json")


def _is_binary_requested(name: str, received: ClientRequest) -> bool:
    """Whether the request asks for binary data, for this output or for all outputs."""
    head = received.header(INFERENCE_HEADER) or ""
    length = int(head) if head.isascii() and head.isdigit() else len(received.body)
    with suppress(ValueError, AttributeError, TypeError, KeyError):
        document = json.loads(received.body[:length])
        listed = {one["name"]: one.get("parameters") or {} for one in document.get("outputs") or ()}
        usual = (document.get("parameters") or {}).get("binary_data_output", False)
        return bool(listed.get(name, {}).get("binary_data", usual))
    return False


USUAL: Final = Style()
