"""Content codings: compressed requests and answers, and what is refused."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import pytest

from tests.support.serving import HEADER, Answer, Server

JSON_PART = b'{"inputs":[{"name":"INPUT","shape":[3],"datatype":"UINT8","parameters":{"binary_data_size":3}}]}'
BODY = JSON_PART + b"\x01\x02\xff"
DATA = b'"data":[1,2,255]'


def ask(server: Server, body: bytes, *headers: str) -> Answer:
    """Send a request for identity_uint8 whose inference header is that of `JSON_PART`."""
    lines = ["POST /v2/models/identity_uint8/infer HTTP/1.1", "Host: test", f"Content-Length: {len(body)}"]
    lines += [f"{HEADER}: {len(JSON_PART)}", *headers, "", ""]
    return server.exchange("\r\n".join(lines).encode() + body)


# --- requests --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        *[(coding, gzip.compress(BODY)) for coding in ("gzip", "x-gzip", "GZip")],
        ("gzip", gzip.compress(BODY[:50]) + gzip.compress(BODY[50:])),
        ("deflate", zlib.compress(BODY)),
    ],
    ids=["gzip", "x-gzip", "in another case", "two members", "deflate"],
)
def test_coded_request(server: Server, coding: str, body: bytes) -> None:
    answer = ask(server, body, f"Content-Encoding: {coding}")
    assert (answer.status, answer.body.count(DATA)) == (200, 1)


@pytest.mark.parametrize("headers", [[], ["Content-Encoding: identity"], ["Content-Encoding:"]])
def test_request_in_no_coding(server: Server, headers: list[str]) -> None:
    assert ask(server, BODY, *headers).status == 200


@pytest.mark.parametrize(
    ("headers", "shown"),
    [
        (["Content-Encoding: br"], "br"),
        (["Content-Encoding: gzip, deflate"], "gzip, deflate"),
        (["Content-Encoding: gzip", "Content-Encoding: gzip"], "gzip, gzip"),
    ],
)
def test_unknown_coding(server: Server, headers: list[str], shown: str) -> None:
    answer = ask(server, gzip.compress(BODY), *headers)
    said = f'{{"error":"Content-Encoding is \\"{shown}\\", but only gzip, deflate and identity are supported"}}'
    assert (answer.status, answer.body) == (415, said.encode())


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (BODY, b"the body is not valid gzip data: "),
        (zlib.compress(BODY), b"the body is not valid gzip data: "),
        (gzip.compress(BODY)[:-1], b"the gzip body is truncated"),
        (b"", b"the gzip body is truncated"),
        (gzip.compress(BODY) + b"\0", b"the gzip body has data after its end"),
        (gzip.compress(BODY)[:-8] + bytes(8), b"the body is not valid gzip data: "),
    ],
    ids=["plain", "zlib", "cut", "empty", "more", "wrong checksum"],
)
def test_body_that_is_not_in_its_coding(server: Server, body: bytes, said: bytes) -> None:
    answer = ask(server, body, "Content-Encoding: gzip")
    assert (answer.status, answer.body[: 10 + len(said)]) == (400, b'{"error":"' + said)


def test_limit_holds_for_what_is_unpacked(small_server: Server) -> None:
    whole = gzip.compress(BODY + bytes(800_000))
    assert len(whole) < 1000
    answer = ask(small_server, whole, "Content-Encoding: gzip")
    assert (answer.status, answer.body) == (413, b'{"error":"the decoded body is over the limit of 1000 bytes"}')
    assert ask(small_server, gzip.compress(BODY), "Content-Encoding: gzip").status == 200
    members = gzip.compress(BODY) + gzip.compress(bytes(800_000))
    assert ask(small_server, members, "Content-Encoding: gzip").status == 413


# --- answers ---------------------------------------------------------------------------------------------------------

PLAIN = (
    b'{"model_name":"identity_uint8","model_version":"1","outputs":[{"name":"OUTPUT","datatype":"UINT8","shape":[3],'
    b'"data":[1,2,255]}]}'
)


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip", "gzip"),
        ("GZIP", "gzip"),
        ("deflate", "deflate"),
        ("br, gzip;q=0.5, deflate", "gzip"),
        ("gzip;q=0, deflate;q=1.0", "deflate"),
        ("gzip;q=0.000", None),
        ("identity", None),
        ("br", None),
        ("", None),
    ],
)
def test_answer_is_in_the_coding_that_is_accepted(server: Server, accepted: str, coding: str | None) -> None:
    answer = ask(server, BODY, f"Accept-Encoding: {accepted}")
    unpack: dict[str | None, Callable[[bytes], bytes]] = {
        "gzip": gzip.decompress,
        "deflate": zlib.decompress,
        None: bytes,
    }
    assert (answer.status, answer.headers.get("content-encoding")) == (200, coding)
    assert (answer.headers["content-length"], unpack[coding](answer.body)) == (str(len(answer.body)), PLAIN)


def test_inference_header_counts_the_json_before_coding(server: Server) -> None:
    wish = b',"parameters":{"binary_data_output":true}}'
    json_part = JSON_PART[:-1] + wish
    lines = ["POST /v2/models/identity_uint8/infer HTTP/1.1", "Host: test", "Accept-Encoding: gzip"]
    lines += [f"{HEADER}: {len(json_part)}", f"Content-Length: {len(json_part) + 3}", "", ""]
    answer = server.exchange("\r\n".join(lines).encode() + json_part + BODY[-3:])
    body = gzip.decompress(answer.body)
    assert (body[-3:], answer.headers[HEADER]) == (b"\x01\x02\xff", str(len(body) - 3))


def test_refusal_is_in_no_coding(server: Server) -> None:
    answer = ask(server, b"{}", "Accept-Encoding: gzip")
    assert (answer.status, answer.headers.get("content-encoding")) == (400, None)
    assert answer.body.startswith(b'{"error":"')
