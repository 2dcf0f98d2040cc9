"""An inference response: from tensors to JSON, binary data and headers.

Sources: Open Inference Protocol, REST, "Inference"; Triton, Binary Tensor Data Extension, "Binary Tensor Request".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from reference_server import classification, tensors
from reference_server.errors import error_context
from reference_server.framing import HEADER
from reference_server.models import Model
from reference_server.request import InferRequest, RequestedOutput
from reference_server.tensors import Tensor
from reference_server.workers import join_parts

Octets = bytes | memoryview
SLICE = 2 * 1024  # elements encoded per step: Python's JSON encoder blocks all other threads
PART = 256 * 1024  # bytes of a body sent per step
JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def build(model: Model, request: InferRequest, produced: Mapping[str, Tensor]) -> Response:
    """Return the answer: the requested outputs, in requested order."""
    parts = [encode_output(model, output, produced[output.name]) for output in request.outputs]
    answer: dict[str, Any] = {} if request.id is None else {"id": request.id}
    answer |= {"model_name": model.name, "model_version": model.version, "outputs": [entry for entry, _ in parts]}
    return frame(encode(answer), [data for _, data in parts if data is not None])


def encode_output(model: Model, output: RequestedOutput, tensor: Tensor) -> tuple[dict[str, Any], Octets | None]:
    """Return an output's entry in the JSON, and its binary data if it has any."""
    with error_context(f"output '{output.name}'"):
        if output.classes is not None:
            tensor = classification.classify(tensor, output.classes, model.batching, model.labels.get(output.name, ()))
        entry = {"name": output.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}
        if not output.binary:
            return entry | {"data": tensors.encode_json(tensor)}, None
        data = tensors.encode_binary(tensor)
        return entry | {"parameters": {"binary_data_size": len(data)}}, data


def encode(answer: Mapping[str, Any]) -> bytes:
    """Return the JSON of an answer, encoded in UTF-8."""
    if has_long_data(answer):
        return b"".join(part.encode() for part in dump_in_parts(answer))
    return dump_json(answer).encode()


def dump_json(value: object) -> str:
    """Return a value as JSON."""
    return JSON.encode(value)


def has_long_data(answer: Mapping[str, Any]) -> bool:
    """Say whether an answer has JSON data longer than a slice."""
    outputs = answer.get("outputs")
    entries = outputs if isinstance(outputs, list) else []
    return any(len(data) > SLICE for entry in entries if isinstance(data := entry.get("data"), list))


def dump_in_parts(value: Any) -> Iterator[str]:
    """Yield the JSON of a value in parts; joined, they equal `dump_json`."""
    if isinstance(value, Mapping):
        for number, (name, member) in enumerate(value.items()):
            yield f"{',' if number else '{'}{dump_json(name)}:"
            yield from dump_in_parts(member)
        yield "}" if value else "{}"
    elif isinstance(value, list) and len(value) > SLICE:
        for start in range(0, len(value), SLICE):
            yield "," if start else "["
            yield dump_json(value[start : start + SLICE])[1:-1]
        yield "]"
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for number, item in enumerate(value):
            yield "," if number else "["
            yield from dump_in_parts(item)
        yield "]"
    else:
        yield dump_json(value)


class PartedResponse(Response):
    """An answer; a long answer is sent in parts, each after the previous part is sent."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send the answer."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        if len(self.body) <= PART:
            await send({"type": "http.response.body", "body": self.body})
            return
        view = memoryview(self.body)
        for start in range(0, len(view), PART):
            part = view[start : start + PART]
            await send({"type": "http.response.body", "body": part, "more_body": start + PART < len(view)})


def frame(head: bytes, binary: Sequence[Octets]) -> Response:
    """Return a response of JSON and binary data; with binary data, even of 0 bytes, it has the inference header."""
    if not binary:
        return PartedResponse(head, media_type="application/json")
    return PartedResponse(join(head, binary), media_type="application/octet-stream", headers={HEADER: str(len(head))})


def join(head: bytes, binary: Iterable[Octets]) -> bytes:
    """Return the body: JSON and binary data in one copy."""
    return join_parts((head, *binary))
