"""A request over HTTP: the JSON, the binary data behind it, and the headers. No sockets."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tests.clients.honest import tensors
from tests.clients.honest.caller import CallerRequest, RequestedOutput, Tensor, UnsupportedError

LENGTH = "Inference-Header-Content-Length"
OCTETS, JSON = "application/octet-stream", "application/json"

Headers = list[tuple[str, str]]


@dataclass(frozen=True)
class Request:
    """A request as HTTP sends it; what says how the body is framed is added on the way."""

    method: str
    target: str
    headers: Headers
    body: bytes


def request(asked: CallerRequest) -> Request:
    """Return the request for an inference; raises CannotError."""
    if asked.is_raw:
        headers, body = raw(asked)
    else:
        pieces = [binary_data(tensor) for tensor in asked.inputs if tensor.is_binary]
        text = written(document(asked))
        headers = described(text, has_data=bool(pieces))
        body = joined(text, in_order(pieces))
    body = coded(body, asked.coding) if asked.coding else body
    return Request(method(), target(asked), [*headers, *negotiated(asked)], body)


def method() -> str:
    return "POST"


def target(asked: CallerRequest) -> str:
    version = f"/versions/{in_path(asked.version)}" if asked.version is not None else ""
    return f"/v2/models/{in_path(asked.model)}{version}/infer"


def in_path(name: str) -> str:
    return quote(name, safe="")


def raw(asked: CallerRequest) -> tuple[Headers, bytes]:
    if len(asked.inputs) != 1:
        raise UnsupportedError("a raw binary request has one input")
    return [("Content-Type", OCTETS), (LENGTH, "0")], raw_data(asked.inputs[0])


def raw_data(tensor: Tensor) -> bytes:
    return binary_data(tensor)


def document(asked: CallerRequest) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if asked.id is not None:
        said["id"] = asked.id
    if asked.all_outputs is not None:
        said["parameters"] = for_all_outputs(asked.all_outputs)
    said["inputs"] = [described_input(tensor) for tensor in asked.inputs]
    if asked.outputs is not None:
        said["outputs"] = [described_output(output) for output in asked.outputs]
    return said


def for_all_outputs(form: str) -> dict[str, Any]:
    return {"binary_data_output": form == "binary"}


def described_input(tensor: Tensor) -> dict[str, Any]:
    said = {"name": tensor.name, "shape": list(tensor.shape), "datatype": tensor.datatype}
    if tensor.is_binary:
        return {**said, "parameters": {"binary_data_size": data_size(tensor)}}
    return {**said, "data": arranged(json_elements(tensor), tensor.shape)}


def data_size(tensor: Tensor) -> int:
    return len(binary_data(tensor))


def arranged(elements: list[Any], _shape: Sequence[int]) -> list[Any]:
    """Return the elements as `data` has them: flat."""
    return elements


def json_elements(tensor: Tensor) -> list[Any]:
    """Return the elements as JSON has them; raises CannotError for what JSON has not."""
    if tensor.datatype in ("FP16", "BF16"):
        raise UnsupportedError(f"{tensor.datatype} has no form in JSON")
    found = tensors.elements(tensor.datatype, tensor.data)
    if tensor.datatype == tensors.BYTES:
        try:
            return [element.decode() for element in found]
        except UnicodeDecodeError:
            raise UnsupportedError("bytes that are no UTF-8 have no form in JSON") from None
    if tensor.datatype in ("FP32", "FP64") and not all(map(math.isfinite, found)):
        raise UnsupportedError("NaN and infinity have no form in JSON")
    return found


def described_output(output: RequestedOutput) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    if output.classes is not None:
        parameters["classification"] = output.classes
    if output.form is not None:
        parameters["binary_data"] = output.form == "binary"
    return {"name": output.name, **({"parameters": parameters} if parameters else {})}


def binary_data(tensor: Tensor) -> bytes:
    return tensor.data


def in_order(pieces: list[bytes]) -> list[bytes]:
    """Return the binary data of all inputs, in the order of the JSON."""
    return pieces


def joined(text: bytes, pieces: list[bytes]) -> bytes:
    return text + b"".join(pieces)


def written(said: dict[str, Any]) -> bytes:
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()


def described(text: bytes, *, has_data: bool) -> Headers:
    if has_data:
        return [("Content-Type", OCTETS), (LENGTH, json_length(text))]
    return [("Content-Type", JSON)]


def json_length(text: bytes) -> str:
    return str(len(text))


def coded(body: bytes, coding: str) -> bytes:
    return gzip.compress(body, mtime=0) if coding == "gzip" else zlib.compress(body)


def negotiated(asked: CallerRequest) -> Headers:
    announced = [("Content-Encoding", asked.coding)] if asked.coding else []
    return [*announced, ("Accept-Encoding", asked.accepts or "identity")]
