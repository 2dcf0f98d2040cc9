"""What a request of a client has to do with the requirements: those it meets, and those it misses."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """A requirement that a request does not meet.

    Attributes:
        requirement: its id; over gRPC with `/grpc`.
        expected: what should stand there, one line of printable ASCII, as is `actual`: what does.
        offset: the byte of the body to blame, as it was before any content coding; None where none is.
    """

    requirement: str
    expected: str
    actual: str
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class RuleResults:
    """What one request says of its client. A requirement that it says nothing about is in neither.

    Attributes:
        met: ids of the requirements that the request was judged by and meets, in the order of the rules.
        misses: those that it does not meet; one fault is one miss.
    """

    met: tuple[str, ...] = ()
    misses: tuple[Violation, ...] = ()
