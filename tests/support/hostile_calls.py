"""Calls of a gRPC server that acts as a test tells it, frame by frame; see that nothing is left of them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from conformance.transport.exchange import Reply
from conformance.transport.grpc_client import GrpcClient
from conformance.transport.settings import make_settings
from conformance.wire.grpc_request import GRPC_METHOD
from conformance.wire.request import Message
from tests.support.http2_frames import ANSWER_HEADERS, Peer, answer, headers
from tests.support.scripted_server import serve_scripts

WAIT_BUDGET_S = 1.0
MAX_CALL_S = 10.0  # seconds; many times what it takes, for a busy machine
CALL = Message("/inference.GRPCInferenceService/ModelInfer", body=bytes(1000), method=GRPC_METHOD)
HTML = (":status", "200"), ("content-type", "text/html")
Act = Callable[[Peer], None]


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """See that no thread and no descriptor is left; what an earlier test left may end meanwhile."""
    threads, descriptors = set(threading.enumerate()), _list_descriptors()
    yield
    assert set(threading.enumerate()) <= threads
    assert _list_descriptors() <= descriptors


def _list_descriptors() -> set[tuple[str, str]]:
    """Return the numbers of the descriptors of this process, and what they lead to: each socket is named apart."""
    found = set()
    with os.scandir("/proc/self/fd") as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                found.add((entry.name, os.readlink(entry)))
    return found


def make_call(act: Act, *, timeout: float = WAIT_BUDGET_S) -> Reply:
    """Make a call of a server whose connections all act as told."""
    with serve_scripts(lambda connection: act(Peer(connection))) as url:
        client = GrpcClient(make_settings("", grpc=url.removeprefix("http://"), timeout=timeout))
        reply = Reply(client.send(CALL))
        client.close()
    return reply


def answer_with_trailers(*trailers: tuple[str, str]) -> Act:
    """Return an answer with such trailers."""

    def act(peer: Peer) -> None:
        peer.send(answer(peer.call(), said=trailers))
        peer.wait()

    return act


def begin_answer(*pairs: tuple[str, str], ends: bool = True) -> Act:
    """Return an answer that begins with such headers, and ends well or not at all."""

    def act(peer: Peer) -> None:
        stream = peer.call()
        peer.send(answer(stream, before=pairs or ANSWER_HEADERS) if ends else headers(stream, *pairs, end=True))
        peer.wait()

    return act
