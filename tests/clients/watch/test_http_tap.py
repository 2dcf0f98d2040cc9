"""What is read along on a connection of HTTP/1: requests, and which answer belongs to which."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count

import pytest

from conformance.clients.recording.http_tap import HttpTap
from conformance.clients.recording.recorder import Recorder, Store
from conformance.clients.recording.records import RecordedExchange
from tests.support.bare_requests import BINARY, JSON_PART, PATH, make_request
from tests.support.recorder import ListenerLog

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = f"POST {PATH} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
GET = b"GET /v2 HTTP/1.1\r\nHost: h\r\n\r\n"


def read(sent: bytes, came: bytes = b"", size: int = 1 << 20, store: Store | None = None) -> ListenerLog:
    notes = ListenerLog()
    tap = HttpTap(Recorder(notes, store or Store(), count(1)))
    for data, take in ((sent, tap.read_from_client), (came, tap.read_from_server)):
        for at in range(0, len(data), size):
            take(data[at : at + size])
    tap.handle_end()
    return notes


def describe_records(records: Sequence[RecordedExchange]) -> list[tuple[str, bytes, str]]:
    return [(one.received.path, one.received.body, one.received.trouble) for one in records]


READ = {
    "one": (make_request(), [(PATH, BINARY, "")]),
    "two in one piece": (make_request() + GET, [(PATH, BINARY, ""), ("/v2", b"", "")]),
    "empty lines in front": (b"\r\n\n" + make_request() + b"\r\n\r\n" + GET, [(PATH, BINARY, ""), ("/v2", b"", "")]),
    "no Host": (b"POST /a HTTP/1.1\r\nContent-Length: 2\r\n\r\nab", [("/a", b"ab", "")]),
    "HTTP/1.0 without length": (b"POST /a HTTP/1.0\r\n\r\n", [("/a", b"", "")]),
    "chunks": (CHUNKED + b"2\r\nab\r\n1;x\r\nc\r\n0\r\nT: t\r\n\r\n" + GET, [(PATH, b"abc", ""), ("/v2", b"", "")]),
    "a query": (make_request(path=PATH + "?a=b"), [(PATH + "?a=b", BINARY, "")]),
}


@pytest.mark.parametrize(("sent", "expected"), READ.values(), ids=READ)
@pytest.mark.parametrize("size", [1 << 20, 1])
def test_requests_are_read_however_they_are_cut(sent: bytes, expected: list[tuple[str, bytes, str]], size: int) -> None:
    notes = read(sent, size=size)
    assert describe_records(notes.asked_for) == expected
    assert notes.reasons == []


def test_headers_keep_their_order_and_spelling() -> None:
    (one,) = read(b"POST /a HTTP/1.0\r\nhOST: h\r\nX-a:  1 \r\ncontent-length: 0\r\nX-A: 2\r\n\r\n").asked_for
    assert one.received.headers == (("hOST", "h"), ("X-a", "1"), ("content-length", "0"), ("X-A", "2"))
    assert one.received.version == "HTTP/1.0"
    assert not one.received.is_chunked
    assert read(CHUNKED + b"0\r\n\r\n").asked_for[0].received.is_chunked


WRONG = {
    "a length too small": (make_request(length=len(JSON_PART)), "a body longer than its Content-Length of 106"),
    "a length too large": (make_request(length=999), "a complete body of 122 bytes, but a larger"),
    "no last chunk": (
        CHUNKED + b"6b\r\n" + b'{"inputs": []}'.ljust(107) + b"\r\n",
        "a complete body of 107 bytes, without",
    ),
    "chunks that are none": (CHUNKED + b"zz\r\nab", "chunks: "),
    "two lengths": (make_request(BINARY, "Content-Length: 3"), "head: "),
    "a header name with a blank": (make_request(BINARY, "A B: 3"), "head: "),
}


@pytest.mark.parametrize(("sent", "trouble"), WRONG.values(), ids=WRONG)
def test_incomplete_or_malformed_request_has_trouble(sent: bytes, trouble: str) -> None:
    last = read(sent, OK).asked_for[-1]
    assert last.received.trouble.startswith(trouble)
    assert last.received.is_inference


NOT_READ = {
    "given up in the body": make_request()[:-5],
    "given up in the JSON": make_request(length=999)[: -len(BINARY) + 20],
    "given up between chunks": CHUNKED + b"2\r\n{ \r\n",
    "given up in the head": make_request()[:30],
    "another protocol": b"\x16\x03\x01\x02\0\1",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a transfer coding that is not read": make_request(BINARY, "Transfer-Encoding: gzip, chunked"),
    "a head that is too long": make_request(BINARY, "X: " + "x" * 300_000),
}


@pytest.mark.parametrize("sent", NOT_READ.values(), ids=NOT_READ)
def test_aborted_or_unreadable_request_is_not_recorded(sent: bytes) -> None:
    notes = read(sent, size=4096)
    assert [one for one in notes.asked_for if one.received.is_inference] == []
    assert len(notes.reasons) == 1


def test_answers_belong_to_requests_in_their_order() -> None:
    came = (
        b"HTTP/1.1 103 Early\r\n\r\n"
        + OK
        + b"HTTP/1.1 404 No\r\nX: y\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
    )
    for size in (1 << 20, 1):
        notes = read(make_request() + GET, came, size)
        assert [(one.number, one.answer and one.answer.status) for one in notes.answers] == [(1, 200), (2, 404)]
        assert [one.answer.body for one in notes.answers if one.answer] == [b"{}", b"x"]


def test_an_answer_to_head_has_no_body() -> None:
    notes = read(b"HEAD /v2 HTTP/1.1\r\nHost: h\r\n\r\n" + GET, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" + OK)
    assert [one.answer.body for one in notes.answers if one.answer] == [b"", b"{}"]


def test_an_answer_may_end_with_its_connection_or_be_cut_short() -> None:
    (one,) = read(GET, b"HTTP/1.0 200 OK\r\n\r\nall of it").answers
    assert one.answer is not None
    assert (one.answer.body, one.answer.trouble) == (b"all of it", "")
    (one,) = read(GET, b"HTTP/1.0 200 OK\r\nContent-Length: 99\r\n\r\nall of it").answers
    assert one.answer is not None
    assert one.answer.status == 200
    assert one.answer.trouble


def test_unanswered_request_is_recorded() -> None:
    notes = read(make_request())
    assert [one.answer.status for one in notes.answers if one.answer] == [None]


def test_an_answer_may_come_before_the_request_has() -> None:
    notes = ListenerLog()
    tap = HttpTap(Recorder(notes, Store(), count(1)))
    whole = make_request()
    tap.read_from_client(whole[:-5])
    tap.read_from_server(OK)
    tap.read_from_client(whole[-5:])
    tap.handle_end()
    assert describe_records(notes.asked_for) == [(PATH, BINARY, "")]
    assert [one.answer.status for one in notes.answers if one.answer] == [200]


def test_bytes_after_protocol_switch_are_not_recorded() -> None:
    came = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n" + make_request()
    notes = ListenerLog()
    tap = HttpTap(Recorder(notes, Store(), count(1)))
    tap.read_from_client(b"GET /a HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
    tap.read_from_server(came)
    tap.read_from_client(make_request())
    tap.handle_end()
    assert [one.received.path for one in notes.asked_for] == ["/a"]
    assert len(notes.reasons) == 1


def test_a_body_that_is_too_long_is_not_kept_and_the_next_one_is() -> None:
    store = Store(max_total_bytes=200, max_body_bytes=150)
    notes = read(make_request(b"x" * 151) + make_request() + make_request(b"x" * 149), store=store)
    assert [(one.is_whole, len(one.received.body)) for one in notes.asked_for] == [(False, 0), (True, 122), (True, 149)]
    assert store.free_bytes == 200


def test_all_bodies_together_are_limited() -> None:
    store = Store(max_total_bytes=200, max_body_bytes=150)
    tap = HttpTap(Recorder(notes := ListenerLog(), store, count(1)))
    tap.read_from_client(make_request()[:-1])
    other = HttpTap(Recorder(notes, store, count(1)))
    other.read_from_client(make_request())
    tap.read_from_client(make_request()[-1:])
    assert [one.is_whole for one in notes.asked_for] == [False, True]
    assert store.free_bytes == 200


def test_deep_json_of_a_request_that_is_cut_off_is_no_fault_of_ours() -> None:
    body = b"[" * 100_000
    assert read(make_request(body, length=200_000)).reasons == ["a request was aborted before it was complete"]
    nested = json.dumps({"inputs": 3}).encode()
    assert len(read(make_request(nested, length=200)).reasons) == 1
