"""A small honest client over http.client, in this process, as an adapter: what the rows are tried with."""

from __future__ import annotations

import gzip
import http.client
import json
import select
import socket
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np

from conformance.clients.inference import Class, ClientOutput, Inference, Introduction, Result
from conformance.wire.tensor import Tensor

HEADER = "Inference-Header-Content-Length"
DTYPES = {
    "BOOL": "?",
    "UINT8": "u1",
    "UINT16": "<u2",
    "UINT32": "<u4",
    "UINT64": "<u8",
    "INT8": "i1",
    "INT16": "<i2",
    "INT32": "<i4",
    "INT64": "<i8",
    "FP16": "<f2",
    "FP32": "<f4",
    "FP64": "<f8",
}
KINDS: dict[str, tuple[type, ...]] = {"BOOL": (bool,), **dict.fromkeys(("FP16", "BF16", "FP32", "FP64"), (int, float))}
CODINGS: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    "gzip": (gzip.compress, gzip.decompress),
    "deflate": (zlib.compress, zlib.decompress),
}


class RefusedError(Exception):
    """The server answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class PlainClient:
    """One connection that is kept while all goes well; another one for each inference that is made at once."""

    introduction = Introduction("plain", "1", "Python", ("http",))

    def __init__(self) -> None:
        self._kept: dict[str, http.client.HTTPConnection] = {}

    def close(self) -> None:
        for connection in self._kept.values():
            connection.close()

    def infer(
        self, transport: str, address: str, inferences: Sequence[Inference], *, at_once: bool, timeout: float
    ) -> list[Result]:
        assert transport == "http"
        if at_once:
            with ThreadPoolExecutor(len(inferences)) as pool:
                return list(pool.map(lambda one: self._alone(address, one, timeout), inferences))
        return [self._on_the_kept(address, one, timeout) for one in inferences]

    def _on_the_kept(self, address: str, inference: Inference, timeout: float) -> Result:
        connection = self._kept.setdefault(address, _connection(address, timeout))
        connection.timeout = timeout
        if isinstance(connection.sock, socket.socket):
            if select.select([connection.sock], [], [], 0)[0]:  # the server has ended it
                connection.close()
            else:
                connection.sock.settimeout(timeout)
        return _made(connection, inference)

    def _alone(self, address: str, inference: Inference, timeout: float) -> Result:
        connection = _connection(address, timeout)
        try:
            return _made(connection, inference)
        finally:
            connection.close()


def _connection(address: str, timeout: float) -> http.client.HTTPConnection:
    parts = urlsplit(address)
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout)


def _made(connection: http.client.HTTPConnection, inference: Inference) -> Result:
    started = time.monotonic()
    try:
        result = _exchanged(connection, inference)
    except RefusedError as error:
        connection.close()
        result = Result(error=str(error), status=str(error.status))
    except Exception as error:  # whatever goes wrong, the caller hears of it
        connection.close()
        result = Result(error=f"{type(error).__name__}: {error}")
    return replace(result, elapsed=time.monotonic() - started)


def _exchanged(connection: http.client.HTTPConnection, inference: Inference) -> Result:
    path, headers, body = build_request(inference)
    connection.request("POST", path, body, headers)
    response = connection.getresponse()
    content = response.read()
    if coding := response.getheader("Content-Encoding"):
        content = CODINGS[coding][1](content)
    if response.status >= 400:
        raise RefusedError(response.status, content.decode("utf-8", "replace"))
    return read_answer(content, response.getheader(HEADER), inference)


# --- the request ------------------------------------------------------------------------------------------------------


def encode_tensor(one: Tensor) -> bytes:
    if one.datatype != "BYTES":
        return one.array.tobytes()
    return b"".join(len(element).to_bytes(4, "little") + element for element in one.array.reshape(-1).tolist())


def build_request(inference: Inference) -> tuple[str, dict[str, str], bytes]:
    version = f"/versions/{quote(inference.version, safe='')}" if inference.version else ""
    path = f"/v2/models/{quote(inference.model, safe='')}{version}/infer"
    headers = {"Accept-Encoding": inference.accepts or "identity", "Content-Type": "application/json"}
    blobs = [encode_tensor(one) for place, one in enumerate(inference.inputs) if inference.get_form(place) == "binary"]
    head = (
        b"" if inference.is_raw else json.dumps(build_document(inference), ensure_ascii=False, allow_nan=False).encode()
    )
    if blobs:
        headers |= {HEADER: str(len(head)), "Content-Type": "application/octet-stream"}
    body = head + b"".join(blobs)
    if inference.coding:
        body = CODINGS[inference.coding][0](body)
        headers["Content-Encoding"] = inference.coding
    return path, headers, body


def build_document(inference: Inference) -> dict[str, Any]:
    made: dict[str, Any] = {"inputs": [_input(inference, place) for place in range(len(inference.inputs))]}
    if inference.id is not None:
        made["id"] = inference.id
    if inference.all_outputs:
        made["parameters"] = {"binary_data_output": inference.all_outputs == "binary"}
    if inference.outputs is not None:
        made["outputs"] = [
            {"name": one.name, "parameters": _parameters(one.form, one.classes)} for one in inference.outputs
        ]
    return made


def _parameters(form: str | None, classes: int | None) -> dict[str, Any]:
    asked = {} if form is None else {"binary_data": form == "binary"}
    return asked if classes is None else {**asked, "classification": classes}


def _input(inference: Inference, place: int) -> dict[str, Any]:
    one = inference.inputs[place]
    entry: dict[str, Any] = {"name": one.name, "shape": list(one.shape), "datatype": one.datatype}
    if inference.get_form(place) == "binary":
        return {**entry, "parameters": {"binary_data_size": len(encode_tensor(one))}}
    if one.datatype in ("FP16", "BF16"):
        raise ValueError(f"{one.datatype} has no JSON form")
    values = one.array.reshape(-1).tolist()
    return {**entry, "data": [value.decode() for value in values] if one.datatype == "BYTES" else values}


# --- the answer -------------------------------------------------------------------------------------------------------


def read_answer(content: bytes, header: str | None, inference: Inference) -> Result:
    length = len(content) if header is None else int(header)
    if not 0 <= length <= len(content):
        raise ValueError("the inference header is wrong")
    answer = json.loads(content[:length], parse_float=_number, parse_int=_number)
    if not isinstance(answer.get("outputs"), list):
        raise ValueError(f"no outputs: {answer}")
    if inference.id is not None and answer.get("id", inference.id) != inference.id:
        raise ValueError("the answer has another id")
    at, outputs = length, []
    for entry in answer["outputs"]:
        size = (entry.get("parameters") or {}).get("binary_data_size")
        if size is None:
            array = _of_data(entry)
        else:
            if size < 0 or at + size > len(content):
                raise ValueError("a size is wrong")
            array = _of_octets(entry, content[at : at + size])
            at += size
        outputs.append(_given(entry, array, inference))
    if at != len(content):
        raise ValueError("bytes are left over")
    return Result(tuple(outputs), id=answer.get("id"))


def _number(text: str) -> int | float:
    """Return an integer for a number that is whole; -0 keeps its sign."""
    value = float(text)
    if text.lstrip("-").isdigit() and text != "-0":
        return int(text)
    return int(value) if value.is_integer() and value and abs(value) < 2**53 else value


def _given(entry: dict[str, Any], array: Any, inference: Inference) -> ClientOutput:
    name = entry["name"]
    asked = next((one for one in inference.outputs or () if one.name == name), None)
    if asked is None or asked.classes is None:
        return ClientOutput(name, Tensor.from_values(name, entry["datatype"], array))
    texts = [element.decode().split(":", 2) for element in Tensor.from_values(name, "BYTES", array).array.tolist()]
    return ClientOutput(name, classes=tuple(Class(one[0], int(one[1]), "".join(one[2:]) or None) for one in texts))


def _of_data(entry: dict[str, Any]) -> Any:
    values = np.array(entry["data"], dtype=object).reshape(entry["shape"])
    if entry["datatype"] != "BYTES":
        kinds = KINDS.get(entry["datatype"], (int,))
        if not all(isinstance(value, kinds) for value in values.reshape(-1).tolist()):
            raise ValueError("an element is of another type")
        return Tensor.from_values(entry["name"], entry["datatype"], values).array
    return values


def _of_octets(entry: dict[str, Any], octets: bytes) -> Any:
    if entry["datatype"] != "BYTES":
        if entry["datatype"] == "BOOL" and max(octets, default=0) > 1:
            raise ValueError("a byte of BOOL is neither 0 nor 1")
        return np.frombuffer(octets, DTYPES[entry["datatype"]]).reshape(entry["shape"])
    elements, at = [], 0
    while at < len(octets):
        end = at + 4 + int.from_bytes(octets[at : at + 4], "little")
        if end > len(octets) or at + 4 > len(octets):
            raise ValueError("an element is cut off")
        elements.append(octets[at + 4 : end])
        at = end
    made = np.empty(len(elements), dtype=object)
    made[:] = elements
    return made.reshape(entry["shape"])
