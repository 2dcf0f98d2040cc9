"""Encodes inference requests: from tensors to the bytes of an HTTP message. Sans-I/O.

A check can make a request invalid between two steps: `InferRequest.document()` builds the JSON object, and `frame()`
joins JSON and binary data. `InferRequest.encode_with()` does both steps, with a change between them.

Source: Triton, Binary Tensor Data Extension, "Binary Tensor Request"; Open Inference Protocol, REST, "Inference".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from conformance.wire.tensor import Tensor

INFERENCE_HEADER: Final = "Inference-Header-Content-Length"
OCTET_STREAM: Final = "application/octet-stream"
JSON: Final = "application/json"


class _AbsentMarker:
    """The type of `ABSENT`, which omits a parameter: None would be sent as null."""

    def __repr__(self) -> str:
        return "absent"


ABSENT: Final = _AbsentMarker()

Span = tuple[str, str, int, int]
# The form of a tensor: binary data or JSON; over gRPC raw or typed contents.
Form = Literal["binary", "json"]


@dataclass(frozen=True, slots=True)
class Message:
    """An HTTP request or a gRPC call, or the answer to one; the sender adds headers such as Host and Content-Length.

    Attributes:
        path: the path below the base URL; for a gRPC call `/SERVICE/METHOD`; empty for an answer.
        body: the body; for a gRPC call the serialized message.
        method: the HTTP method, or `grpc_request.GRPC_METHOD` for a gRPC call.
        json_length: the length of the JSON at the start of the body.
        spans: (tensor name, datatype, start, end) of the binary tensors in the body, to label its fields.
        names: the server's output names -> the suite's names, for names that differ.
    """

    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    method: str = "POST"
    json_length: int = 0
    spans: tuple[Span, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)

    def header(self, name: str) -> str | None:
        """Return the first value of the header `name`, case-insensitively, or None."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def with_header(self, name: str, value: str | None) -> Message:
        """Return the message with one value for a header, in place of all earlier values; None removes the header."""
        kept = [(key, old) for key, old in self.headers if key.lower() != name.lower()]
        return replace(self, headers=(*kept, *([(name, value)] if value is not None else [])))

    def with_body(self, body: bytes) -> Message:
        """Return the message with another body and the same headers."""
        return replace(self, body=body)

    def with_json(self, head: bytes) -> Message:
        """Return the message with another JSON text; the inference header, if any, gets the length of this text."""
        by = len(head) - self.json_length
        spans = tuple((name, datatype, start + by, end + by) for name, datatype, start, end in self.spans)
        length, name_of_length = str(len(head)), INFERENCE_HEADER.lower()
        headers = tuple((name, length if name.lower() == name_of_length else value) for name, value in self.headers)
        body = head + self.body[self.json_length :]
        return replace(self, body=body, json_length=len(head), spans=spans, headers=headers)


@dataclass(frozen=True, slots=True)
class Input:
    """A tensor of a request, and how it is sent: as binary data, or as flat or nested JSON."""

    tensor: Tensor
    binary: bool = True
    nested: bool = False

    def document(self) -> dict[str, Any]:
        """Return the JSON object of this input."""
        fields: dict[str, Any] = {
            "name": self.tensor.name,
            "shape": list(self.tensor.shape),
            "datatype": self.tensor.datatype,
        }
        if self.binary:
            fields["parameters"] = {"binary_data_size": self.tensor.size}
        else:
            fields["data"] = self.tensor.to_json(nested=self.nested)
        return fields


@dataclass(frozen=True, slots=True)
class RequestedOutput:
    """An entry of a request's `outputs`: the name of an output and its parameters; `ABSENT` omits a parameter."""

    name: str
    binary_data: Any = ABSENT
    classification: Any = ABSENT

    def document(self) -> dict[str, Any]:
        """Return the JSON object of this requested output."""
        parameters = _drop_absent(binary_data=self.binary_data, classification=self.classification)
        return {"name": self.name, **({"parameters": parameters} if parameters else {})}


@dataclass(frozen=True, slots=True)
class Names:
    """Maps the suite's tensor names to the server's names, for names that differ."""

    inputs: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)

    @property
    def reversed_outputs(self) -> dict[str, str]:
        """The server's output names -> the suite's names."""
        return {server_name: name for name, server_name in self.outputs.items()}

    def translate_document(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return the JSON of a request with the server's tensor names, and otherwise unchanged."""
        return {
            **document,
            **{
                member: [_rename_tensor(item, names) for item in document[member]]
                for member, names in (("inputs", self.inputs), ("outputs", self.outputs))
                if isinstance(document.get(member), list) and names
            },
        }


def _rename_tensor(item: Any, names: Mapping[str, str]) -> Any:
    name = item.get("name") if isinstance(item, dict) else None
    return {**item, "name": names[name]} if isinstance(name, str) and name in names else item


SAME_NAMES: Final = Names()


@dataclass(frozen=True, slots=True)
class InferRequest:
    """An inference request to a model.

    Attributes:
        path: the path of the infer endpoint.
        outputs: the requested outputs; None omits the member, which requests all outputs.
        binary_data_output: the value of this parameter; `ABSENT` omits the parameter.
        id: the id; None omits the member.
        members: further members of the JSON object; for example to make the request invalid.
        names: the server's tensor names, by which `message` replaces the suite's names.
        model: the name of the model; used only over gRPC, where the path does not contain the name.
        version: the version of the model; used only over gRPC.
    """

    path: str
    inputs: tuple[Input, ...]
    outputs: tuple[RequestedOutput, ...] | None = None
    binary_data_output: Any = ABSENT
    id: str | None = None
    members: Mapping[str, Any] = field(default_factory=dict)
    names: Names = SAME_NAMES
    model: str = ""
    version: str = ""

    def build_sent_document(self) -> dict[str, Any]:
        """Return the JSON object to send, with the server's tensor names."""
        return self.names.translate_document(self.document())

    def document(self) -> dict[str, Any]:
        """Return the JSON object of the request, with the suite's tensor names."""
        document: dict[str, Any] = dict(self.members)
        if self.id is not None:
            document["id"] = self.id
        if self.binary_data_output is not ABSENT:
            document["parameters"] = {"binary_data_output": self.binary_data_output}
        document["inputs"] = [item.document() for item in self.inputs]
        if self.outputs is not None:
            document["outputs"] = [output.document() for output in self.outputs]
        return document

    def message(self) -> Message:
        """Encode the request as an HTTP message."""
        return self.encode_with(lambda _: None)

    def encode_with(self, edit: Callable[[dict[str, Any]], object]) -> Message:
        """Encode the request after `edit` has changed its JSON object; the inference header matches the new JSON."""
        document = self.document()
        edit(document)
        return frame(self.path, document, [item.tensor for item in self.inputs if item.binary], self.names)


def frame(path: str, document: Mapping[str, Any], tensors: Iterable[Tensor] = (), names: Names = SAME_NAMES) -> Message:
    """Encode a message from a JSON object and the binary data of tensors.

    If there is a tensor, even a tensor without bytes, the message has an inference header, and the Content-Type of
    binary data. Sources: triton-binary.order, triton-binary.inference-header.
    """
    head = json.dumps(names.translate_document(document), ensure_ascii=False, separators=(",", ":")).encode()
    return frame_text(path, head, tensors, names)


def frame_text(path: str, head: bytes, tensors: Iterable[Tensor] = (), names: Names = SAME_NAMES) -> Message:
    """Encode a message from a JSON text, in any style, and the binary data of tensors; see `frame`."""
    tensors = list(tensors)
    parts: list[bytes | memoryview] = [head]
    spans, start = [], len(head)
    for tensor in tensors:
        data = tensor.to_bytes()
        parts.append(data)
        spans.append((tensor.name, tensor.datatype, start, start + len(data)))
        start += len(data)
    headers = [("Content-Type", OCTET_STREAM if tensors else JSON)]
    if tensors:
        headers.append((INFERENCE_HEADER, str(len(head))))
    return Message(
        path, tuple(headers), b"".join(parts), json_length=len(head), spans=tuple(spans), names=names.reversed_outputs
    )


def make_raw_message(path: str, body: bytes, names: Names = SAME_NAMES) -> Message:
    """Encode a raw binary request: the inference header is 0, and the body is only the input's data.

    Source: Triton, Binary Tensor Data Extension, "Raw Binary Request".
    """
    return Message(path, (("Content-Type", OCTET_STREAM), (INFERENCE_HEADER, "0")), body, names=names.reversed_outputs)


def _drop_absent(**parameters: Any) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if value is not ABSENT}
