"""How gRPC calls are made: what is sent with them, what counts as an answer, and every way in which none comes."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme

from conformance.transport.exchange import Reply
from conformance.transport.grpc_client import GrpcClient
from conformance.transport.http_request import USER_AGENT
from conformance.transport.settings import (
    DEADLINE_TIMEOUTS,
    GrpcAddress,
    Settings,
    SettingsError,
    make_settings,
    parse_grpc_address,
)
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLostError, UnreachableError
from conformance.wire.grpc_request import GRPC_METHOD
from conformance.wire.request import Message
from tests.support.scripted_server import serve_scripts
from tests.support.servers import reserve_closed_port

Answer = Callable[[bytes, Any], bytes]
ASK = Message("/inference.GRPCInferenceService/ServerLive", body=b"abc", method=GRPC_METHOD)


class _Handler:
    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def service(self, _: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(self.answer)


@contextmanager
def serving(answer: Answer, credentials: Any = None) -> Iterator[str]:
    """Answer every call with a function of its bytes and context; yields host:port."""
    server = grpc.server(ThreadPoolExecutor(2), options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((_Handler(answer),))
    place = "127.0.0.1:0"
    port = server.add_insecure_port(place) if credentials is None else server.add_secure_port(place, credentials)
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def refusing(code: grpc.StatusCode, details: str) -> Answer:
    def answer(_: bytes, context: Any) -> bytes:
        context.set_trailing_metadata((("why", "because"),))
        context.abort(code, details)
        raise AssertionError

    return answer


def asked(address: str, *headers: str, **settings: Any) -> Reply:
    """Make one call and return its reply."""
    client = GrpcClient(make_settings("", headers, grpc=address, timeout=settings.pop("timeout", 3.0), **settings))
    try:
        return Reply(client.send(ASK))
    finally:
        client.close()


# --- answers ---------------------------------------------------------------------------------------------------------


def test_bytes_go_through_as_they_are() -> None:
    with serving(lambda request, _: request[::-1] + b"\xff") as address:
        reply = asked(address)
    assert (reply.status, reply.exchange.code, reply.body, reply.succeeded) == (200, "OK", b"cba\xff", True)
    assert reply.exchange.url == f"grpc://{address}/inference.GRPCInferenceService/ServerLive"


@pytest.mark.parametrize(
    ("code", "status", "told"),
    [
        ("INVALID_ARGUMENT", 400, "INVALID_ARGUMENT: no such output"),
        ("NOT_FOUND", 404, "NOT_FOUND: no such output"),
        ("INTERNAL", 500, "INTERNAL: no such output"),
        ("UNIMPLEMENTED", 501, "UNIMPLEMENTED: no such output"),
        ("UNAVAILABLE", 503, "UNAVAILABLE: no such output"),
        ("RESOURCE_EXHAUSTED", 429, "RESOURCE_EXHAUSTED: no such output"),
    ],
)
def test_a_status_of_the_server_is_an_answer(code: str, status: int, told: str) -> None:
    with serving(refusing(grpc.StatusCode[code], "no such output")) as address:
        reply = asked(address)
    assert (reply.status, reply.exchange.failure, reply.outcome()) == (status, None, told)
    assert reply.header("why") == "because"
    assert not reply.succeeded


def test_large_messages_pass() -> None:
    with serving(lambda *_: bytes(5_000_000)) as address:
        assert len(asked(address).body) == 5_000_000


def test_a_message_that_is_refused_before_it_was_read_has_a_status() -> None:
    with serving(lambda *_: b"") as address:  # grpcio takes 4 MiB
        client = GrpcClient(make_settings("", grpc=address, timeout=3.0))
        replies = [Reply(client.send(message)) for message in (ASK.with_body(bytes(5_000_000)), ASK)]
        client.close()
    assert [reply.status_line for reply in replies] == ["RESOURCE_EXHAUSTED", "OK"]


def test_two_large_answers_come_in_turns_where_they_are_read_late() -> None:
    with serving(lambda request, _: request * 1_000_000) as address:
        target = Target(make_settings("", grpc=address, timeout=3.0))
        replies = target.send_together([ASK, ASK.with_body(b"xyz")], reads_late=True)
        target.close()
    assert [(reply.body[:3], len(reply.body)) for reply in replies] == [(b"abc", 3_000_000), (b"xyz", 3_000_000)]
    assert replies[0].exchange.note.endswith("read through windows of 65535 bytes")


# --- what goes with a call -------------------------------------------------------------------------------------------


def test_headers_are_metadata_and_host_is_the_authority() -> None:
    seen: list[Any] = []

    def answer(_: bytes, context: Any) -> bytes:
        seen.append(dict(context.invocation_metadata()))
        seen.append(context.time_remaining())
        return b""

    with serving(answer) as address:
        asked(address, "Authorization: Bearer t", "X-Tenant: A b", "Host: models.example")
    assert seen[0]["authorization"] == "Bearer t"
    assert seen[0]["x-tenant"] == "A b"
    assert seen[0]["user-agent"].startswith(USER_AGENT)
    assert "host" not in seen[0]
    assert 3 < seen[1] <= 3 * DEADLINE_TIMEOUTS  # that of a whole call


def test_a_header_that_is_no_metadata_is_an_error_of_settings() -> None:
    with pytest.raises(SettingsError, match="--target-header 'X-What' cannot be sent over gRPC"):
        make_settings("", ["X-What: \xe9"], grpc="host:1")
    assert make_settings("http://host:1", ["X-What: \xe9"]).headers == (("X-What", "\xe9"),)


# --- no answer -------------------------------------------------------------------------------------------------------


def test_closed_port_is_unreachable_over_grpc() -> None:
    with reserve_closed_port() as port, pytest.raises(UnreachableError, match=f"cannot connect to grpc://.*:{port}: "):
        asked(f"127.0.0.1:{port}")


def test_a_deadline_ends_the_wait() -> None:
    over = threading.Event()

    def answer(*_: Any) -> bytes:
        over.wait(60.0)
        return b""

    with serving(answer) as address:
        reply = asked(address, timeout=1.0)
        over.set()
    assert (reply.status, reply.outcome()) == (None, "no answer within 1 s")


def test_a_cancelled_call_leaves_the_connection_open() -> None:
    with serving(lambda octets, _: octets) as address:
        client = GrpcClient(make_settings("http://127.0.0.1:1", grpc=address))
        first = client.send(ASK)
        cancelled = client.cancel(ASK)
        after = client.send(ASK.with_body(b"next"))
        client.close()
    assert (cancelled.status, str(cancelled.failure)) == (None, "cancelled by the client")
    assert (after.status, after.body) == (200, b"next")
    assert first.connection == cancelled.connection == after.connection


def test_a_server_that_dies_of_a_call_broke_the_connection() -> None:
    def die(connection: socket.socket) -> None:
        connection.sendall(bytes.fromhex("000000 04 00 00000000"))  # empty SETTINGS
        received = b""
        while ASK.body not in received:  # preface, settings and the call may come apart
            received += connection.recv(65536)

    with serve_scripts(die) as url:
        reply = asked(url.removeprefix("http://"))
    assert reply.status is None
    assert reply.outcome().startswith("connection broken (")


def test_a_lost_target_is_given_time_to_come_back() -> None:
    started = time.monotonic()
    with reserve_closed_port() as port:
        target = Target(make_settings("", grpc=f"127.0.0.1:{port}", timeout=0.5))
        with pytest.raises(TargetLostError, match="cannot connect"):
            target.send(ASK)
    assert time.monotonic() - started >= 0.5
    assert target.lost
    target.close()


def test_a_gateway_whose_server_is_gone_is_a_lost_target() -> None:
    calls = itertools.count()

    def refuse(_: bytes, context: Any) -> bytes:
        time.sleep(0.4 * (next(calls) == 3))  # a busy host: longer than a short wait
        return refusing(grpc.StatusCode.UNAVAILABLE, "upstream connect error")(_, context)

    with serving(refuse) as address:
        target = Target(make_settings("", grpc=address, timeout=2.0))
        with pytest.raises(TargetLostError, match="answers everything with UNAVAILABLE"):
            target.send(ASK)
        target.close()


# --- TLS -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def credentials(authority: trustme.CA, name: str) -> Any:
    certificate = authority.issue_cert(name)
    chain = b"".join(blob.bytes() for blob in certificate.cert_chain_pems)
    return grpc.ssl_server_credentials([(certificate.private_key_pem.bytes(), chain)])


def test_tls_is_verified(authority: trustme.CA, tmp_path: Path) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with serving(lambda *_: b"secret", credentials(authority, "127.0.0.1")) as address:
        assert asked(f"grpcs://{address}", ca_file=str(tmp_path / "ca.pem")).body == b"secret"
        with pytest.raises(UnreachableError) as error:
            asked(f"grpcs://{address}", timeout=1.0)
    assert error.value.is_untrusted


@pytest.mark.parametrize("name", ["127.0.0.1", "another.example"])
def test_insecure_setting_skips_tls_verification(authority: trustme.CA, name: str) -> None:
    with serving(lambda *_: b"secret", credentials(authority, name)) as address:
        assert asked(f"grpcs://{address}", insecure=True).body == b"secret"


# --- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "address", "url"),
    [
        ("host:8001", GrpcAddress("host", 8001), "grpc://host:8001"),
        ("grpc://10.0.0.1:1", GrpcAddress("10.0.0.1", 1), "grpc://10.0.0.1:1"),
        ("grpcs://host:443", GrpcAddress("host", 443, tls=True), "grpcs://host:443"),
        ("[::1]:8001", GrpcAddress("::1", 8001), "grpc://[::1]:8001"),
    ],
)
def test_an_address(text: str, address: GrpcAddress, url: str) -> None:
    assert (parse_grpc_address(text), parse_grpc_address(text).url) == (address, url)


@pytest.mark.parametrize(
    "text", ["host", ":8001", "http://host:1", "host:port", "host:99999", "host:1/path", "u@host:1"]
)
def test_invalid_grpc_address_is_settings_error(text: str) -> None:
    with pytest.raises(SettingsError, match="give HOST:PORT, or grpcs://HOST:PORT for TLS"):
        parse_grpc_address(text)


@pytest.mark.parametrize(
    ("settings", "transports"),
    [
        (Settings("http://h:1"), ("http",)),
        (make_settings("http://h:1", grpc="h:2"), ("http", "grpc")),
        (make_settings("", grpc="h:2"), ("grpc",)),
    ],
)
def test_transports(settings: Settings, transports: tuple[str, ...]) -> None:
    assert settings.transports == transports
