"""The survey of the target: what a server is asked before it is judged, it answers or refuses."""

from __future__ import annotations

from conformance.expect import attribution
from conformance.expect.unmet import Unmet
from conformance.terms.check import check
from conformance.terms.extensions import GRPC
from conformance.terms.text import safe
from conformance.transport.broken import Broken
from conformance.transport.peer import Peer

STATUS = "OIP-ERROR-STATUS"


@check("errors.nothing-breaks-in-the-survey", answers=("OIP-ALIVE-LEGAL", STATUS), of_survey=True)
@check(
    "grpc.nothing-breaks-in-the-survey",
    answers=("OIP-ALIVE-LEGAL/grpc", "OIP-ERROR-STATUS/grpc"),
    of_survey=True,
    over=(GRPC,),
)
def nothing_breaks_in_the_survey(target: Peer) -> None:
    """What a server is asked before it is judged, it answers or refuses."""
    for one in sorted(target.broken_before, key=lambda found: (not found.lost, found.is_manner)):
        requirement = STATUS if one.is_manner else attribution.of_broken(one)
        raise Unmet(one.expected, _told(one), one.reply, requirement=requirement)


def _told(found: Broken) -> str:
    again = "" if found.again is found.reply or found.is_manner else f"; sent again: {safe(found.again.outcome())}"
    return safe(found.outcome) + again
