"""Repeats rows that fail because the server was busy, so that no server fails for a refusal that ends by itself.

A server that is overloaded, limits the rate of requests, or has to load a model may answer 429 or 503, its gateway 504,
or 502 while the server starts again, and over gRPC RESOURCE_EXHAUSTED, UNAVAILABLE or DEADLINE_EXCEEDED (RFC 9110,
15.6.3 to 15.6.5; RFC 6585, 4). A row with such an answer is repeated after a pause.
Any other outcome of a repetition is the outcome of the row. If the last repetition gets such an answer as well, the row
fails. Rows with other errors are never repeated here, so a server that answers wrongly now and then still fails.

Each repetition has a scope of its own in a recording, so that a replay repeats the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.judging.row_judge import RowError
from conformance.judging.server_limits import is_too_large
from conformance.transport.broken_request import is_busy, read_retry_after
from conformance.transport.exchange import Exchange, Reply
from conformance.transport.target import BUSY_PAUSES_S, RELOAD_PAUSE_S, Target

# Rows whose last repetition is refused as well; after so many, no row is repeated, so that the run does not take long.
MAX_BUSY_ROWS: Final = 5

_Error = RowError | NotApplicableError


class BusyError(Exception):
    """The server was busy, so the row has no verdict yet.

    Attributes:
        pause_s: the seconds to wait before the row is repeated.
    """

    def __init__(self, pause_s: float) -> None:
        super().__init__(f"the server is busy; the row is repeated after {pause_s:g} s")
        self.pause_s = pause_s


class BusyRetries:
    """Repeats the rows of one judge while the server is busy.

    Args:
        target: the server.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._name = ""
        self._attempt = 0
        self._pause_s = 0.0
        self._first: tuple[_Error, list[Exchange]] | None = None  # the first attempt, if the server was busy
        self._busy_rows = 0
        self._pauses_s: tuple[float, ...] = (*BUSY_PAUSES_S, RELOAD_PAUSE_S)

    def begin_row(self, name: str) -> None:
        """Start a row; `name` is the name of its scope."""
        self._name, self._attempt, self._pause_s, self._first = name, 0, 0.0, None

    @contextmanager
    def attempt(self) -> Iterator[str]:
        """Judge the row in this context, which has the name of the scope; it suppresses `BusyError`, after a pause.

        A server may refuse requests for a while after a wrong request. So a repetition also pauses after refusals.
        """
        try:
            with self._target.pause_after_refusals(self._pause_s):
                yield self._name_scope(self._attempt)
        except BusyError as busy:
            self._pause_s, self._attempt = busy.pause_s, self._attempt + 1
            self._target.pause(busy.pause_s)

    def raise_if_busy(self, error: _Error) -> _Error:
        """Raise an exception if the row that ends with `error` has to be repeated; else return the error that counts.

        After repetitions in vain the first error counts: a server that a request has made busy blocks the repetitions.
        The scope then has the exchanges of the first attempt.

        Raises:
            BusyError: the row has to be repeated.
        """
        reply = self._find_busy_reply(error)
        if reply is None:
            return error
        if self._may_repeat():
            self._first = self._first or (error, list(self._target.exchanges))
            raise BusyError(max(self._pauses_s[self._attempt], read_retry_after(reply)))
        if self._first is not None:
            error, self._target.exchanges[:] = self._first
            self._pauses_s = BUSY_PAUSES_S
            self._busy_rows += not isinstance(error, NotApplicableError)
        return error

    def _may_repeat(self) -> bool:
        is_left = self._attempt < len(self._pauses_s) and self._busy_rows < MAX_BUSY_ROWS
        return is_left and self._target.may_repeat(self._name_scope(self._attempt + 1))

    def _name_scope(self, attempt: int) -> str:
        return f"{self._name}, busy {attempt}" if attempt else self._name

    def _find_busy_reply(self, error: _Error) -> Reply | None:
        """Return the refusal of a busy server that made the row fail; None if the row fails for another reason.

        An error that names no reply may be due to any refusal in the row.
        """
        unmet = error.cause if isinstance(error, BlockedError) else error
        named = [unmet.reply] if isinstance(unmet, UnmetError) and unmet.reply else []
        replies = named or map(Reply, self._target.exchanges)
        return next((reply for reply in replies if is_busy(reply) and not is_too_large(reply)), None)
