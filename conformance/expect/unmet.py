"""The exceptions that the body of a check raises, and tools that attribute a failure to the right requirement.

A body that returns has passed. It raises `UnmetError` if one requirement is not met; the ledger defines the severity.
It raises `BlockedError` if a fault that other checks judge prevents a verdict, and `NotApplicableError` if the check
does not concern this target.

Three tools attribute a failure. Each of them sends a simpler request only if necessary:

    is_met(lambda: expect(...))                 return whether an expectation is met, to decide what to send next
    with attribute_to("BIN-SAME-AS-JSON-O"):    attribute every failure inside to this requirement
    with block_if(wrong, why):                  block the check if an expectation inside fails and `wrong()` is true

If none of the three fits, `raise BlockedError(why, unmet) from None` in an `except UnmetError` keeps the cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from conformance.transport.exchange import Reply
from conformance.wire.tensor import Tensor


class UnmetError(Exception):
    """One requirement is not met.

    Attributes:
        expected: the required behaviour, briefly.
        actual: the behaviour of the server or client, briefly.
        reply: the exchange that proves the failure, or None.
        requirement: the ledger id of the requirement; None means the first requirement of the check.
        offset: the offset of the first wrong byte in the answer's body, or None.
        since: the number of the first exchange that a reproduction of the failure must repeat; None if unknown.
        tensor: the expected tensor, if values are wrong.
        ends_server: whether the request ended the server.
    """

    def __init__(
        self,
        expected: str,
        actual: str,
        reply: Reply | None = None,
        *,
        requirement: str | None = None,
        offset: int | None = None,
        since: int | None = None,
        tensor: Tensor | None = None,
        ends_server: bool = False,
    ) -> None:
        super().__init__(f"expected {expected}, got {actual}")
        self.expected = expected
        self.actual = actual
        self.reply = reply
        self.requirement = requirement
        self.offset = offset
        self.since = since
        self.tensor = tensor
        self.ends_server = ends_server


class BlockedError(Exception):
    """A check has no verdict, because a precondition fails; the message is one line that names the precondition.

    `cause`: the failure of the precondition, which says nothing about the check's requirement; None if unknown.
    """

    def __init__(self, reason: str, cause: UnmetError | None = None) -> None:
        super().__init__(reason)
        self.cause = cause


class NotApplicableError(Exception):
    """The check does not concern this target; the message is one line with the reason."""


def is_met(expectation: Callable[[], object]) -> bool:
    """Return whether an expectation is met."""
    try:
        expectation()
    except UnmetError:
        return False
    return True


@contextmanager
def attribute_to(requirement: str | None) -> Iterator[None]:
    """Attribute failures in the context to one requirement; None means the first requirement of the check.

    Raises UnmetError: an expectation in the context is unmet.
    """
    try:
        yield
    except UnmetError as unmet:
        unmet.requirement = requirement
        raise


@contextmanager
def block_if(is_simpler_wrong: Callable[[], bool], reason: str) -> Iterator[None]:
    """Block the check if an expectation in the context fails and `is_simpler_wrong` returns true.

    `is_simpler_wrong` is called only after a failure; it tests whether a simpler request fails as well.

    Raises:
        BlockedError: the expectation and the simpler request fail, so nothing is known about the requirement.
        UnmetError: only the expectation fails.
    """
    try:
        yield
    except UnmetError as unmet:
        if is_simpler_wrong():
            raise BlockedError(reason, unmet) from None
        raise
