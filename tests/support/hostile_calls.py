"""Calls of a gRPC server that acts as a test tells it, frame by frame; see that nothing is left of them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator

import pytest

from conformance.transport.exchange import Reply
from conformance.transport.grpc_client import GrpcClient
from conformance.transport.settings import make
from conformance.wire.grpc_request import GRPC_METHOD
from conformance.wire.request import Message
from tests.support.http2_frames import OK, Peer, answer, headers
from tests.support.scripted import scripted

PATIENCE = 1.0
LIMIT = 10.0  # seconds; many times what it takes, for a busy machine
CALL = Message("/inference.GRPCInferenceService/ModelInfer", body=bytes(1000), method=GRPC_METHOD)
HTML = (":status", "200"), ("content-type", "text/html")
Act = Callable[[Peer], None]


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """See that no thread and no descriptor is left."""
    before = threading.active_count(), len(os.listdir("/proc/self/fd"))
    yield
    assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == before


def called(act: Act, *, timeout: float = PATIENCE) -> Reply:
    """Make a call of a server whose connections all act as told."""
    with scripted(lambda connection: act(Peer(connection))) as url:
        client = GrpcClient(make("", grpc=url.removeprefix("http://"), timeout=timeout))
        reply = Reply(client.send(CALL))
        client.close()
    return reply


def said(*trailers: tuple[str, str]) -> Act:
    """Return an answer with such trailers."""

    def act(peer: Peer) -> None:
        peer.send(answer(peer.call(), said=trailers))
        peer.wait()

    return act


def begun(*pairs: tuple[str, str], ends: bool = True) -> Act:
    """Return an answer that begins with such headers, and ends well or not at all."""

    def act(peer: Peer) -> None:
        stream = peer.call()
        peer.send(answer(stream, before=pairs or OK) if ends else headers(stream, *pairs, end=True))
        peer.wait()

    return act
