"""A server that does exactly what a test tells it: one function for each connection, working on the bare socket."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Script = Callable[[socket.socket], None]


def read_request(connection: socket.socket) -> bytes:
    """Read one request whose length its Content-Length says, or up to the last chunk; b"" when the client left."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            return b""
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    lines = [line.split(b":", 1) for line in head.lower().split(b"\r\n")[1:]]
    headers = {name.strip(): value.strip() for name, value in lines}
    if headers.get(b"transfer-encoding") == b"chunked":
        while not body.endswith(b"0\r\n\r\n"):
            body += connection.recv(65536)
    while len(body) < int(headers.get(b"content-length", b"0")):
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def make_answers(*responses: bytes) -> Script:
    """Return a script that answers one request after the other and then closes."""

    def script(connection: socket.socket) -> None:
        for response in responses:
            if not read_request(connection):
                return
            connection.sendall(response)

    return script


@contextmanager
def serve_scripts(*scripts: Script) -> Iterator[str]:
    """Serve connections by scripts, the last one again and again; yields the URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_serve, args=(listener, scripts))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(listener: socket.socket, scripts: tuple[Script, ...]) -> None:
    threads: list[threading.Thread] = []
    with suppress(OSError):
        for number in range(1_000_000):
            connection, _ = listener.accept()
            script = scripts[min(number, len(scripts) - 1)]
            threads.append(threading.Thread(target=_run, args=(script, connection)))
            threads[-1].start()
    for thread in threads:
        thread.join()


def _run(script: Script, connection: socket.socket) -> None:
    with connection, suppress(OSError):
        script(connection)
