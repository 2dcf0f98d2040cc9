"""Which refusals must have an error object, and which should."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.expect.refusals import find_refusal_without_error
from conformance.transport.exchange import Exchange, FailureKind, Reply, TransportFailure
from conformance.transport.send_options import PLAIN, ChunkFormat, SendOptions
from conformance.wire.request import Message

PAGE, ERROR = b"<h1>No</h1>", b'{"error": ""}'
MUST, SHOULD = "OIP-ERROR", "OIP-ERROR-ELSEWHERE"
INFER, VERSIONED = "POST /v2/models/m/infer", "POST /v2/models/m/versions/1/infer"


def refuse(request: str, status: int, body: bytes = PAGE, failure: TransportFailure | None = None) -> Reply:
    method, path = request.split()
    return Reply(Exchange(0, Message(path, method=method), f"http://x{path}", status, (), body, failure))


@pytest.mark.parametrize(
    ("requirement", "reply"),
    [
        *[(MUST, refuse(INFER, status)) for status in (400, 404, 405, 411, 415, 422, 500)],
        *[(MUST, refuse(INFER, 415, body)) for body in (b"", b"[]", b'"error"', b'{"error": null}', b"\xff")],
        *[(MUST, refuse(f"GET {path}", 400)) for path in ("/v2", "/v2/", "/v2/models/m", "/v2/models/m/versions/1")],
        (MUST, refuse(VERSIONED, 400)),
        (SHOULD, refuse(VERSIONED, 404)),  # a path that a server need not have
        *[(SHOULD, refuse(INFER, status)) for status in (401, 403, 413, 429, 431, 502, 503, 504)],
        *[(None, refuse(INFER, status)) for status in (200, 304, 417, 426, 505)],
        (None, refuse(INFER, 400, ERROR)),
        (None, refuse(INFER, 400, PAGE, TransportFailure(FailureKind.BROKEN, "cut"))),
        *[(None, refuse(request, 400)) for request in ("GET /v2/health/ready", "GET /v2/models/m/ready", "GET /v1")],
        (None, refuse("GET /v2/models/m/infer", 405)),  # another check advises about methods that no endpoint has
    ],
)
def test_error_objects(requirement: str | None, reply: Reply) -> None:
    found = find_refusal_without_error([refuse(INFER, 400, ERROR), reply])
    assert (found and found.requirement) == requirement


WITH_TRAILERS = SendOptions(chunked=(), chunk_format=ChunkFormat(trailers=(("X", "1"),)))


@pytest.mark.parametrize(
    ("version", "options", "requirement"),
    [("HTTP/1.1", PLAIN, MUST), ("HTTP/1.0", PLAIN, None), ("HTTP/1.1", WITH_TRAILERS, None)],
)
def test_http_libraries_may_refuse_chunks(version: str, options: SendOptions, requirement: str | None) -> None:
    exchange = refuse(INFER, 400).exchange
    refusal = Reply(replace(exchange, version=version, is_chunked=True, send_options=options))
    found = find_refusal_without_error([refusal])
    assert (found and found.requirement) == requirement


def test_a_must_comes_before_advice() -> None:
    found = find_refusal_without_error([refuse(INFER, 413), refuse(INFER, 415)])
    assert found is not None
    assert found.requirement == MUST


def test_an_html_page_is_not_quoted() -> None:
    page = Exchange(0, Message("/v2"), "http://x/v2", 404, (("content-type", "text/HTML; charset=utf-8"),), PAGE)
    assert Reply(page).outcome() == "HTTP 404: text/html"
    assert refuse(INFER, 404).outcome() == "HTTP 404: <h1>No</h1>"
