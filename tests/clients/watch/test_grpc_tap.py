"""What is read along on a connection of gRPC, and that a call through it is the call that it is without."""

from __future__ import annotations

import gzip
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from typing import Any

import grpc
import pytest

from conformance.clients.recording.grpc_frames import MessageSplitter, decompress_message
from conformance.clients.recording.grpc_tap import GrpcTap
from conformance.clients.recording.recorder import Recorder, Store
from tests.support.bare_requests import read_to_end, send_and_read
from tests.support.grpc_serving import PATH, TIMEOUT, GrpcConnection, connect, parse_message, serve
from tests.support.recorder import ListenerLog, run_recorder
from tests.support.scripted_server import serve_scripts

REQUEST = """
    model_name: "identity_int32" id: "a" inputs { name: "INPUT" datatype: "INT32" shape: 2 }
    raw_input_contents: "\\001\\000\\000\\000\\002\\000\\000\\000"
"""
OCTETS = parse_message("ModelInferRequest", REQUEST).SerializeToString()


@pytest.fixture(scope="module")
def direct() -> Iterator[GrpcConnection]:
    with serve() as opened:
        yield opened


@pytest.fixture
def notes() -> ListenerLog:
    return ListenerLog()


@pytest.fixture
def watched(direct: GrpcConnection, notes: ListenerLog) -> Iterator[GrpcConnection]:
    with run_recorder(f"grpc://{direct.address}", notes) as (host, port), connect(f"{host}:{port}") as opened:
        yield opened


def test_a_call_is_recorded_with_its_answer(watched: GrpcConnection, notes: ListenerLog) -> None:
    answer = watched.exchange(f"{PATH}ModelInfer", OCTETS, metadata=(("x-a", "1"), ("authorization", "Bearer sesame")))
    (one,) = notes.asked_for
    assert one.received.body == OCTETS
    assert one.received.path == f"{PATH}ModelInfer"
    assert one.received.is_inference
    assert one.received.header("x-a") == "1"
    assert one.received.header("authorization") == "..."
    assert (one.received.header("user-agent") or "").startswith("grpc-python/")
    watched.channel.close()
    assert one.answer is not None
    assert (one.answer.code, one.answer.status, one.answer.body) == ("OK", 200, answer)


def test_a_refusal_comes_with_its_code_and_message(
    direct: GrpcConnection, watched: GrpcConnection, notes: ListenerLog
) -> None:
    def refused(connection: GrpcConnection) -> tuple[Any, str]:
        with pytest.raises(grpc.RpcError) as info:
            connection.exchange(f"{PATH}ModelInfer", b"")
        return info.value.code(), info.value.details()

    assert refused(watched) == refused(direct)
    notes.wait_for_answers(1)
    (one,) = notes.answers
    assert one.answer is not None
    assert one.answer.code == refused(direct)[0].name
    assert one.answer.details == refused(direct)[1]


@contextmanager
def handled(handler: Any) -> Iterator[str]:
    """Serve every method by one handler; yields the URL."""

    class Handler(grpc.GenericRpcHandler):  # type: ignore[misc]
        def service(self, details: Any) -> Any:
            return handler(details)

    server = grpc.server(ThreadPoolExecutor(2), handlers=(Handler(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"grpc://127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def test_a_stream_is_recorded_message_by_message(notes: ListenerLog) -> None:
    def echo(_: Any) -> Any:
        return grpc.stream_stream_rpc_method_handler(lambda messages, _: (b"re: " + one for one in messages))

    with handled(echo) as url, run_recorder(url, notes) as (host, port), connect(f"{host}:{port}") as opened:
        call = opened.channel.stream_stream(f"{PATH}ModelStreamInfer")
        assert list(call(iter([b"one", b"two"]), timeout=TIMEOUT)) == [b"re: one", b"re: two"]
    assert [one.received.body for one in notes.asked_for] == [b"one", b"two"]
    assert all(one.received.is_inference for one in notes.asked_for)
    assert [one.answer.body for one in notes.answers if one.answer] == [b"re: one", b"re: two"]


def test_a_compressed_message_is_recorded_plain(watched: GrpcConnection, notes: ListenerLog) -> None:
    with grpc.insecure_channel(watched.address, compression=grpc.Compression.Gzip) as channel:
        request = parse_message("ModelInferRequest", REQUEST)
        request.raw_input_contents[0] = bytes(4000)
        request.inputs[0].shape[0] = 1000
        channel.unary_unary(f"{PATH}ModelInfer")(request.SerializeToString(), timeout=TIMEOUT)
    assert notes.asked_for[-1].received.body == request.SerializeToString()
    assert notes.asked_for[-1].received.header("grpc-encoding") == "gzip"


def test_deadline_and_metadata_reach_the_server(notes: ListenerLog) -> None:
    seen: list[dict[str, Any]] = []

    def handler(details: Any) -> Any:
        def answer(_: bytes, context: Any) -> bytes:
            seen.append({**dict(details.invocation_metadata), "left": context.time_remaining()})
            context.send_initial_metadata((("x-first", "1"),))
            context.set_trailing_metadata((("x-last", "2"), ("x-last-bin", b"\0\xff")))
            return b"any bytes"

        return grpc.unary_unary_rpc_method_handler(answer)

    with handled(handler) as url, run_recorder(url, notes) as (host, port), connect(f"{host}:{port}") as opened:
        call = opened.channel.unary_unary("/any.Service/Method").with_call
        answer, ended = call(b"\0\1", timeout=TIMEOUT, metadata=(("x-a", "b"), ("x-bin", b"\0\xff")))
        notes.wait_for_answers(1)
    assert answer == b"any bytes"
    assert ("x-first", "1") in [tuple(pair) for pair in ended.initial_metadata()]
    assert {"x-last": "2", "x-last-bin": b"\0\xff"}.items() <= dict(ended.trailing_metadata()).items()
    assert (seen[0]["x-a"], seen[0]["x-bin"]) == ("b", b"\0\xff")
    assert seen[0]["left"] <= TIMEOUT * 1.02  # gRPC rounds a timeout up when it sends it
    assert [one.received.is_inference for one in notes.asked_for] == [False]


def test_http1_on_grpc_port_is_forwarded_and_not_recorded() -> None:
    arrived: list[bytes] = []

    def script(connection: socket.socket) -> None:
        arrived.append(read_to_end(connection))
        connection.sendall(b"HTTP/1.1 400 Bad\r\n\r\n")

    notes = ListenerLog()
    with serve_scripts(script) as url, run_recorder(url.replace("http", "grpc"), notes) as address:
        assert send_and_read(address, b"POST / HTTP/1.1\r\n\r\n") == b"HTTP/1.1 400 Bad\r\n\r\n"
    assert arrived == [b"POST / HTTP/1.1\r\n\r\n"]
    assert len(notes.reasons) == 1
    assert notes.asked_for == []


def frames(*parts: tuple[int, int, int, bytes]) -> bytes:
    """Return frames: type, flags, stream, payload."""
    return b"".join(
        len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload
        for kind, flags, stream, payload in parts
    )


def test_continued_headers_padding_and_empty_messages_are_read_in_single_bytes() -> None:
    block = b"\x00\x05:path\x08/M/Infer"
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    sent = preface + frames(
        (4, 0, 0, b""),
        (1, 0, 1, block[:4]),
        (9, 4, 1, block[4:]),
        (0, 8, 1, b"\x03" + b"\0\0\0\0\0" + b"\0\0\0\0\2a" + b"pad"),
        (0, 1, 1, b"b"),
    )
    notes = ListenerLog()
    tap = GrpcTap(Recorder(notes, Store(), count(1)))
    for byte in sent:
        tap.read_from_client(bytes([byte]))
    tap.handle_end()
    assert [(one.received.path, one.received.body) for one in notes.asked_for] == [
        ("/M/Infer", b""),
        ("/M/Infer", b"ab"),
    ]
    assert [one.answer.status for one in notes.answers if one.answer] == [None, None]


def test_what_a_client_says_after_the_server_has_ended_is_recorded_too() -> None:
    sent = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frames((1, 4, 1, b"\x00\x05:path\x0b/ModelInfer")),
        frames((0, 0, 1, b"\0\0\0\0\2ab")),
        frames((0, 1, 1, b"\0\0\0\0\1c")),
    ]
    refused = frames((1, 5, 1, b"\x88\x00\x0bgrpc-status\x0212"))
    for place in range(4):
        notes = ListenerLog()
        tap = GrpcTap(Recorder(notes, Store(), count(1)))
        for number, piece in enumerate([*sent, b""]):
            if number == place:
                tap.read_from_server(refused)
            tap.read_from_client(piece)
        tap.handle_end()
        assert [one.received.body for one in notes.asked_for] == [b"ab", b"c"]
        codes = [one.answer.code for one in notes.answers if one.answer]
        assert codes == (["UNIMPLEMENTED"] * 2 if place else ["", ""])  # before the call there is none to be answered


def test_a_message_that_is_too_long_is_not_kept() -> None:
    store = Store(max_body_bytes=3)
    messages = MessageSplitter(store)
    data = b"\0\0\0\0\4abcd\0\0\0\0\3abc"
    found = [body for at in range(len(data)) for _, body in messages.feed(data[at : at + 1])]
    assert [(body.is_whole, body.release()) for body in found] == [(False, b""), (True, b"abc")]
    assert decompress_message(gzip.compress(b"abcd"), "gzip", 3) is None
    assert decompress_message(gzip.compress(b"abc"), "gzip", 4) == b"abc"
    assert decompress_message(b"no gzip", "gzip", 4) is None
    assert decompress_message(b"abc", "snappy", 4) is None
