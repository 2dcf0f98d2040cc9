"""The socket of a gRPC connection: how it is made, with TLS or without, and what goes out by a point in time."""

from __future__ import annotations

import socket
import ssl
import time

from conformance.transport.settings import Settings
from conformance.transport.unreachable import UnreachableError, is_about_trust


def connect(settings: Settings) -> socket.socket:
    """Return a socket that is connected, through TLS where the target has that.

    Raises:
        Unreachable: it cannot be connected, or whoever answers cannot be trusted.
    """
    address = settings.grpc_address
    try:
        context = _context(settings) if address.tls else None
        plain = socket.create_connection((address.host, address.port), settings.timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return context.wrap_socket(plain, server_hostname=address.host) if context else plain
    except OSError as error:
        raise UnreachableError(
            f"cannot connect to {address.url}: {error}",
            is_untrusted=is_about_trust(error),
            is_refused=isinstance(error, ConnectionRefusedError),
        ) from error


def _context(settings: Settings) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.ca_file)
    context.set_alpn_protocols(["h2"])
    if settings.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def send_until(connection: socket.socket, octets: bytes, until: float) -> None:
    """Send all bytes, piece by piece: `sendall` begins to count anew with each record of TLS.

    Args:
        connection: the socket.
        octets: what to send.
        until: when it has to be done, on the monotonic clock.

    Raises:
        TimeoutError: the other side does not take them in time.
        OSError: the connection broke.
    """
    left = memoryview(octets)
    while left:
        connection.settimeout(seconds_until(until))
        left = left[connection.send(left) :]


def seconds_until(until: float) -> float:
    """Return how long it is until then.

    Raises:
        TimeoutError: it is over.
    """
    seconds = until - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds
