"""Requests made by hand: literal JSON, hex, and headers that count what they are given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from conformance.clients.miss import Miss
from conformance.wire.received import Received

PATH = "/v2/models/m/infer"
LENGTH = "Inference-Header-Content-Length"
OCTETS = "application/octet-stream"
JSON = "application/json"


def octets(text: str) -> bytes:
    return bytes.fromhex(text)


def plain(text: str | bytes, *more: tuple[str, str], path: str = PATH, kind: str | None = JSON) -> Received:
    """Return a request of JSON alone, with no header but Content-Type and Content-Length."""
    return sent(text if isinstance(text, bytes) else text.encode(), *more, path=path, kind=kind)


def framed(
    text: str, data: bytes = b"", *more: tuple[str, str], count: int | str | None = -1, kind: str | None = OCTETS
) -> Received:
    """Return a request with the header; `count` is its value: by default the bytes of the JSON, None leaves it out."""
    body = text.encode() + data
    value = len(text.encode()) if count == -1 else count
    header = () if value is None else ((LENGTH, str(value)),)
    return sent(body, *header, *more, kind=kind)


def raw(data: bytes, *more: tuple[str, str], count: str | None = "0", kind: str | None = OCTETS) -> Received:
    """Return a raw binary request."""
    return sent(data, *(() if count is None else ((LENGTH, count),)), *more, kind=kind)


def sent(body: bytes, *headers: tuple[str, str], path: str = PATH, kind: str | None = JSON) -> Received:
    given = [("Host", "h"), *([("Content-Type", kind)] if kind else []), *headers]
    if not any(name.lower() in ("content-length", "transfer-encoding") for name, _ in given):
        given.append(("Content-Length", str(len(body))))
    chunked = any(name.lower() == "transfer-encoding" for name, _ in given)
    return Received("POST", path, tuple(given), body, is_chunked=chunked)


# --- inputs as JSON has them -----------------------------------------------------------------------------------------


def one(name: str, datatype: str, shape: str, size: object) -> str:
    """Return an input with a size."""
    return f'{{"name":"{name}","datatype":"{datatype}","shape":{shape},"parameters":{{"binary_data_size":{size}}}}}'


def data(name: str, datatype: str, shape: str, values: str) -> str:
    """Return an input as JSON."""
    return f'{{"name":"{name}","datatype":"{datatype}","shape":{shape},"data":{values}}}'


def inputs(*items: str, rest: str = "") -> str:
    """Return the JSON of a request with these inputs, and other members behind them."""
    return '{"inputs":[' + ",".join(items) + "]" + rest + "}"


# --- what the rows are made of ----------------------------------------------------------------------------------------

I2 = one("A", "INT32", "[2]", 8)
I2_BYTES = octets("04030201 feffffff")
TEXT = one("B", "BYTES", "[2]", 11)
TEXT_BYTES = octets("03000000 616263 00000000")
BOOL = one("C", "BOOL", "[3]", 3)
BOOL_BYTES = octets("01 00 01")
TINY = one("D", "INT8", "[3]", 3)
TINY_BYTES = octets("05 f9 7f")
PLAIN = data("A", "INT32", "[2]", "[1,2]")
EMPTY = one("E", "FP32", "[0]", 0)
BINARY = framed(inputs(I2), I2_BYTES)
OUTPUTS = ',"outputs":[{"name":"X"%s}]'


def asking(parameters: str) -> Received:
    """Return a request with one output that has these parameters."""
    return plain(inputs(PLAIN, rest=OUTPUTS % f',"parameters":{parameters}'))


def top(parameters: str) -> Received:
    return plain(inputs(PLAIN, rest=f',"parameters":{parameters}'))


def with_type(datatype: str, shape: str, values: str) -> Received:
    return plain(inputs(data("A", datatype, shape, values)))


def ids(misses: Iterable[Miss]) -> list[str]:
    """Return the requirements of misses without what is the same in all."""
    return [miss.requirement.removeprefix("CLIENT-SENDS-") for miss in misses]


def rows(named: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Return rows for pytest: what comes first is the name."""
    return [pytest.param(*values, id=name) for name, *values in named]
