"""What is expected of a client's requests: the rules of the documents, and what its caller meant."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from conformance.clients.client import Observation
from conformance.clients.intent import find_differences
from conformance.clients.peer import ReceivedRequest
from conformance.clients.rules import judge_request
from conformance.clients.violation import Violation
from conformance.expect.unmet import UnmetError
from conformance.spec import ledger
from conformance.spec.ledger import Level
from conformance.spec.text import escape_text
from conformance.transport.exchange import Reply

VALUES = "CLIENT-SENDS-VALUES"


def expect_request(seen: Observation, unheard: str = VALUES) -> None:
    """Expect that an inference request came at all.

    Args:
        seen: what was seen of one inference.
        unheard: the requirement that is not met where none came.

    Raises:
        Unmet: none came: the client refused what the protocol allows, or sent its request to where none is awaited; or
            one came that is not whole, so that nothing is known of how the client reads an answer.
    """
    if not seen.heard:
        said = (
            f"an error: {escape_text(seen.result.error)}" if seen.result.error is not None else "outputs nevertheless"
        )
        raise UnmetError("an inference request", f"none came; the client gives its caller {said}", requirement=unheard)
    broken = next((one for one in seen.heard if one.received.trouble), None)
    if broken is not None:
        trouble = escape_text(broken.received.trouble)
        raise UnmetError("a whole request", trouble, Reply(broken.exchange()), requirement="CLIENT-SENDS-WHOLE")


def expect_sent(seen: Observation, own: Collection[str] = (), unheard: str = VALUES) -> None:
    """Expect that each request keeps the rules and says what the caller meant.

    What is not met of the requirements that a row is about comes first, and of these what the documents demand; then
    any other that they demand. What they only advise is left to the rows that are about it.

    Args:
        seen: what was seen of one inference.
        own: the requirements that the row is about, as they are called over HTTP.
        unheard: the requirement that is not met where no request came.

    Raises:
        Unmet: a request misses a requirement, or none came.
    """
    expect_request(seen, unheard)
    for heard in seen.heard:
        misses = (*judge_request(heard.received).misses, *find_differences(heard.received, seen.inference))
        if first := _first(misses, own):
            raise _unmet(first, heard)


def _first(misses: Sequence[Violation], own: Collection[str]) -> Violation | None:
    of_row = [miss for miss in misses if ledger.get_requirement(miss.requirement).name in own]
    demanded = [miss for miss in misses if ledger.get_requirement(miss.requirement).level is Level.MUST]
    return next(iter((*(miss for miss in of_row if miss in demanded), *of_row, *demanded)), None)


def _unmet(miss: Violation, heard: ReceivedRequest) -> UnmetError:
    reply = Reply(heard.exchange())
    return UnmetError(miss.expected, miss.actual, reply, requirement=miss.requirement, offset=miss.offset)
