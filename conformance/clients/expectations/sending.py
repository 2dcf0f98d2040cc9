"""What is expected of a client's requests: the rules of the documents, and what its caller meant."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from conformance.clients.client import Seen
from conformance.clients.meant import differences
from conformance.clients.miss import Miss
from conformance.clients.peer import Heard
from conformance.clients.rules import judged
from conformance.expect.unmet import Unmet
from conformance.terms import ledger
from conformance.terms.ledger import Level
from conformance.terms.text import safe
from conformance.transport.exchange import Reply

VALUES = "CLIENT-SENDS-VALUES"


def expect_heard(seen: Seen, unheard: str = VALUES) -> None:
    """Expect that an inference request came at all.

    Args:
        seen: what was seen of one inference.
        unheard: the requirement that is not met where none came.

    Raises:
        Unmet: none came: the client refused what the protocol allows, or sent its request to where none is awaited; or
            one came that is not whole, so that nothing is known of how the client reads an answer.
    """
    if not seen.heard:
        said = f"an error: {safe(seen.result.error)}" if seen.result.error is not None else "outputs nevertheless"
        raise Unmet("an inference request", f"none came; the client gives its caller {said}", requirement=unheard)
    broken = next((one for one in seen.heard if one.received.trouble), None)
    if broken is not None:
        trouble = safe(broken.received.trouble)
        raise Unmet("a whole request", trouble, Reply(broken.exchange()), requirement="CLIENT-SENDS-WHOLE")


def expect_sent(seen: Seen, own: Collection[str] = (), unheard: str = VALUES) -> None:
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
    expect_heard(seen, unheard)
    for heard in seen.heard:
        misses = (*judged(heard.received).misses, *differences(heard.received, seen.inference))
        if first := _first(misses, own):
            raise _unmet(first, heard)


def _first(misses: Sequence[Miss], own: Collection[str]) -> Miss | None:
    of_row = [miss for miss in misses if ledger.requirement(miss.requirement).name in own]
    demanded = [miss for miss in misses if ledger.requirement(miss.requirement).level is Level.MUST]
    return next(iter((*(miss for miss in of_row if miss in demanded), *of_row, *demanded)), None)


def _unmet(miss: Miss, heard: Heard) -> Unmet:
    reply = Reply(heard.exchange())
    return Unmet(miss.expected, miss.actual, reply, requirement=miss.requirement, offset=miss.offset)
