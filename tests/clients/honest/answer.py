"""An answer over HTTP: its status, its JSON, and the binary data behind it. No sockets."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tests.clients.honest import tensors
from tests.clients.honest.caller import CallerRequest, CallerResult, MalformedError, RefusedError, Tensor

LENGTH = "inference-header-content-length"


@dataclass(frozen=True)
class Answer:
    """An answer as HTTP delivered it: names of headers in small letters, the body without its framing."""

    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """Return the value of a header, or None; several are joined by commas."""
        found = [value for key, value in self.headers if key == name]
        return ", ".join(found) if found else None


def given(asked: CallerRequest, answer: Answer) -> CallerResult:
    """Return what an answer gives the caller; raises RefusedError and MalformedError."""
    body = decoded(answer.body, answer.header("content-encoding"))
    if not is_success(answer.status):
        raise RefusedError(error_text(body) or answer.reason or f"HTTP {answer.status}", str(answer.status))
    length = json_length(answer)
    if length is None:
        length = len(body)
    if length > len(body):
        raise MalformedError(f"the JSON is said to have {length} of {len(body)} bytes")
    said = parsed(body[:length])
    if "outputs" not in said:
        raise RefusedError(message_in(said) or "an answer without outputs", str(answer.status))
    outputs = read_outputs(asked, objects(said["outputs"]), body[length:])
    expect_own(asked, said, outputs)
    return CallerResult(outputs, said.get("id"))


def is_success(status: int) -> bool:
    return 200 <= status < 300


def decoded(body: bytes, coding: str | None) -> bytes:
    try:
        if coding is None or coding.strip().lower() == "identity":
            return body
        if coding.strip().lower() in ("gzip", "x-gzip"):
            return gzip.decompress(body)
        if coding.strip().lower() == "deflate":
            return zlib.decompress(body)
    except (OSError, EOFError, zlib.error) as error:
        raise MalformedError(f"the body is not in the coding {coding}") from error
    raise MalformedError(f"content coding {coding}")


def error_text(body: bytes) -> str:
    """Return the message of a refusal: the member `error`, or the text itself."""
    try:
        return message_in(parsed(body)) or body.decode(errors="replace")
    except MalformedError:
        return body.decode(errors="replace")


def message_in(said: dict[str, Any]) -> str:
    """Return the message of an error object, or nothing."""
    return said["error"] if isinstance(said.get("error"), str) else ""


def json_length(answer: Answer) -> int | None:
    value = answer.header(LENGTH)
    if value is None:
        return None
    if not (value.isascii() and value.isdigit()):
        raise MalformedError(f"inference header {value}")
    return int(value)


def parsed(text: bytes) -> dict[str, Any]:
    try:
        said = json.loads(text.decode(), parse_float=Decimal, parse_int=_integer, parse_constant=_unknown)
    except (ValueError, RecursionError) as error:
        raise MalformedError("no JSON") from error
    if not isinstance(said, dict):
        raise MalformedError("no object of JSON")
    return said


def _integer(digits: str) -> int | Decimal:
    return Decimal(digits) if digits == "-0" else int(digits)


def _unknown(constant: str) -> None:
    raise MalformedError(f"{constant} is no JSON")


def objects(said: Any) -> list[dict[str, Any]]:
    if not isinstance(said, list) or not all(isinstance(one, dict) for one in said):
        raise MalformedError("outputs are no array of objects")
    return said


def read_outputs(_asked: CallerRequest, entries: list[dict[str, Any]], data: bytes) -> tuple[Tensor, ...]:
    sizes = [announced_size(entry) for entry in entries]
    pieces = iter(cut(data, [size for size in sizes if size is not None]))
    return tuple(
        read_output(entry, None if size is None else next(pieces)) for entry, size in zip(entries, sizes, strict=True)
    )


def announced_size(entry: dict[str, Any]) -> int | None:
    """Return the size of an output that is binary, None for one that is not."""
    parameters = entry.get("parameters") or {}
    size = parameters.get("binary_data_size") if isinstance(parameters, dict) else None
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 0):
        raise MalformedError(f"size {size}")
    return size


def cut(data: bytes, sizes: Sequence[int]) -> list[bytes]:
    if sum(sizes) != len(data):
        raise MalformedError(f"{len(data)} bytes of binary data, {sum(sizes)} announced")
    ends = [sum(sizes[: place + 1]) for place in range(len(sizes))]
    return [data[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def read_output(entry: dict[str, Any], piece: bytes | None) -> Tensor:
    name, datatype, shape = entry.get("name"), entry.get("datatype"), _shape(entry.get("shape"))
    if not isinstance(name, str) or not isinstance(datatype, str):
        raise MalformedError("an output without name or datatype")
    data = from_json(datatype, shape, entry.get("data")) if piece is None else from_binary(datatype, shape, piece)
    return Tensor(name, datatype, tuple(shape), data)


def _shape(said: Any) -> list[int]:
    if not isinstance(said, list) or not all(type(size) is int and size >= 0 for size in said):
        raise MalformedError(f"shape {said}")
    return said


def from_binary(datatype: str, shape: Sequence[int], piece: bytes) -> bytes:
    tensors.expect_fit(datatype, shape, piece)
    return piece


def from_json(datatype: str, shape: Sequence[int], data: Any) -> bytes:
    """Return the data of an output that is JSON, flat or nested."""
    if not isinstance(data, list):
        raise MalformedError("an output without data")
    elements = flattened(data)
    if len(elements) != tensors.count(shape):
        raise MalformedError(f"{len(elements)} elements for shape {list(shape)}")
    return tensors.packed(datatype, elements)


def flattened(data: list[Any]) -> list[Any]:
    while any(isinstance(one, list) for one in data):
        if not all(isinstance(one, list) for one in data):
            raise MalformedError("arrays beside elements")
        data = [element for one in data for element in one]
    return data


def expect_own(asked: CallerRequest, said: dict[str, Any], outputs: Sequence[Tensor]) -> None:
    """Raise MalformedError unless the answer is that to the caller's request."""
    names = [output.name for output in outputs]
    missing = [output.name for output in asked.outputs or () if output.name not in names]
    if missing or len(set(names)) != len(names):
        raise MalformedError(f"outputs {names}")
    if asked.id is not None and said.get("id") not in (None, asked.id):
        raise MalformedError(f"the answer to {said.get('id')}")
