"""The command that repeats a request sends what the suite sent, whatever row sent it; or there is no command."""

from __future__ import annotations

import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import h11
import pytest

from conformance.judging.repeat_command import build_repeat_command, has_long_body
from conformance.judging.reproduction import Reproduction, build_reproduction
from conformance.judging.selection import list_profile_rows
from conformance.judging.session import Session
from conformance.transport.exchange import Call, Exchange
from conformance.transport.send_options import SendOptions
from conformance.transport.settings import Settings
from conformance.transport.target import Target
from conformance.wire.request import Message
from tests.support.sampling import judge_sample
from tests.support.servers import run_bundled

# Headers that the suite and curl add by themselves; the values of others are compared.
USUAL = ("host", "accept", "user-agent", "accept-encoding", "content-length")
# Requests that no row sends alone.
OTHERS = (
    (Message("/v2", method="HEAD"), SendOptions()),
    (Message("/v2/models/a/../[b]/{c}", method="OPTIONS"), SendOptions()),
    (Message("/v2", (("X", "1"),), b'{"it\'s": "$HOME `x`"}', "GET"), SendOptions(closing=True)),
)


@pytest.fixture(scope="module")
def kinds() -> list[Reproduction]:
    """Each kind of request that rows send, once: by method, headers, odd characters, length and options."""
    found: dict[Any, Reproduction] = {}
    calls: list[Call] = []
    with run_bundled() as url, Session(Target(Settings(url))) as session:
        session.discover()
        session.target.journal = calls.append
        for _ in judge_sample(session, list_profile_rows("certify")):
            sent = [one for call in calls for one in call.exchanges]
            for one in sent:
                steps = build_reproduction(one, sent)
                found.setdefault(_describe_kind(one, len(steps) > 1, len(steps[-1]) > 1), steps)
            calls.clear()
    return [*found.values(), *([[Exchange(0, one, url + one.path, send_options=how)]] for one, how in OTHERS)]


def _describe_kind(one: Exchange, *more: bool) -> tuple[object, ...]:
    message, chunked = one.message, one.send_options.chunked
    options = replace(one.send_options, segments=one.send_options.segments[:1], chunked=chunked and chunked[:1])
    names = frozenset(name.lower() for name, _ in message.headers)
    odd = frozenset("[]{}?#%.") & frozenset(message.path)
    return message.method, names, odd, len(message.body).bit_length() // 5, options, bool(one.note), *more


def _receive(listener: socket.socket, command: str) -> tuple[h11.Request, bytes]:
    """Run a command; return the head that it sends, and the bytes after the head."""
    with subprocess.Popen(["bash", "-c", command], stdout=subprocess.DEVNULL) as process:
        connection, _ = listener.accept()
        with connection:
            parser, received, head = h11.Connection(h11.SERVER), b"", None
            while not isinstance(event := parser.next_event(), h11.EndOfMessage):
                if isinstance(event, h11.Request):
                    head = event
                if event is not h11.NEED_DATA:
                    continue
                if parser.they_are_waiting_for_100_continue:
                    connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                    parser.send(h11.InformationalResponse(status_code=100, headers=[]))
                piece = connection.recv(65536)
                assert piece, command
                received += piece
                parser.receive_data(piece)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        assert process.wait(10) == 0, command
    assert head is not None
    return head, received.partition(b"\r\n\r\n")[2]


def _list_own_headers(headers: Iterator[tuple[str, str]], message: Message) -> Counter[tuple[str, str]]:
    """Count the headers but for those that only the sender's client adds."""
    given = {name.lower() for name, _ in message.headers}
    return Counter((name.lower(), value.strip()) for name, value in headers if name.lower() in given or
                   name.lower() not in USUAL)  # fmt: skip


def test_a_command_sends_the_bytes_of_the_suite(kinds: list[Reproduction], tmp_path: Path) -> None:
    file, methods, framings = tmp_path / "body.bin", set[str](), set[SendOptions]()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        settings = Settings(f"http://127.0.0.1:{listener.getsockname()[1]}")
        for steps in kinds:
            one = steps[-1][0]
            message, options, url = one.message, one.send_options, urlsplit(one.url)
            there = replace(one, url=one.url.replace(f"{url.scheme}://{url.netloc}", settings.url, 1))
            file.write_bytes(message.body)
            command = build_repeat_command(
                [*steps[:-1], [there, *steps[-1][1:]]], settings, str(file) if has_long_body(message) else None
            )
            if not command:
                continue
            head, body = _receive(listener, command)
            sent = iter(message.headers)
            chunked = options.chunked is not None
            expected = _list_own_headers(sent, message)
            expected += Counter([("transfer-encoding", "chunked")] if chunked else [])
            expected += Counter([("connection", "close")] if options.closing else [])
            got = _list_own_headers(((n.decode("latin-1"), v.decode("latin-1")) for n, v in head.headers), message)
            chunk = b"%x\r\n%s\r\n" % (len(message.body), message.body) if message.body else b""
            assert (head.method.decode(), head.target.decode("latin-1"), head.http_version.decode()) == (
                message.method, message.path, options.version,
            ), command  # fmt: skip
            assert got == expected, command
            assert body == (chunk + b"0\r\n\r\n" if chunked else message.body), command
            methods.add(message.method)
            framings.add(options)
    assert {"GET", "POST", "HEAD"} <= methods
    assert {SendOptions(), SendOptions(chunked=())} <= framings
