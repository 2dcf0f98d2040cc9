"""Requests over HTTP written by hand, and those among them that are honest."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable
from dataclasses import replace
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
    return build_client_request(text if isinstance(text, bytes) else text.encode(), *more, path=path, kind=kind)


def framed(
    text: str, data: bytes = b"", *more: tuple[str, str], count: int | str | None = -1, kind: str | None = OCTETS
) -> ClientRequest:
    """Return a request with the header; `count` is its value: by default the bytes of the JSON, None leaves it out."""
    body = text.encode() + data
    value = len(text.encode()) if count == -1 else count
    header = () if value is None else ((LENGTH, str(value)),)
    return build_client_request(body, *header, *more, kind=kind)


def raw(data: bytes, *more: tuple[str, str], count: str | None = "0", kind: str | None = OCTETS) -> ClientRequest:
    return build_client_request(data, *(() if count is None else ((LENGTH, count),)), *more, kind=kind)


def build_client_request(
    body: bytes, *headers: tuple[str, str], path: str = PATH, kind: str | None = JSON
) -> ClientRequest:
    given = [("Host", "h"), *([("Content-Type", kind)] if kind else []), *headers]
    if not any(name.lower() in ("content-length", "transfer-encoding") for name, _ in given):
        given.append(("Content-Length", str(len(body))))
    chunked = any(name.lower() == "transfer-encoding" for name, _ in given)
    return ClientRequest("POST", path, tuple(given), body, is_chunked=chunked)


# --- inputs as JSON has them -----------------------------------------------------------------------------------------


def make_sized_input(name: str, datatype: str, shape: str, size: object) -> str:
    return f'{{"name":"{name}","datatype":"{datatype}","shape":{shape},"parameters":{{"binary_data_size":{size}}}}}'


def make_json_input(name: str, datatype: str, shape: str, values: str) -> str:
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


# --- honest requests --------------------------------------------------------------------------------------------------


HONEST: list[tuple[str, ClientRequest]] = [
    ("json", plain(inputs(PLAIN))),
    ("binary", BINARY),
    ("several", framed(inputs(I2, TEXT, BOOL), I2_BYTES + TEXT_BYTES + BOOL_BYTES)),
    ("several-in-another-order", framed(inputs(BOOL, TEXT, I2), BOOL_BYTES + TEXT_BYTES + I2_BYTES)),
    ("mixed", framed(inputs(TEXT, PLAIN, BOOL), TEXT_BYTES + BOOL_BYTES)),
    ("members-in-another-order", plain('{"id":"","inputs":[{"data":[1],"shape":[1],"datatype":"INT8","name":"A"}]}')),
    ("spacing", framed(' {\n"inputs" : [ ' + I2 + " ]\t}\r\n ", I2_BYTES)),
    ("blanks-that-the-header-counts", framed(inputs(I2) + "    ", I2_BYTES)),
    ("blanks-before", framed("  \n" + inputs(I2), I2_BYTES)),
    ("data-that-begin-with-blanks", framed(inputs(I2), b"        ")),
    ("data-that-look-like-json", framed(inputs(I2), b'{"a":[1}')),
    ("escapes", plain('{"inputs":[{"name":"\\u0041\\n","datatype":"\\u0042OOL","shape":[1],"data":[true]}]}')),
    ("not-ascii", framed(inputs(make_sized_input("élan-日本", "INT32", "[2]", 8)), I2_BYTES)),
    ("header-on-json", framed(inputs(PLAIN), kind=JSON)),
    ("header-on-json-as-octets", framed(inputs(PLAIN))),
    ("header-in-another-case", build_client_request(BINARY.body, (LENGTH.upper(), str(len(inputs(I2)))), kind=OCTETS)),
    ("header-with-leading-zeros", framed(inputs(I2), I2_BYTES, count=f"00{len(inputs(I2))}")),
    ("header-with-many-zeros", framed(inputs(I2), I2_BYTES, count="0" * 9000 + str(len(inputs(I2))))),
    ("empty-with-header", framed(inputs(EMPTY))),
    ("empty-without-header", framed(inputs(EMPTY), count=None)),
    ("empty-as-json-type", framed(inputs(EMPTY), count=None, kind=JSON)),
    ("empty-between", framed(inputs(I2, EMPTY, BOOL), I2_BYTES + BOOL_BYTES)),
    ("empty-data-beside-a-size", framed(inputs(I2[:-1] + ',"data":[]}'), I2_BYTES)),
    ("null-data-beside-a-size", framed(inputs(I2[:-1] + ',"data":null}'), I2_BYTES)),
    ("size-as-8.0", framed(inputs(make_sized_input("A", "INT32", "[2]", "8.0")), I2_BYTES)),
    ("dimension-as-2.0", framed(inputs(make_sized_input("A", "INT32", "[2.0]", 8)), I2_BYTES)),
    ("rank-0", framed(inputs(make_sized_input("A", "INT32", "[]", 4)), I2_BYTES[:4])),
    ("rank-0-json", with_type("INT32", "[]", "[5]")),
    ("rank-0-json-bare", with_type("INT32", "[]", "5")),
    ("rank-40", with_type("INT32", "[" + ",".join(["1"] * 40) + "]", "[5]")),
    ("large-dimension-of-nothing", with_type("INT32", "[0,18446744073709551615]", "[]")),
    ("nested", with_type("INT32", "[2,2]", "[[1,2],[3,4]]")),
    ("flat", with_type("INT32", "[2,2]", "[1,2,3,4]")),
    ("empty-json", with_type("FP32", "[2,0]", "[[],[]]")),
    ("integers-as-floats", with_type("INT64", "[3]", "[5.0,1e3,-0]")),
    ("largest-integers", with_type("UINT64", "[2]", "[18446744073709551615,9007199254740993]")),
    ("floats-as-integers", with_type("FP32", "[2]", "[1,-2]")),
    ("small-floats", with_type("FP64", "[3]", "[5e-324,-0.0,1.7976931348623157e308]")),
    ("bool", with_type("BOOL", "[2]", "[true,false]")),
    ("texts", with_type("BYTES", "[3]", '["","é","a\\u0000b"]')),
    ("no-inputs", plain('{"inputs":[]}')),
    ("unknown-members", plain(inputs(PLAIN[:-1] + ',"x":{"y":[]}}', rest=',"model_name":"m","z":null'))),
    ("unknown-parameters", top('{"priority":2,"sequence_id":"a","binary":true}')),
    ("own-classification-of-a-server", top('{"classification":"secret"}')),
    ("null-members", plain(inputs(PLAIN, rest=',"id":null,"parameters":null,"outputs":null'))),
    ("null-parameters-of-an-output", asking('{"binary_data":null,"classification":null}')),
    ("no-output-listed", plain(inputs(PLAIN, rest=',"outputs":[]'))),
    ("binary-data", asking('{"binary_data":true}')),
    ("binary-data-false-and-classes", asking('{"binary_data":false,"classification":3}')),
    ("classes-as-2.0", asking('{"classification":2.0}')),
    ("binary-data-output", top('{"binary_data_output":true}')),
    ("shared-memory", plain(inputs(PLAIN.replace('"data":[1,2]', '"parameters":{"shared_memory_region":"r"}')))),
    ("content-type-with-charset", plain(inputs(PLAIN), kind="Application/JSON; charset=utf-8")),
    (
        "chunked",
        build_client_request(
            BINARY.body, (LENGTH, str(len(inputs(I2)))), ("Transfer-Encoding", "chunked"), kind=OCTETS
        ),
    ),
    ("http-1.0", replace(BINARY, version="HTTP/1.0")),
    ("version-in-the-path", plain(inputs(PLAIN), path="/v2/models/m/versions/12/infer")),
    ("encoded-name", plain(inputs(PLAIN), path="/v2/models/a%2Fb%20c%C3%A9:d@e/infer")),
    ("behind-a-prefix-with-a-query", plain(inputs(PLAIN), path="/gateway/v2/models/m/infer?trace=1")),
    ("absolute-target", plain(inputs(PLAIN), path="http://host:8000/v2/models/m/infer")),
    ("equal-content-lengths", build_client_request(b'{"inputs":[]}', ("Content-Length", "13, 13"))),
    ("gzip", plain(gzip.compress(inputs(PLAIN).encode()), ("Content-Encoding", "gzip"))),
    ("gzip-in-another-case", plain(gzip.compress(inputs(PLAIN).encode()), ("content-encoding", "GZip"))),
    ("gzip-in-members", plain(gzip.compress(b'{"inputs"') + gzip.compress(b":[]}"), ("Content-Encoding", "x-gzip"))),
    ("deflate", plain(zlib.compress(inputs(PLAIN).encode()), ("Content-Encoding", "deflate"))),
    (
        "gzip-binary",
        build_client_request(
            gzip.compress(BINARY.body), (LENGTH, str(len(inputs(I2)))), ("Content-Encoding", "gzip"), kind=OCTETS
        ),
    ),
    ("two-codings", plain(gzip.compress(zlib.compress(b'{"inputs":[]}')), ("Content-Encoding", "deflate, gzip"))),
    ("identity", plain(inputs(PLAIN), ("Content-Encoding", "identity"))),
    ("a-coding-that-is-not-undone", plain(b"\x0b\x02", ("Content-Encoding", "br"))),
    ("raw", raw(I2_BYTES)),
    ("raw-of-no-bytes", raw(b"")),
    ("raw-that-looks-like-json", raw(b'{"inputs":[{"name":"A"}]}')),
    ("raw-that-looks-like-gzip", raw(gzip.compress(b"123"))),
    ("raw-with-00", raw(I2_BYTES, count="00")),
]
