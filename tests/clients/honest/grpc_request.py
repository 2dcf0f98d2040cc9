"""A request over gRPC: ModelInferRequest, field by field."""

from __future__ import annotations

from collections.abc import Sequence

from tests.clients.honest import tensors
from tests.clients.honest.caller import CallerRequest, RequestedOutput, Tensor, UnsupportedError
from tests.clients.honest.protobuf import integer, integers, message, text

# The field of InferTensorContents for each datatype.
CONTENTS = {
    "BOOL": 1,
    "INT8": 2,
    "INT16": 2,
    "INT32": 2,
    "INT64": 3,
    "UINT8": 4,
    "UINT16": 4,
    "UINT32": 4,
    "UINT64": 5,
    "FP32": 6,
    "FP64": 7,
    "BYTES": 8,
}


def request(asked: CallerRequest) -> bytes:
    """Return the message for an inference; raises CannotError."""
    if asked.is_raw:
        raise UnsupportedError("raw binary requests are those of HTTP")
    forms = {tensor.form for tensor in asked.inputs}
    if len(forms) > 1:
        raise UnsupportedError("a request has raw or typed contents, not both")
    return b"".join(
        [
            named(asked),
            text(3, asked.id or ""),
            *(message(5, described_input(tensor)) for tensor in asked.inputs),
            *(message(6, described_output(output)) for output in asked.outputs or ()),
            *(message(7, entry) for entry in entries([tensor for tensor in asked.inputs if tensor.is_binary])),
        ]
    )


def named(asked: CallerRequest) -> bytes:
    return text(1, asked.model) + text(2, asked.version or "")


def described_input(tensor: Tensor) -> bytes:
    head = text(1, tensor.name) + text(2, tensor.datatype) + shape(tensor.shape)
    return head if tensor.is_binary else head + message(5, contents(tensor))


def shape(sizes: Sequence[int]) -> bytes:
    return integers(3, sizes)


def contents(tensor: Tensor) -> bytes:
    field = contents_field(tensor.datatype)
    if tensor.datatype == tensors.BYTES:
        return b"".join(message(field, element) for element in tensors.strings(tensor.data))
    if tensor.datatype in ("FP32", "FP64"):
        return message(field, tensor.data) if tensor.data else b""
    return integers(field, typed_elements(tensor))


def contents_field(datatype: str) -> int:
    """Return the field of a datatype; raises CannotError where none is for it."""
    if datatype not in CONTENTS:
        raise UnsupportedError(f"no typed contents for {datatype}")
    return CONTENTS[datatype]


def typed_elements(tensor: Tensor) -> list[int]:
    return [int(element) for element in tensors.elements(tensor.datatype, tensor.data)]


def entries(inputs: Sequence[Tensor]) -> list[bytes]:
    return [entry(tensor) for tensor in inputs]


def entry(tensor: Tensor) -> bytes:
    return tensor.data


def described_output(output: RequestedOutput) -> bytes:
    head = text(1, output.name)
    return head if output.classes is None else head + parameter(2, "classification", classes_value(output.classes))


def parameter(field: int, key: str, value: bytes) -> bytes:
    return message(field, text(1, key) + message(2, value))


def classes_value(count: int) -> bytes:
    return integer(2, count)
