"""Labels for the judged party in reports: a server or a client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.spec.ledger import Party
from conformance.spec.outcome import OUTCOME_WORDINGS, Outcome


@dataclass(frozen=True, slots=True)
class PartyLabels:
    """The nouns, labels and meanings that pages use for servers, or for clients.

    Attributes:
        judged: the noun for the party, "server" or "client".
        target: the label of the addresses.
        offers: the label of the extensions that the server offers, or the client uses.
        meanings: meanings of outcomes that differ from those for a server.
    """

    judged: str
    target: str
    offers: str
    title: str
    meanings: Mapping[Outcome, str]

    def explain(self, outcome: Outcome) -> str:
        """Return the meaning of an outcome."""
        return self.meanings.get(outcome, OUTCOME_WORDINGS[outcome].meaning)


_WORDS: Mapping[Party, PartyLabels] = {
    Party.SERVER: PartyLabels("server", "target", "offers", "Conformance of model servers, side by side", {}),
    Party.CLIENT: PartyLabels(
        "client",
        "sent to",
        "uses",
        "Conformance of inference clients, side by side",
        {
            Outcome.ERROR: "the suite could not judge: the adapter crashed, or the suite has a bug",
            Outcome.OBSERVED: "the documents leave it open; the report records what the client does",
            Outcome.NOT_APPLICABLE: "the client cannot do it, or does not support the transport",
        },
    ),
}


def find_labels(party: Party) -> PartyLabels:
    """Return the labels for servers, or those for clients."""
    return _WORDS[party]
