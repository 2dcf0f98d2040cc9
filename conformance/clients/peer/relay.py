"""A relay between clients and the gRPC server, so that a connection can be closed in the middle of a call.

grpcio's server cannot do that. What goes through is passed on unread, and the port stays open when connections close.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Final

_READ: Final = 64 * 1024


class Relay:
    """A port of 127.0.0.1 that leads to another one."""

    def __init__(self, port: int) -> None:
        self._to = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def disconnect(self) -> None:
        """Close every connection that is open now."""
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the port and every connection, and wait for every thread."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()
        self.disconnect()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._to)
                pairs = ((near, far), (far, near))
                threads = [threading.Thread(target=self._pass_on, args=pair) for pair in pairs]
                with self._lock:
                    self._open |= {near, far}
                    self._threads = [*filter(threading.Thread.is_alive, self._threads), *threads]
                for connection, thread in zip((near, far), threads, strict=True):
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    thread.start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        """Pass bytes on in one direction until either side closes; each direction closes the socket that it reads."""
        with suppress(OSError):
            while octets := source.recv(_READ):
                sink.sendall(octets)
        for connection in (source, sink):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._open.discard(source)
        source.close()
