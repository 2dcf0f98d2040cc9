"""Requests made by hand: literal JSON, hex, and headers that count what they are given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from conformance.clients.rules.rule import Violation
from conformance.wire.client_request import ClientRequest

PATH = "/v2/models/m/infer"
LENGTH = "Inference-Header-Content-Length"
OCTETS = "application/octet-stream"
JSON = "application/json"


def parse_hex(text: str) -> bytes:
    return bytes.fromhex(text)


def plain(text: str | bytes, *more: tuple[str, str], path: str = PATH, kind: str | None = JSON) -> ClientRequest:
    """Return a request of JSON alone, with no header but Content-Type and Content-Length."""
    return make_received(text if isinstance(text, bytes) else text.encode(), *more, path=path, kind=kind)


def framed(
    text: str, data: bytes = b"", *more: tuple[str, str], count: int | str | None = -1, kind: str | None = OCTETS
) -> ClientRequest:
    """Return a request with the header; `count` is its value: by default the bytes of the JSON, None leaves it out."""
    body = text.encode() + data
    value = len(text.encode()) if count == -1 else count
    header = () if value is None else ((LENGTH, str(value)),)
    return make_received(body, *header, *more, kind=kind)


def raw(data: bytes, *more: tuple[str, str], count: str | None = "0", kind: str | None = OCTETS) -> ClientRequest:
    """Return a raw binary request."""
    return make_received(data, *(() if count is None else ((LENGTH, count),)), *more, kind=kind)


def make_received(body: bytes, *headers: tuple[str, str], path: str = PATH, kind: str | None = JSON) -> ClientRequest:
    given = [("Host", "h"), *([("Content-Type", kind)] if kind else []), *headers]
    if not any(name.lower() in ("content-length", "transfer-encoding") for name, _ in given):
        given.append(("Content-Length", str(len(body))))
    chunked = any(name.lower() == "transfer-encoding" for name, _ in given)
    return ClientRequest("POST", path, tuple(given), body, is_chunked=chunked)


# --- inputs as JSON has them -----------------------------------------------------------------------------------------


def make_sized_input(name: str, datatype: str, shape: str, size: object) -> str:
    """Return an input with a size."""
    return f'{{"name":"{name}","datatype":"{datatype}","shape":{shape},"parameters":{{"binary_data_size":{size}}}}}'


def make_json_input(name: str, datatype: str, shape: str, values: str) -> str:
    """Return an input as JSON."""
    return f'{{"name":"{name}","datatype":"{datatype}","shape":{shape},"data":{values}}}'


def inputs(*items: str, rest: str = "") -> str:
    """Return the JSON of a request with these inputs, and other members behind them."""
    return '{"inputs":[' + ",".join(items) + "]" + rest + "}"


# --- what the rows are made of ----------------------------------------------------------------------------------------

I2 = make_sized_input("A", "INT32", "[2]", 8)
I2_BYTES = parse_hex("04030201 feffffff")
TEXT = make_sized_input("B", "BYTES", "[2]", 11)
TEXT_BYTES = parse_hex("03000000 616263 00000000")
BOOL = make_sized_input("C", "BOOL", "[3]", 3)
BOOL_BYTES = parse_hex("01 00 01")
TINY = make_sized_input("D", "INT8", "[3]", 3)
TINY_BYTES = parse_hex("05 f9 7f")
PLAIN = make_json_input("A", "INT32", "[2]", "[1,2]")
EMPTY = make_sized_input("E", "FP32", "[0]", 0)
BINARY = framed(inputs(I2), I2_BYTES)
OUTPUTS = ',"outputs":[{"name":"X"%s}]'


def asking(parameters: str) -> ClientRequest:
    """Return a request with one output that has these parameters."""
    return plain(inputs(PLAIN, rest=OUTPUTS % f',"parameters":{parameters}'))


def top(parameters: str) -> ClientRequest:
    return plain(inputs(PLAIN, rest=f',"parameters":{parameters}'))


def with_type(datatype: str, shape: str, values: str) -> ClientRequest:
    return plain(inputs(make_json_input("A", datatype, shape, values)))


def list_ids(misses: Iterable[Violation]) -> list[str]:
    """Return the requirements of misses without what is the same in all."""
    return [miss.requirement.removeprefix("CLIENT-SENDS-") for miss in misses]


def rows(named: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Return rows for pytest: what comes first is the name."""
    return [pytest.param(*values, id=name) for name, *values in named]
