"""A proxy that passes all exchanges on but those in which it turns hostile.

    with hostile(upstream, redirects_to_itself, at=number(7)) as url:
        ...

Where requests begin is told by turns: bytes of the client behind bytes of the server begin the next one.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPResponse
from itertools import count
from select import select
from struct import pack
from urllib.parse import urlsplit

# Says of the number of an exchange, from 0, and of its request line whether it is one to be hostile in.
Turn = Callable[[int, bytes], bool]

_REQUEST_LINE = re.compile(rb"[A-Z]+ \S+ HTTP/")
_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)\r\n", re.I)


@dataclass(slots=True)
class Wire:
    """The server's end of a connection on which a request has come.

    Attributes:
        connection: to the client.
        request: as it came, whole; empty where the connection has just been made.
        upstream: where the honest answer is to be had.
    """

    connection: socket.socket
    request: bytes = b""
    upstream: tuple[str, int] | None = None

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def answer(self) -> tuple[int, list[tuple[str, str]], bytes]:
        """Return status, headers and body of the honest answer."""
        assert self.upstream is not None
        with socket.create_connection(self.upstream, timeout=10) as honest:
            honest.sendall(self.request)
            response = HTTPResponse(honest, method=self.request.partition(b" ")[0].decode())
            response.begin()
            return response.status, response.getheaders(), response.read()

    def reset(self) -> None:
        """End the connection with a reset: what was sent and not read yet may be lost."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
        self.connection.close()

    def await_end(self) -> None:
        """Keep the connection open until the client has gone."""
        while self.connection.recv(65536):
            pass


# What a hostile peer does with one exchange; the connection is closed behind it.
Misbehaviour = Callable[[Wire], None]


def match_exchange(place: int) -> Turn:
    """Be hostile in one exchange."""
    return lambda exchange, _: exchange == place


def match_from(place: int) -> Turn:
    """Be hostile in this exchange, and in all that follow."""
    return lambda exchange, _: exchange >= place


def match_from_word(place: int, word: bytes) -> Turn:
    """Be hostile in this exchange of those with a word in their request line, and in all of them that follow."""
    numbers = count()
    return lambda _, line: word in line and next(numbers) >= place


def match_word(word: bytes) -> Turn:
    """Be hostile in all exchanges with a word in their request line."""
    return lambda _, line: word in line


@dataclass(slots=True)
class HostileProxy:
    """A proxy at work.

    Attributes:
        at: which exchanges it is hostile in; may be set anew at any time.
        turned: how many these were so far.
        requests: heads of all that it was sent.
    """

    upstream: tuple[str, int] | None
    misbehaves: Misbehaviour
    at: Turn
    url: str = ""
    turned: int = 0
    requests: list[bytes] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def is_next(self, line: bytes) -> bool:
        """Count an exchange, and say whether it is one to be hostile in."""
        is_hostile = self.at(next(self._numbers), line)
        self.turned += is_hostile
        return is_hostile

    def rewind(self) -> None:
        """Count exchanges from 0 again."""
        self._numbers, self.turned = count(), 0
        self.requests.clear()


AT_ONCE = match_from(0)


@contextmanager
def run_hostile_proxy(upstream: str | None, misbehaves: Misbehaviour, at: Turn = AT_ONCE) -> Iterator[HostileProxy]:
    """Serve as a proxy of a server, or of none where every exchange is hostile."""
    parts = urlsplit(upstream or "")
    address = (parts.hostname, parts.port) if parts.hostname and parts.port else None
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        found = HostileProxy(address, misbehaves, at, f"http://127.0.0.1:{listener.getsockname()[1]}")
        thread = threading.Thread(target=_accept, args=(listener, found), daemon=True)
        thread.start()
        try:
            yield found
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _accept(listener: socket.socket, found: HostileProxy) -> None:
    threads: list[threading.Thread] = []
    with suppress(OSError):
        while True:
            near, _ = listener.accept()
            threads = [thread for thread in threads if thread.is_alive()]
            threads.append(threading.Thread(target=_serve, args=(near, found), daemon=True))
            threads[-1].start()
    for thread in threads:
        thread.join(5)


def _serve(near: socket.socket, found: HostileProxy) -> None:
    with near, suppress(OSError):
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else every answer waits for 40 ms
        if found.upstream is None:
            _pass_on(near, near, found)
            return
        with socket.create_connection(found.upstream) as far:
            far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _pass_on(near, far, found)


def _pass_on(near: socket.socket, far: socket.socket, found: HostileProxy) -> None:
    """Pass bytes on in both directions until one side ends or a request is met with hostility."""
    begins = True
    while True:
        ready, _, _ = select({near, far}, (), ())
        if near in ready:
            data = near.recv(65536)
            if begins and _REQUEST_LINE.match(data):
                begins = False
                found.requests.append(data.partition(b"\r\n\r\n")[0])
                if found.is_next(data.partition(b"\r\n")[0]):
                    found.misbehaves(Wire(near, _whole(near, data), found.upstream))
                    return
            if not data:
                return
            far.sendall(data)
        elif data := far.recv(65536):
            near.sendall(data)
            begins = True
        else:
            return


def _whole(near: socket.socket, data: bytes) -> bytes:
    """Read a request to its end, as its length has it; one in chunks, or without a whole head, as far as it came."""
    head, _, body = data.partition(b"\r\n\r\n")
    length = _LENGTH.search(head + b"\r\n")
    near.settimeout(5)
    while length and len(body) < int(length[1]) and (more := near.recv(65536)):
        body += more
    near.settimeout(None)
    return head + b"\r\n\r\n" + body
