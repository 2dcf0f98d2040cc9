"""Plain answers are parsed as h11 parses them, wherever they are cut and whatever is changed in them."""

from __future__ import annotations

import random
import re

import pytest

from conformance.transport import http_answer
from conformance.transport.exchange import TransportFailure
from conformance.transport.http_answer import AnswerParser, BrokenAnswerError
from tests.hostile.misbehaviours.rows import make_answer, make_head

MAX_BYTES = 100
ANSWERS = {
    "plain": make_answer(200, "Content-Type: application/json", body=b'{"outputs":[]}'),
    "kept-by-name": make_answer(200, "Connection: Keep-Alive", body=b"{}"),
    "closing": make_answer(400, "Connection: close", body=b"no"),
    "of-http-1-0": make_answer(200, body=b"{}").replace(b"1.1", b"1.0"),
    "of-two-lengths": make_answer(200, "Content-Length: 2", body=b"{}"),
    "of-an-odd-length": make_head(200, "Content-Length: +2") + b"{}",
    "without-a-body": make_head(204),
    "not-modified": make_head(304, length=2),
    "in-chunks": make_head(200, "Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\nX: 1\r\n\r\n",
    "folded": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\n{}",
    "with-spaces": b"HTTP/1.1 200 \r\nX:  a \r\nY:b\r\nZ:\r\nContent-Length: 2\r\n\r\n{}",
    "behind-others": make_head(103) + make_head(100) + make_answer(body=b"{}"),
    "two": make_answer(body=b"first") + make_answer(body=b"second"),
    "too-long": make_answer(body=bytes(2 * MAX_BYTES)),
    "cut": make_head(200, length=10) + b"{",
}
NEVER = re.compile(rb"(?!)")

Result = tuple[int | None, http_answer.Headers, str, bytes, bytes, bool, TransportFailure | None]


def parse(pieces: list[bytes], method: str = "POST") -> Result:
    """Parse an answer that arrives in pieces, and then the end of the connection."""
    parser, failure, surplus = AnswerParser(method, MAX_BYTES), None, b""
    try:
        for place, piece in enumerate([*pieces, b""]):
            if parser.feed(piece):
                surplus = parser.surplus + b"".join(pieces[place + 1 :])
                break
    except BrokenAnswerError as error:
        failure = error.failure
    return parser.status, parser.headers, parser.version, parser.body, surplus, parser.is_kept, failure


def expect_same_as_h11(monkeypatch: pytest.MonkeyPatch, cases: list[list[bytes]], method: str = "POST") -> None:
    found = [parse(case, method) for case in cases]
    monkeypatch.setattr(http_answer, "_PLAIN_HEAD", NEVER)
    assert found == [parse(case, method) for case in cases]


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_a_cut_answer_is_parsed_as_by_h11(answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    cuts = [[answer[:place], answer[place:]] for place in range(1, len(answer))]
    expect_same_as_h11(monkeypatch, [[answer], *cuts, *[[first] for first, _ in cuts]])


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_a_changed_answer_is_parsed_as_by_h11(answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = random.Random(0)
    changed = []
    for _ in range(500):
        octets = bytearray(answer)
        place = drawn.randrange(len(octets))
        octets[place : place + drawn.randrange(2)] = drawn.choice([b"", b"\r", b"\n", b" ", b":", b"\0", b"\xe9", b"9"])
        changed.append([bytes(octets)])
    expect_same_as_h11(monkeypatch, changed)


def test_an_answer_to_head_has_no_body(monkeypatch: pytest.MonkeyPatch) -> None:
    expect_same_as_h11(monkeypatch, [[make_head(200, length=2)]], "HEAD")


def test_plain_answers_do_not_need_h11(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(http_answer, "build_h11_parser")
    for name in ("plain", "kept-by-name"):
        answer = ANSWERS[name]
        head, body = answer.partition(b"\r\n\r\n")[::2]
        assert parse([head + b"\r\n\r\n", body[:1], body[1:]])[3] == body
