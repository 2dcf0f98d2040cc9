"""The client over HTTP: connections are kept and serve one request at a time."""

from __future__ import annotations

import time
from threading import Lock
from urllib.parse import urlsplit

from tests.clients.honest import answer, connection, request
from tests.clients.honest.caller import CallerRequest, CallerResult, MalformedError, RefusedError
from tests.clients.honest.connection import Connection


class HttpClient:
    """A client of one server; several threads may use it at once."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self.host, self.port = parts.hostname or "127.0.0.1", parts.port or 80
        self.idle: list[Connection] = []
        self.lock = Lock()

    def infer(self, asked: CallerRequest, timeout: float) -> CallerResult:
        """Return what the server answers; raises RefusedError, and CannotError before anything is sent."""
        wanted = request.request(asked)
        kept = self.take(time.monotonic() + timeout)
        try:
            found = answer.given(asked, connection.exchanged(kept, wanted))
        except MalformedError as error:
            kept.close()
            raise RefusedError(f"wrong answer: {error}") from error
        except BaseException:
            if not kept.is_kept:
                kept.close()
            raise
        finally:
            self.put_back(kept)
        return found

    def take(self, deadline: float) -> Connection:
        """Return an idle connection that can still be used, or a new one."""
        while (kept := self._idle()) is not None:
            if kept.is_usable():
                kept.deadline = deadline
                return kept
            kept.close()
        return Connection(self.host, self.port, deadline)

    def _idle(self) -> Connection | None:
        with self.lock:
            return self.idle.pop() if self.idle else None

    def put_back(self, kept: Connection) -> None:
        if kept.is_kept and kept.socket.fileno() >= 0:
            with self.lock:
                self.idle.append(kept)
        else:
            kept.close()

    def close(self) -> None:
        while (kept := self._idle()) is not None:
            kept.close()
