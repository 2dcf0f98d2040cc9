"""How reports speak of who was judged: of a server, or of a client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conformance.spec.ledger import Party
from conformance.spec.outcome import Outcome


@dataclass(frozen=True, slots=True)
class PartyLabels:
    """Words for one party.

    Attributes:
        judged: a server or a client, in a sentence; with a capital it is a label.
        target: label of the addresses.
        offers: label of the extensions that count.
        title: of a page that compares several.
        meanings: of outcomes, where they mean something else than of a server.
    """

    judged: str
    target: str
    offers: str
    title: str
    meanings: Mapping[Outcome, str]


_WORDS: Mapping[Party, PartyLabels] = {
    Party.SERVER: PartyLabels("server", "target", "offers", "Conformance of model servers, side by side", {}),
    Party.CLIENT: PartyLabels(
        "client",
        "sent to",
        "uses",
        "Conformance of inference clients, side by side",
        {
            Outcome.ERROR: "the suite could not judge: the adapter broke, or a fault of the suite's own",
            Outcome.OBSERVED: "the documents leave it open; what the client does is recorded",
            Outcome.NOT_APPLICABLE: "the client cannot do it, or does not speak the transport",
        },
    ),
}


def find_labels(party: Party) -> PartyLabels:
    """Return the words for a party."""
    return _WORDS[party]


def find_party(report: Mapping[str, Any]) -> Party:
    """Return who was judged in a report; one of a server does not say so."""
    return Party(report.get("party", Party.SERVER))
