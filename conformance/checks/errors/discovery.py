"""The survey of the target: what a server is asked before it is judged, it answers or refuses."""

from __future__ import annotations

from conformance.expect import attribution
from conformance.expect.unmet import UnmetError
from conformance.spec.check import check
from conformance.spec.extensions import GRPC
from conformance.spec.text import escape_text
from conformance.transport.broken_request import BrokenRequest
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
    for one in sorted(target.broken_before, key=lambda found: (not found.lost, found.is_deliberate)):
        requirement = STATUS if one.is_deliberate else attribution.attribute_broken_request(one)
        raise UnmetError(one.expected, _told(one), one.reply, requirement=requirement)


def _told(found: BrokenRequest) -> str:
    again = (
        ""
        if found.again is found.reply or found.is_deliberate
        else f"; sent again: {escape_text(found.again.outcome())}"
    )
    return escape_text(found.outcome) + again
