"""A recording peer in this process, with a listener that keeps what it is told, and clients that send bare bytes."""

from __future__ import annotations

import json
import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from conformance.clients.recording.grpc_tap import GrpcTap
from conformance.clients.recording.http_tap import HttpTap
from conformance.clients.recording.proxy import Proxy, Route
from conformance.clients.recording.recorded import Recorded
from conformance.clients.recording.upstream import Upstream

TIMEOUT = 10.0
PATH = "/v2/models/identity_int32/infer"
DESCRIBED = {"name": "INPUT", "datatype": "INT32", "shape": [4]}
JSON_PART = json.dumps({"inputs": [{**DESCRIBED, "parameters": {"binary_data_size": 16}}]}).encode()
TENSOR = struct.pack("<4i", 1, 2, 3, 4)
BINARY = JSON_PART + TENSOR


class Notes:
    """A listener that keeps what it is told."""

    def __init__(self) -> None:
        self.asked_for: list[Recorded] = []
        self.answers: list[Recorded] = []
        self.reasons: list[str] = []

    def asked(self, recorded: Recorded) -> None:
        self.asked_for.append(recorded)

    def answered(self, recorded: Recorded) -> None:
        self.answers.append(recorded)

    def unread(self, why: str) -> None:
        self.reasons.append(why)


@contextmanager
def recording(url: str, notes: Notes, tls: ssl.SSLContext | None = None) -> Iterator[tuple[str, int]]:
    """Record what goes to a server; yields the address. `url` begins with grpc where it is one of gRPC."""
    parts = urlsplit(url)
    upstream = Upstream(parts.hostname or "", parts.port or 0, tls=tls, url=url)
    proxy = Proxy([Route(0, upstream, GrpcTap if parts.scheme == "grpc" else HttpTap)])
    proxy.listen()
    proxy.serve(notes)
    try:
        yield "127.0.0.1", proxy.ports[0]
    finally:
        proxy.close()
    assert proxy.fault is None


def request(body: bytes = BINARY, *headers: str, path: str = PATH, length: int | None = None) -> bytes:
    """Return a request as it goes over the wire; with an honest header where the body is binary data."""
    lines = [f"POST {path} HTTP/1.1", "Host: h", f"Content-Length: {len(body) if length is None else length}"]
    if body.startswith(JSON_PART) and not any("inference-header" in header.lower() for header in headers):
        lines += [f"Inference-Header-Content-Length: {len(JSON_PART)}"]
    if not any(header.lower().startswith("content-type") for header in headers):
        lines += ["Content-Type: application/octet-stream"]
    return "\r\n".join([*lines, *headers, "", ""]).encode("latin-1") + body


def said(address: tuple[str, int], *pieces: bytes) -> bytes:
    """Send bytes, close that half, and return all that comes back."""
    with socket.create_connection(address, TIMEOUT) as connection:
        for piece in pieces:
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_WR)
        return heard(connection)


def heard(connection: socket.socket) -> bytes:
    """Return all that comes until the other side ends."""
    found = b""
    while piece := connection.recv(65536):
        found += piece
    return found
