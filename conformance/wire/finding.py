"""Findings: descriptions of faults in received bytes.

A `Finding` has a kind (a key of `KINDS`), a field, an offset in the body, the expected and the actual content. A
finding has no severity: checks compare it with their requirements.

All texts are one line of printable ASCII, whatever was received, so that they are safe in a terminal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

KINDS: Mapping[str, str] = MappingProxyType(
    {
        # the JSON text
        "json-not-utf8": "The JSON text contains bytes that are not UTF-8.",
        "json-invalid": "The text is not JSON.",
        "json-too-deep": "The JSON is nested more deeply than the suite reads.",
        "json-too-large": "The JSON text has more bytes or objects than the suite reads.",
        "json-duplicate-member": "An object of the JSON has two members of the same name.",
        "json-non-finite": "The JSON contains a bare NaN or Infinity, which is not valid JSON.",
        "json-not-object": "The JSON text is not an object.",
        # the inference header
        "inference-header-missing": "Binary data follows the JSON, but there is no inference header.",
        "inference-header-text": "The inference header is not a number written in decimal digits.",
        "inference-header-negative": "The inference header is negative.",
        "inference-header-zero": "The inference header is 0, which means that the body has no JSON.",
        "inference-header-on-json": "The inference header is 0 in an answer without binary data.",
        "inference-header-beyond-body": "The inference header is larger than the body.",
        "inference-header-cuts-json": "The inference header ends inside the JSON.",
        "inference-header-covers-binary": "The inference header includes bytes after the JSON.",
        # the message of a call over gRPC
        "message-too-large": "The message has more fields, bytes or elements than the suite reads.",
        # the outputs as the JSON describes them
        "outputs-missing": "The answer has no outputs.",
        "outputs-invalid": "The member outputs is not an array.",
        "outputs-too-many": "The answer has more outputs than the suite reads.",
        "output-invalid": "An element of outputs is not an object.",
        "name-missing": "A tensor has no name.",
        "name-duplicate": "Two outputs, or two inputs, have the same name.",
        "datatype-unknown": "The datatype of a tensor is absent, or not defined by the protocol.",
        "shape-invalid": "The shape of a tensor is absent, or not an array of dimensions.",
        "shape-no-integers": 'A dimension is an integer that is written as a string, such as "3".',
        "integer-with-a-point": "A dimension or a size is an integer that is written with a point or an exponent.",
        "parameters-invalid": "The parameters of a tensor are not an object.",
        "data-and-size": "A tensor has both data and binary_data_size.",
        "data-missing": "A tensor has neither data nor binary_data_size.",
        # the inputs of a request
        "inputs-missing": "The request has no inputs.",
        "inputs-too-many": "The request has more inputs than the suite reads.",
        "inputs-invalid": "The member inputs is not an array.",
        "input-invalid": "An element of inputs is not an object.",
        "size-missing": "An input has neither data nor binary_data_size, although bytes follow the JSON.",
        "raw-without-header": "The body has only binary data, but there is no inference header of 0.",
        "order": "The binary data are in another order than their inputs in the JSON.",
        # the contents of a call over gRPC
        "raw-and-typed": "A request has both raw_input_contents and typed contents.",
        "entry-count": "The number of entries of raw_input_contents is not the number of inputs.",
        "field-of-another": "Typed contents are in the field of another datatype.",
        "half-precision-typed": "An FP16 or BF16 tensor has typed contents.",
        # content codings
        "coding-not-applied": "The body is not in the content coding that Content-Encoding names.",
        "coding-not-announced": "The body is in a content coding that Content-Encoding does not name.",
        "coding-applied-twice": "The body is in a content coding more often than Content-Encoding says.",
        "coding-cut": "The compressed body is truncated, or bytes follow its end.",
        "coding-bare": "The body is raw deflate data, without the zlib format.",
        # the sizes
        "size-not-integer": "binary_data_size is not written as an integer.",
        "size-negative": "binary_data_size is negative.",
        "size-beyond-body": "binary_data_size is larger than the rest of the body.",
        "size-mismatch": "The size in bytes does not match shape and datatype.",
        "trailing-bytes": "The body has bytes after the last tensor.",
        # the elements
        "data-value": "A JSON element is of the wrong type for the datatype, or out of its range.",
        "bool-number": "A BOOL element is written as 0 or 1.",
        "integer-string": "An integer element of an answer is written as a string of its digits.",
        "data-count": "The number of JSON elements does not match the shape.",
        "bool-byte": "A BOOL byte is neither 0 nor 1.",
        "bytes-prefix-truncated": "The tensor ends inside the length prefix of a BYTES element.",
        "bytes-past-end": "A BYTES element is longer than the remaining bytes of its tensor.",
        "bytes-count": "The number of BYTES elements does not match the shape.",
        "bytes-stray": "Bytes of the tensor follow its last BYTES element.",
    }
)
# The kinds that concern requests only.
REQUEST_KINDS = frozenset(
    {
        *(
            "inputs-missing",
            "inputs-invalid",
            "inputs-too-many",
            "input-invalid",
            "size-missing",
            "raw-without-header",
            "order",
        ),
        *("raw-and-typed", "entry-count", "field-of-another", "half-precision-typed"),
        *("coding-not-applied", "coding-not-announced", "coding-applied-twice", "coding-cut", "coding-bare"),
    }
)

_PLAIN_NAME = re.compile(r"[\w.\-/]{1,60}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault in received bytes.

    Attributes:
        kind: a key of `KINDS`.
        field: the faulty field, such as "Inference-Header-Content-Length", "outputs[0].shape", "tensor 1 OUT0
            element 2".
        offset: the offset of the first wrong byte in the body (in findings of a decoder, in its buffer); None if no
            single byte is wrong.

    Raises ValueError: the kind is not a key of `KINDS`.
    """

    kind: str
    field: str
    offset: int | None
    expected: str
    actual: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind of finding: {self.kind!r}")

    @property
    def described(self) -> str:
        """The finding as a phrase for failure messages, such as `tensor 0 A at byte 9: 2 bytes instead of 4`."""
        place = "" if self.offset is None else f" at byte {self.offset}"
        if self.kind == "json-invalid":
            return f"text that is not JSON{place}: {self.actual}"
        return f"{self.field}{place}: {self.actual} instead of {self.expected}"

    def __str__(self) -> str:
        place = "" if self.offset is None else f" at byte {self.offset}"
        return f"{self.kind}: {self.field}{place}: expected {self.expected}, got {self.actual}"


class DecodeError(Exception):
    """Bytes or JSON are not a tensor of the given datatype and shape; `finding` describes the fault."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


def format_value(value: Any) -> str:
    """Format a JSON value briefly for a message: a long text is truncated; of a long array only the length is shown."""
    if isinstance(value, str):
        return json.dumps(value) if len(value) <= 60 else f"{json.dumps(value[:60])}... ({len(value)} characters)"
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"  # Python refuses to format very long ones
    if isinstance(value, list) and (len(value) > 8 or any(isinstance(item, list | dict) for item in value)):
        return f"an array of length {len(value)}"
    if isinstance(value, list):
        return "[" + ", ".join(map(format_value, value)) + "]"
    if isinstance(value, dict):
        return "an object"
    return json.dumps(value)


def format_name(name: str) -> str:
    """Format a tensor's name for a message: unchanged if its characters are safe, otherwise as a JSON string."""
    return name if _PLAIN_NAME.fullmatch(name) else format_value(name)
