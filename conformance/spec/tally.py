"""Counts the applicable requirements of a level by outcome, in the same way for every page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.spec.extensions import OVER_GRPC, PROTOCOL, TRANSPORTS, find_transport
from conformance.spec.ledger import Concern, Party
from conformance.spec.outcome import Outcome

Entry = Mapping[str, Any]

IN_DOUBT, NOT_JUDGED, NOT_APPLICABLE = "in doubt", "not judged", "not applicable"
ABSENT: Mapping[Party, str] = {Party.SERVER: "not offered", Party.CLIENT: "not used"}
# The explanations of these words.
MEANINGS: Mapping[str, str] = {
    IN_DOUBT: "a row of the requirement was blocked or in error, so the suite cannot say whether it is met",
    NOT_JUDGED: "the requirement applies, but no row of it was judged: a model is missing, the profile leaves the rows "
    "out, they were not run, or no request of the client involves it",
    ABSENT[
        Party.SERVER
    ]: "the requirement is of an extension that the server does not offer; it does not count against the server",
    ABSENT[
        Party.CLIENT
    ]: "the requirement is of an extension that the client does not use; it does not count against the client",
    NOT_APPLICABLE: "no row of the requirement concerns this target, or the run does not cover the requirement",
}
MET = (Outcome.PASS, Outcome.FIXED, Outcome.OBSERVED)
NOT_MET = (Outcome.FAIL, Outcome.KNOWN_FAILURE, Outcome.ADVISORY)


@dataclass(frozen=True, slots=True)
class Tally:
    """The outcomes of the requirements of a level.

    Attributes:
        level: the level of the requirements.
        met: judged and met; `failed`: judged and not met.
        stuck: blocked or in error.
        unseen: applicable, but not judged: no model, skipped by the profile, or not run.
        not_offered: not applicable, because the extension is not offered, or not used by a client.
        absent: the wording for `not_offered`.
        beside: not applicable although the extension is offered, because no row concerns this target.
    """

    level: str
    met: int
    failed: int
    stuck: int
    unseen: int
    not_offered: int
    absent: str = "not offered"
    beside: int = 0

    @property
    def applying(self) -> int:
        """The number of applicable requirements."""
        return self.met + self.failed + self.stuck + self.unseen

    @property
    def counts(self) -> list[tuple[str, int]]:
        """The number of requirements of each kind; the parts of a bar are colored by kind."""
        absent = self.unseen + self.not_offered + self.beside
        return [("pass", self.met), ("fail", self.failed), ("blocked", self.stuck), ("absent", absent)]

    @property
    def sentence(self) -> str:
        """The outcomes as a sentence, without a full stop."""
        return f"{self.met} of {self.applying} {self.level}s that apply are met{self._rest}"

    @property
    def brief(self) -> str:
        """The outcomes as a sentence that omits the level."""
        return f"{self.met} of {self.applying} met{self._rest}"

    @property
    def _rest(self) -> str:
        others = ((self.failed, "not met"), (self.stuck, IN_DOUBT), (self.unseen, NOT_JUDGED))
        return "".join(f", {count} {what}" for count, what in others if count) + self.rest

    @property
    def words(self) -> list[str]:
        """The keys of `MEANINGS` that the sentence uses."""
        counts = ((self.stuck, IN_DOUBT), (self.unseen, NOT_JUDGED), (self.not_offered, self.absent))
        return [word for count, word in (*counts, (self.beside, NOT_APPLICABLE)) if count]

    @property
    def rest(self) -> str:
        """The text about requirements that do not apply, after a semicolon; empty if all apply."""
        others = ((self.not_offered, self.absent), (self.beside, NOT_APPLICABLE))
        return "".join(f"; {count} {what}" for count, what in others if count)


def count_requirements(
    level: str,
    requirements: Iterable[Entry],
    offered: Collection[str],
    asked: Collection[str] = (),
    party: Party = Party.SERVER,
) -> Tally:
    """Count the requirements of a level.

    Args:
        level: `MUST`, `SHOULD`, `MAY` or `OBSERVE`.
        requirements: all of them, from the report.
        offered: the extensions that the target offers.
        asked: the extensions that the user selected; empty if none.
        party: the judged party.
    """
    entries = [entry for entry in filter_counted(requirements, asked) if entry["level"] == level]
    found = [entry for entry in entries if is_judged(entry) or entry["extension"] in (PROTOCOL, *offered)]
    verdicts = Counter(entry["verdict"] for entry in found)
    met, failed = (sum(verdicts[outcome] for outcome in outcomes) for outcomes in (MET, NOT_MET))
    unseen = sum(not is_judged(entry) and "unjudged" in entry for entry in found)
    beside = verdicts[Outcome.NOT_APPLICABLE] - unseen
    stuck = verdicts.total() - met - failed - unseen - beside
    return Tally(level, met, failed, stuck, unseen, len(entries) - len(found), ABSENT[party], beside)


def count_by_concern(
    requirements: Iterable[Entry],
    extension: str,
    offered: Collection[str],
    asked: Collection[str] = (),
    party: Party = Party.SERVER,
) -> dict[str, Tally]:
    """Count the MUSTs of an extension for each concern; arguments as in `count_requirements`."""
    entries = list(filter_counted(requirements, asked))
    own = [entry for entry in entries if entry["extension"] == extension]
    return {
        str(concern): count_requirements(
            "MUST", [entry for entry in own if entry["concern"] == concern], offered, asked, party
        )
        for concern in Concern
    }


def tally_report(report: Entry, level: str = "MUST") -> Tally:
    """Count the requirements of a level in a report (`schemas/report.schema.json`)."""
    offered = [name for name, entry in report["extensions"].items() if entry["offered"]]
    return count_requirements(
        level, report["requirements"], offered, report["options"]["extensions"], _find_party(report)
    )


def describe_absence(report: Entry, extension: str) -> str:
    """Return why a report does not judge an extension: it was not selected, or is not offered."""
    party, asked = _find_party(report), report["options"]["extensions"]
    if party is Party.CLIENT:
        return ABSENT[party]
    is_unasked = extension not in asked if asked else extension in OVER_GRPC and "grpc" not in report["target"]
    return "not asked for" if is_unasked else ABSENT[party]


def _find_party(report: Entry) -> Party:
    return Party(report.get("party", Party.SERVER))


def filter_counted(requirements: Iterable[Entry], asked: Collection[str] = ()) -> list[Entry]:
    """Return the requirements that count in a run: of selected extensions, on a judged transport."""
    entries = list(requirements)
    judged = {find_transport(entry["area"]) for entry in entries if is_judged(entry)}
    wanted = {PROTOCOL, *asked} if asked else set[str]()
    return [
        entry
        for entry in entries
        if find_transport(entry["area"]) in (judged or TRANSPORTS) and (not wanted or entry["extension"] in wanted)
    ]


def is_judged(entry: Entry) -> bool:
    """Return whether a requirement has any result, including that it cannot be judged."""
    return bool(entry["verdict"] != Outcome.NOT_APPLICABLE)
