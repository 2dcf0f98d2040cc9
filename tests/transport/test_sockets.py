"""Bytes that go out exactly as told: segments, chunks, several requests on one connection."""

from __future__ import annotations

import socket
import time

import pytest

from conformance.transport.exchange import GoAhead
from conformance.transport.http_client import PersistentConnection
from conformance.transport.http_request import USER_AGENT, split_at_offsets
from conformance.transport.send_options import PLAIN_CHUNKS, ChunkFormat
from conformance.transport.settings import Settings
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLostError
from conformance.wire.request import Message
from tests.support.scripted_server import Script, make_answers, read_request, serve_scripts

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
POST = Message("/v2/models/m/infer", (("X-Id", "1"),), b"abcdef")


def target(url: str) -> Target:
    return Target(Settings(url, timeout=1.0))


def echo(seen: list[bytes]) -> Script:
    def script(connection: socket.socket) -> None:
        while data := read_request(connection):
            seen.append(data)
            connection.sendall(OK + b"%02d" % len(seen))

    return script


def test_body_is_sent_in_pieces() -> None:
    assert split_at_offsets(b"abcdef", [4, 1]) == [b"a", b"bcd", b"ef"]
    assert split_at_offsets(b"abc", [0, 3]) == [b"abc"]
    assert [*PLAIN_CHUNKS.format_chunks([b"x" * 17, b""])] == [b"11\r\n" + b"x" * 17 + b"\r\n", b"0\r\n\r\n"]


def test_segments_arrive_as_one_body() -> None:
    seen: list[bytes] = []
    with serve_scripts(echo(seen)) as url:
        reply = target(url).send_in_pieces(POST, [1, 4])
    assert (reply.status, reply.body) == (200, b"01")
    assert seen[0].startswith(b"POST /v2/models/m/infer HTTP/1.1\r\nHost: 127.0.0.1:")
    assert seen[0].endswith(b"Content-Length: 6\r\nX-Id: 1\r\n\r\nabcdef")
    assert reply.exchange.note == "body in 3 TCP segments, cut at 1 and 4"


def test_chunks_in_another_spelling() -> None:
    spelled = ChunkFormat(";a=b", (("X-Sum", "1"),), capitals=True, zeros=3)
    assert [*spelled.format_chunks([b"x" * 10])] == [
        b"00A;a=b\r\n" + b"x" * 10 + b"\r\n",
        b"000;a=b\r\nX-Sum: 1\r\n\r\n",
    ]
    assert spelled.described == (
        ", with ;a=b after each chunk size, with trailer X-Sum, chunk sizes in capitals, chunk sizes of 3 digits"
    )
    assert PLAIN_CHUNKS.described == ""


def test_chunks_whose_lines_are_in_two_segments() -> None:
    split = ChunkFormat(splits_lines=True)
    assert [*split.format_chunks([b"ab"])] == [b"2", b"\r\nab\r", b"\n", b"0", b"\r\n\r", b"\n"]


def test_chunks() -> None:
    seen: list[bytes] = []
    with serve_scripts(echo(seen)) as url:
        target(url).send_in_pieces(POST, [2], chunks=PLAIN_CHUNKS)
    assert seen[0].endswith(b"Transfer-Encoding: chunked\r\nX-Id: 1\r\n\r\n2\r\nab\r\n4\r\ncdef\r\n0\r\n\r\n")


@pytest.mark.parametrize("pipelined", [False, True])
def test_several_requests_on_one_connection(pipelined: bool) -> None:
    with serve_scripts(echo([]) if not pipelined else _answer_all) as url:
        replies = target(url).send_on_one_connection([POST, POST, POST], pipelined=pipelined)
    assert [reply.body for reply in replies] == [b"01", b"02", b"03"]


def _answer_all(connection: socket.socket) -> None:
    connection.recv(65536)
    connection.sendall(OK + b"01" + OK + b"02" + OK + b"03")


def test_a_closing_server_ends_the_list() -> None:
    closing = b"HTTP/1.1 400 Bad\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    with serve_scripts(make_answers(OK + b"01", closing)) as url:
        replies = target(url).send_on_one_connection([POST, POST, POST])
    assert [reply.status for reply in replies] == [200, 400]


def test_one_of_several_pipelined_bodies_is_chunked() -> None:
    seen: list[bytes] = []
    with serve_scripts(echo(seen)) as url:
        target(url).send_on_one_connection([POST, POST], chunked=[0])
    assert [data.endswith(b"\r\n\r\n6\r\nabcdef\r\n0\r\n\r\n") for data in seen] == [True, False]


HINTS, CONTINUE = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"
EXPECTING = POST.with_header("Expect", "100-continue")


def _until(connection: socket.socket, end: bytes) -> bytes:
    data = b""
    while not data.endswith(end):
        data += connection.recv(65536)
    return data


@pytest.mark.parametrize("first", [CONTINUE, HINTS + CONTINUE])
def test_a_body_is_held_back_until_it_is_asked_for(first: bytes) -> None:
    seen: list[bytes] = []

    def script(connection: socket.socket) -> None:
        _until(connection, b"\r\n\r\n")
        connection.sendall(first)
        seen.append(_until(connection, b"abcdef"))
        connection.sendall(HINTS + OK + b"01")

    with serve_scripts(script) as url:
        reply = target(url).send_after_go_ahead(EXPECTING)
    assert (reply.status, reply.body, reply.exchange.go_ahead) == (200, b"01", GoAhead.GIVEN)
    assert seen == [b"abcdef"]


@pytest.mark.parametrize("final", [HINTS + OK + b"01", OK + b"01"])
def test_a_body_that_is_not_needed_is_not_sent(final: bytes) -> None:
    seen: list[bytes] = []

    def script(connection: socket.socket) -> None:
        _until(connection, b"\r\n\r\n")
        connection.sendall(final)
        seen.append(connection.recv(10))

    with serve_scripts(script) as url:
        reply = target(url).send_after_go_ahead(EXPECTING)
    assert (reply.status, reply.exchange.go_ahead, seen) == (200, GoAhead.NOT_NEEDED, [b""])


def test_body_is_sent_after_wait_without_100_continue() -> None:
    with serve_scripts(echo([])) as url:
        reply = Target(Settings(url, timeout=1.0)).send_after_go_ahead(EXPECTING, chunks=None)
    assert (reply.status, reply.exchange.go_ahead) == (200, GoAhead.WITHHELD)


@pytest.mark.parametrize("data", [b"", b"SSH-2.0-x\r\n"])
def test_invalid_answer_to_head_is_failure(data: bytes) -> None:
    def script(connection: socket.socket) -> None:
        _until(connection, b"\r\n\r\n")
        connection.sendall(data)

    with serve_scripts(script) as url:
        reply = target(url).send_after_go_ahead(EXPECTING)
    assert (reply.status, reply.exchange.go_ahead) == (None, GoAhead.NOT_NEEDED)
    assert reply.exchange.failure is not None


@pytest.mark.parametrize("count", [1, 2])
def test_answers_are_left_unread_for_a_moment(count: int) -> None:
    size, waited = 8_000_000, []

    def script(connection: socket.socket) -> None:
        read_request(connection)
        started = time.monotonic()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + bytes(size))
        waited.append(time.monotonic() - started)

    with serve_scripts(script) as url:
        judged = target(url)
        replies = [judged.send_and_read_late(POST)] if count == 1 else judged.send_together([POST] * 2, reads_late=True)
        judged.close()
    assert [(len(reply.body), reply.exchange.failure) for reply in replies] == [(size, None)] * count
    assert min(waited) > 0.2
    assert len(waited) == count


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_the_version_of_an_answer(version: str) -> None:
    with serve_scripts(make_answers(OK.replace(b"1.1", version.encode()) + b"01")) as url:
        judged = target(url)
        replies = [judged.send(POST), judged.send_in_pieces(POST, [1])]
        judged.close()
    assert [reply.exchange.version for reply in replies] == [f"HTTP/{version}"] * 2


def test_interim_answers_are_passed_over_everywhere() -> None:
    with serve_scripts(make_answers(HINTS + CONTINUE + OK + b"01")) as url:
        judged = target(url)
        replies = [judged.send(POST), judged.send_in_pieces(POST, [1]), *judged.send_on_one_connection([POST])]
        judged.close()
    assert [(reply.status, reply.body) for reply in replies] == [(200, b"01")] * 3


def test_a_request_as_text_has_no_secrets() -> None:
    judged = Target(Settings("http://h:1/base", headers=(("Authorization", "Bearer secret"),)))
    assert judged.render_without_user_headers(POST) == (
        b"POST /base/v2/models/m/infer HTTP/1.1\r\nHost: h:1\r\nUser-Agent: "
        + USER_AGENT.encode()
        + b"\r\nAccept-Encoding: identity\r\nContent-Length: 6\r\nX-Id: 1\r\n\r\nabcdef"
    )


def test_an_answer_to_half_a_request_is_still_read() -> None:
    def refuse_early(connection: socket.socket) -> None:
        connection.recv(10)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1 << 16)

    with serve_scripts(refuse_early) as url:
        assert target(url).send_in_pieces(POST, [1, 2, 3]).status == 413


def test_requests_in_flight_keep_their_order() -> None:
    def reflect(connection: socket.socket) -> None:
        body = read_request(connection)[-2:]
        connection.sendall(OK + body)

    with serve_scripts(reflect) as url:
        messages = [POST.with_body(b"%02d" % number) for number in range(8)]
        judged = target(url)
        replies = judged.send_together(messages)
        judged.close()
    assert [reply.body for reply in replies] == [b"%02d" % number for number in range(8)]
    assert [exchange.number for exchange in judged.exchanges] == list(range(8))


def test_a_connection_that_is_closed_while_idle_is_opened_anew() -> None:
    for script, last in ((echo([]), b"02"), (make_answers(OK + b"01"), b"01")):
        with serve_scripts(script) as url:
            judged = target(url)
            replies = judged.send_after_idling([(POST, POST)], 0.01)
            judged.close()
        assert [reply.body for reply in replies] == [last]
        assert len(judged.exchanges) == 2


def test_a_target_that_is_gone_stays_gone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        judged = Target(Settings(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=0.3))
    for _ in range(2):
        with pytest.raises(TargetLostError, match="cannot connect"):
            judged.get("/v2")
    assert judged.lost is not None


@pytest.mark.parametrize(
    ("surplus", "statuses"),
    [(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", [200, 400]), (b"more", [200, 200])],
    ids=["a-refusal", "other-bytes"],
)
def test_a_second_refusal_is_the_answer_to_the_next_request(surplus: bytes, statuses: list[int]) -> None:
    with serve_scripts(make_answers(OK + b"ok" + surplus, OK + b"ok"), make_answers(OK + b"ok")) as url:
        connection = PersistentConnection(Settings(url, timeout=1.0))
        assert [connection.exchange(POST).status for _ in statuses] == statuses
        connection.close()
