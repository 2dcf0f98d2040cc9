"""Starts the reference server as a process and talks to it in plain bytes: a test says exactly what was sent."""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.support.programs import read_line, start_program

TIMEOUT = 10.0
HEADER = "inference-header-content-length"


@dataclass(frozen=True)
class Answer:
    """A response; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Server:
    """A running server."""

    url: str
    process: subprocess.Popen[str]

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return host, int(port)

    @contextmanager
    def connection(self) -> Iterator[socket.socket]:
        with socket.create_connection(self.address, TIMEOUT) as connection:
            yield connection

    def exchange(self, octets: bytes, method: str = "POST") -> Answer:
        """Send one request on a connection of its own."""
        with self.connection() as connection:
            connection.sendall(octets)
            return read_answer(connection, method)

    def infer(self, model: str, body: bytes, header: str | None = None) -> Answer:
        """Send an inference request; `header` is the value of Inference-Header-Content-Length."""
        return self.exchange(make_infer_request(model, body, header))

    def infer_binary(self, model: str, json_part: bytes, tail: bytes = b"") -> Answer:
        """Send an inference request with the header that belongs to its JSON."""
        return self.infer(model, json_part + tail, str(len(json_part)))


def make_infer_request(model: str, body: bytes, header: str | None = None) -> bytes:
    """Return an inference request as it goes over the wire."""
    lines = [f"POST /v2/models/{model}/infer HTTP/1.1", "Host: test", f"Content-Length: {len(body)}"]
    if header is not None:
        lines.append(f"Inference-Header-Content-Length: {header}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def read_answer(connection: socket.socket, method: str = "POST") -> Answer:
    """Read one response; what follows it is lost, so this is for connections with one response under way."""
    with http.client.HTTPResponse(connection, method=method) as response:
        response.begin()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, headers, response.read())


@contextmanager
def run_server(*options: str) -> Iterator[Server]:
    """Start a server on a free port and stop it afterwards."""
    command = [sys.executable, "-m", "reference_server", "--port", "0", *options]
    with start_program(command, stderr=subprocess.PIPE) as process:
        yield Server(read_line(process), process)
