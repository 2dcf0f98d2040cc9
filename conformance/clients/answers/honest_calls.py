"""Correct gRPC answers: raw and typed contents, as hand-encoded bytes of a ModelInferResponse.

Source: Open Inference Protocol, gRPC, "Inference" and "Tensor Data", for the field numbers; Protocol Buffers,
"Encoding".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from conformance.clients.answers.honest import encode_binary
from conformance.clients.answers.script import VERSION, CallAnswer, Tensors
from conformance.clients.inference import Inference
from conformance.wire.client_request import ClientRequest
from conformance.wire.datatypes import lookup
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

    def __call__(self, _received: ClientRequest, inference: Inference, tensors: Tensors) -> CallAnswer:
        """Return the answer to a call."""
        listed = self.order(tensors)
        if self.is_raw(listed):
            raw = [encode_binary(tensor) for tensor in listed]
            return CallAnswer(self.encode_message(inference, [self.encode_entry(tensor) for tensor in listed], raw))
        return CallAnswer(
            self.encode_message(
                inference, [self.encode_entry(tensor, self.encode_contents(tensor)) for tensor in listed], []
            )
        )

    def is_raw(self, tensors: Tensors) -> bool:
        """Whether the contents are raw, because `form` says so or because a datatype has no typed contents."""
        return self.form == "raw" or any(not lookup(tensor.datatype).contents for tensor in tensors)

    def encode_message(self, inference: Inference, entries: list[bytes], raw: list[bytes]) -> bytes:
        """Encode the message of an answer with these encoded outputs and raw contents."""
        outputs = b"".join(encode_delimited(OUTPUTS, entry) for entry in entries)
        contents = b"".join(encode_delimited(RAW_CONTENTS, octets) for octets in raw)
        named = encode_text(MODEL_NAME, inference.model) + encode_text(MODEL_VERSION, inference.version or VERSION)
        both = contents + outputs if self.raw_first else outputs + contents
        return named + encode_text(ID, inference.id or "") + self.extra_fields + both

    def encode_entry(self, tensor: Tensor, contents: bytes = b"", shape: tuple[int, ...] | None = None) -> bytes:
        """Encode one output with its encoded typed contents, if any; `shape` replaces the tensor's shape."""
        named = encode_text(NAME, tensor.name) + encode_text(DATATYPE, tensor.datatype)
        dimensions = self.integers(SHAPE, list(tensor.shape if shape is None else shape))
        return named + dimensions + self.extra_fields + contents

    def encode_contents(self, tensor: Tensor) -> bytes:
        """Encode the typed contents of an output."""
        return encode_delimited(CONTENTS, self._encode_elements(tensor))

    def _encode_elements(self, tensor: Tensor) -> bytes:
        flat = tensor.array.reshape(-1)
        if tensor.datatype == "BYTES":
            return b"".join(encode_delimited(BYTES_CONTENTS, element) for element in flat.tolist())
        if tensor.datatype in FIXED:
            return encode_delimited(FIXED[tensor.datatype], encode_binary(tensor))
        return self.integers(VARINTS[tensor.datatype], list(map(int, flat.tolist())))


USUAL: Final = CallStyle()
