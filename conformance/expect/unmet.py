"""How the body of a check says what it came to, and how it keeps from blaming one requirement for the fault of another.

A body that returns has been satisfied. `UnmetError` says that one requirement is not met; how bad that is, is for the
ledger to say. `BlockedError` says that the check came to no verdict, because of something that other checks judge;
`NotApplicableError`, that it does not concern this target.

Blame has three forms. Each asks something simpler only when it matters, since a probe is a request:

    is_met(lambda: expect(...))        whether an expectation is met, where the answer decides what comes next
    with attribute_to("BIN-SAME-AS-JSON-O"):     whatever is unmet inside is about this requirement
    with block_if(wrong, why):         what is unmet inside says nothing where `wrong()`

Where none of them fits, `raise BlockedError(why, unmet) from None` in an `except UnmetError` keeps the cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from conformance.transport.exchange import Reply
from conformance.wire.tensor import Tensor


class UnmetError(Exception):
    """One requirement is not met.

    Attributes:
        expected: what the requirement asks for, in a few words.
        actual: what the server did.
        reply: the exchange that shows it, where there is one.
        requirement: its ledger id; None stands for the first that the check answers for.
        offset: where in the answer's body the first wrong byte is, or None.
        since: the number of the exchange with which the way to this one begins, where the check knows it.
        tensor: the right one, where values are wrong.
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
    ) -> None:
        super().__init__(f"expected {expected}, got {actual}")
        self.expected = expected
        self.actual = actual
        self.reply = reply
        self.requirement = requirement
        self.offset = offset
        self.since = since
        self.tensor = tensor


class BlockedError(Exception):
    """What a check rests on does not hold, so that it can say nothing; the message is one line that says what.

    Attributes:
        cause: what was unmet and is not to be blamed on the check's requirement, where there is such a thing.
    """

    def __init__(self, reason: str, cause: UnmetError | None = None) -> None:
        super().__init__(reason)
        self.cause = cause


class NotApplicableError(Exception):
    """The check has nothing to say of this target; the message is one line that says why."""


def is_met(expectation: Callable[[], object]) -> bool:
    """Say whether an expectation is met."""
    try:
        expectation()
    except UnmetError:
        return False
    return True


@contextmanager
def attribute_to(requirement: str | None) -> Iterator[None]:
    """Judge what is inside by one requirement, whatever an expectation would blame; None blames the first.

    Raises:
        Unmet: what stands inside is unmet.
    """
    try:
        yield
    except UnmetError as unmet:
        unmet.requirement = requirement
        raise


@contextmanager
def block_if(also_wrong: Callable[[], bool], reason: str) -> Iterator[None]:
    """Judge what stands inside, unless something simpler is wrong too, which is asked only when it matters.

    Raises:
        Blocked: what stands inside is unmet, and so is the simpler thing; nothing is known then of what is judged.
    """
    try:
        yield
    except UnmetError as unmet:
        if also_wrong():
            raise BlockedError(reason, unmet) from None
        raise
