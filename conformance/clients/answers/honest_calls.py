"""Correct gRPC answers: raw and typed contents, as hand-encoded bytes of a ModelInferResponse.

Source: Open Inference Protocol, gRPC, "Inference" and "Tensor Data", for the field numbers; Protocol Buffers,
"Encoding".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from conformance.clients.answers.honest import Document, encode_binary, make_document
from conformance.clients.answers.script import CallAnswer, Tensors
from conformance.clients.inference import Inference
from conformance.wire.client_request import ClientRequest
from conformance.wire.datatypes import lookup
from conformance.wire.edits import NO_EDIT, DocumentEdit
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor

VARINT: Final = 0  # wire types
DELIMITED: Final = 2


def encode_varint(value: int) -> bytes:
    """Encode an integer as a varint, and a negative integer as the varint of its 64-bit two's complement."""
    rest = value % 2**64
    groups = bytearray()
    while rest > 0x7F:
        groups.append(rest & 0x7F | 0x80)
        rest >>= 7
    groups.append(rest)
    return bytes(groups)


def encode_tag(number: int, wire_type: int) -> bytes:
    """Encode the tag of a field."""
    return encode_varint(number << 3 | wire_type)


def encode_delimited(number: int, octets: bytes) -> bytes:
    """Encode a length-delimited field: bytes, a message, or packed numbers."""
    return encode_tag(number, DELIMITED) + encode_varint(len(octets)) + octets


def encode_text(number: int, value: str) -> bytes:
    """Encode a string field. An empty string needs no bytes: parsers default to it."""
    return encode_delimited(number, value.encode()) if value else b""


def encode_packed(number: int, values: Iterable[int]) -> bytes:
    """Encode a repeated integer field, packed; a field without values is omitted."""
    octets = b"".join(map(encode_varint, values))
    return encode_delimited(number, octets) if octets else b""


def encode_unpacked(number: int, values: Iterable[int]) -> bytes:
    """Encode a repeated integer field, unpacked: one tag for each value. Parsers must accept this encoding."""
    return b"".join(encode_tag(number, VARINT) + encode_varint(value) for value in values)


# Fields of a ModelInferResponse.
MODEL_NAME, MODEL_VERSION, ID, PARAMETERS, OUTPUTS, RAW_CONTENTS = range(1, 7)
# Fields of one of its outputs.
NAME, DATATYPE, SHAPE, OUTPUT_PARAMETERS, CONTENTS = range(1, 6)
# Fields of typed contents, by datatype: integers as varints, floats in fixed width.
VARINTS: Final[Mapping[str, int]] = {
    "BOOL": 1,
    **dict.fromkeys(("INT8", "INT16", "INT32"), 2),
    "INT64": 3,
    **dict.fromkeys(("UINT8", "UINT16", "UINT32"), 4),
    "UINT64": 5,
}
FIXED: Final[Mapping[str, int]] = {"FP32": 6, "FP64": 7}
BYTES_CONTENTS: Final = 8
# A string field that is not in the protocol; parsers must skip it.
UNKNOWN: Final = encode_text(1999, "of a later version")
Integers = Callable[[int, list[int]], bytes]


@dataclass(frozen=True, slots=True)
class CallStyle:
    """How to encode a correct gRPC answer. An object of this class is a `CallScript`.

    Attributes:
        form: typed or raw contents, the same for all outputs, as the protocol requires.
        order: returns the tensors in the order in which to send them.
        integers: encodes a repeated integer field: `encode_packed` or `encode_unpacked`.
        extra_fields: encoded extra fields, added to the message and to each output.
        raw_first: whether raw contents precede the outputs in the message.
    """

    form: Literal["raw", "typed"] = "raw"
    order: Callable[[Tensors], Tensors] = tuple
    integers: Integers = encode_packed
    extra_fields: bytes = b""
    raw_first: bool = False

    def __call__(self, received: ClientRequest, inference: Inference, tensors: Tensors) -> CallAnswer:
        """Return the answer to a call."""
        return self.deliver(self.encode_with(received, inference, tensors, NO_EDIT), received)

    def deliver(self, message: Message, _received: ClientRequest) -> CallAnswer:
        """Return the answer with the body of a message."""
        return CallAnswer(message.body)

    def encode_with(
        self, _received: ClientRequest, inference: Inference, tensors: Tensors, edit: DocumentEdit
    ) -> Message:
        """Return the message of the answer to a call, after `edit` has changed its fields.

        The fields are named as in the protocol; `contents` are the encoded fields of typed contents.
        """
        listed = self.order(tensors)
        is_raw = self.is_raw(listed)
        fields = make_document(inference, [self._make_entry(tensor, is_raw=is_raw) for tensor in listed])
        fields["raw_output_contents"] = [encode_binary(tensor) for tensor in listed] if is_raw else []
        edit(fields)
        return Message("", body=self._encode_fields(fields))

    def _make_entry(self, tensor: Tensor, *, is_raw: bool) -> Document:
        entry = {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}
        return entry if is_raw else {**entry, "contents": self._encode_elements(tensor)}

    def is_raw(self, tensors: Tensors) -> bool:
        """Whether the contents are raw, because `form` says so or because a datatype has no typed contents."""
        return self.form == "raw" or any(not lookup(tensor.datatype).contents for tensor in tensors)

    def _encode_fields(self, fields: Document) -> bytes:
        outputs = b"".join(encode_delimited(OUTPUTS, self._encode_entry(entry)) for entry in fields["outputs"])
        contents = b"".join(encode_delimited(RAW_CONTENTS, octets) for octets in fields["raw_output_contents"])
        named = encode_text(MODEL_NAME, fields["model_name"]) + encode_text(MODEL_VERSION, fields["model_version"])
        both = contents + outputs if self.raw_first else outputs + contents
        return named + encode_text(ID, fields.get("id", "")) + self.extra_fields + both

    def _encode_entry(self, entry: Document) -> bytes:
        named = encode_text(NAME, entry["name"]) + encode_text(DATATYPE, entry["datatype"])
        contents = encode_delimited(CONTENTS, entry["contents"]) if "contents" in entry else b""
        return named + self.integers(SHAPE, entry["shape"]) + self.extra_fields + contents

    def _encode_elements(self, tensor: Tensor) -> bytes:
        flat = tensor.array.reshape(-1)
        if tensor.datatype == "BYTES":
            return b"".join(encode_delimited(BYTES_CONTENTS, element) for element in flat.tolist())
        if tensor.datatype in FIXED:
            return encode_delimited(FIXED[tensor.datatype], encode_binary(tensor))
        return self.integers(VARINTS[tensor.datatype], list(map(int, flat.tolist())))


USUAL: Final = CallStyle()
