"""What one misbehaviour is, and what is to come of it where it is met by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from conformance.transport.exchange import FailureKind
from tests.hostile.proxy import Misbehaviour, Wire


@dataclass(frozen=True, slots=True)
class Row:
    """A misbehaviour.

    Attributes:
        does: what the peer does with one exchange.
        status: that the exchange has in the end; None where no answer was read.
        kinds: of failure that it has, one of these; empty where it has none.
        may_be_whole: whether it may have none nevertheless: it depends on how far the other side has read.
    """

    name: str
    does: Misbehaviour
    status: tuple[int | None, ...]
    kinds: tuple[FailureKind, ...] = ()
    may_be_whole: bool = False


ROWS: list[Row] = []


def comes_to(*came: int | FailureKind | None, may_be_whole: bool = False) -> Callable[[Misbehaviour], Misbehaviour]:
    """Make a row of a function: any of these statuses may come of it, and any of these failures.

    Without a status there is none; without a failure there is none.
    """
    status = tuple(one for one in came if not isinstance(one, FailureKind)) or (None,)
    kinds = tuple(one for one in came if isinstance(one, FailureKind))

    def register(does: Misbehaviour) -> Misbehaviour:
        ROWS.append(Row(does.__name__.replace("_", "-"), does, status, kinds, may_be_whole))
        return does

    return register


def add_row(name: str, data: bytes, *came: int | FailureKind | None) -> None:
    """Make a row of bytes that are the whole answer."""

    def does(wire: Wire) -> None:
        wire.send(data)

    does.__name__ = name
    comes_to(*came)(does)


def make_head(status: int | str = 200, *lines: str, length: int | None = None) -> bytes:
    """Return the head of an answer with these header lines."""
    framing = () if length is None else (f"Content-Length: {length}",)
    return "\r\n".join([f"HTTP/1.1 {status} X", *lines, *framing, "", ""]).encode("latin-1")


def make_answer(status: int | str = 200, *lines: str, body: bytes = b"{}") -> bytes:
    """Return a whole answer with these header lines."""
    return make_head(status, *lines, length=len(body)) + body
