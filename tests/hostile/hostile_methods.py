"""The ways in which the judge sends one request: its client of HTTP, and a socket of its own."""

from __future__ import annotations

from collections.abc import Callable

from conformance.transport import sockets
from conformance.transport.exchange import Exchange
from conformance.transport.http_client import HttpClient
from conformance.transport.settings import Settings
from conformance.wire.request import Message

SendMethod = Callable[[Settings, Message], Exchange]


def send_as_usual(settings: Settings, message: Message) -> Exchange:
    """Send it with the client, and close that."""
    client = HttpClient(settings)
    try:
        return client.send(message)
    finally:
        client.close()


def send_over_bare_socket(settings: Settings, message: Message) -> Exchange:
    """Send it over a socket, in one piece."""
    return sockets.send_in_pieces(settings, message, (), None, at_once=True)
