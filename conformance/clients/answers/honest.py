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
from conformance.wire.edits import NO_EDIT, DocumentEdit, chain
from conformance.wire.json_writing import COMPACT, JsonStyle
from conformance.wire.request import INFERENCE_HEADER, JSON, OCTET_STREAM, Form, Message
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

    Raises ValueError: JSON cannot represent an element.
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
        edit: changes the JSON, whose meaning stays the same in a correct answer.
        nested: whether `data` is nested like the shape.
        header: when to send the inference header: `usual`, only with binary data; `always`, also with JSON alone;
            `never`, which is valid only if all binary data are empty.
        content_type: the Content-Type of every answer; None: depending on whether the answer has binary data.
    """

    form: Form | None = None
    order: Callable[[Tensors], Tensors] = tuple
    edit: DocumentEdit = NO_EDIT
    writing: JsonStyle = COMPACT
    delivery: Delivery = PLAIN
    nested: bool = False
    header: HeaderUse = "usual"
    content_type: str | None = None

    def __call__(self, received: ClientRequest, inference: Inference, tensors: Tensors) -> HttpAnswer:
        """Return the answer to a request."""
        return self.deliver(self.encode_with(received, inference, tensors, NO_EDIT), received)

    def deliver(self, message: Message, received: ClientRequest) -> HttpAnswer:
        """Return the answer with the headers and the body of a message."""
        return self.delivery.answer(200, message.headers, message.body, received)

    def encode_with(
        self, received: ClientRequest, inference: Inference, tensors: Tensors, edit: DocumentEdit
    ) -> Message:
        """Return the headers and the body of the answer to a request, after `edit` has changed its JSON."""
        listed = self.order(tensors)
        forms = {tensor.name: self.form or find_requested_form(tensor.name, received, inference) for tensor in listed}
        document = make_document(
            inference, [make_output_entry(tensor, forms[tensor.name], nested=self.nested) for tensor in listed]
        )
        chain(self.edit, edit)(document)
        body = head = self.writing.write(document)
        spans = []
        for tensor in listed:
            if forms[tensor.name] == "binary":
                start, body = len(body), body + encode_binary(tensor)
                spans.append((tensor.name, tensor.datatype, start, len(body)))
        headers = self._make_headers(len(head), has_binary=bool(spans))
        return Message("", headers, body, json_length=len(head), spans=tuple(spans))

    def _make_headers(self, json_length: int, *, has_binary: bool) -> tuple[tuple[str, str], ...]:
        kind = ("Content-Type", self.content_type or (OCTET_STREAM if has_binary else JSON))
        has_length = self.header == "always" or (self.header == "usual" and has_binary)
        return (kind, (INFERENCE_HEADER, str(json_length))) if has_length else (kind,)


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
