"""Requests as bytes, and how to send them; nothing heavy is here, for clients that a test runs as programs."""

from __future__ import annotations

import json
import socket
import struct

TIMEOUT = 10.0
PATH = "/v2/models/identity_int32/infer"
INPUT_ENTRY = {"name": "INPUT", "datatype": "INT32", "shape": [4]}
JSON_PART = json.dumps({"inputs": [{**INPUT_ENTRY, "parameters": {"binary_data_size": 16}}]}).encode()
TENSOR = struct.pack("<4i", 1, 2, 3, 4)
BINARY = JSON_PART + TENSOR


def make_request(body: bytes = BINARY, *headers: str, path: str = PATH, length: int | None = None) -> bytes:
    """Return a request as it goes over the wire; with an honest header where the body is binary data."""
    lines = [f"POST {path} HTTP/1.1", "Host: h", f"Content-Length: {len(body) if length is None else length}"]
    if body.startswith(JSON_PART) and not any("inference-header" in header.lower() for header in headers):
        lines += [f"Inference-Header-Content-Length: {len(JSON_PART)}"]
    if not any(header.lower().startswith("content-type") for header in headers):
        lines += ["Content-Type: application/octet-stream"]
    return "\r\n".join([*lines, *headers, "", ""]).encode("latin-1") + body


def send_and_read(address: tuple[str, int], *pieces: bytes) -> bytes:
    with socket.create_connection(address, TIMEOUT) as connection:
        for piece in pieces:
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_WR)
        return read_to_end(connection)


def read_to_end(connection: socket.socket) -> bytes:
    found = b""
    while piece := connection.recv(65536):
        found += piece
    return found
