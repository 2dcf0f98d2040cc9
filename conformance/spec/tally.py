"""Counts the applicable requirements of a level by outcome, in the same way for every page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from conformance.spec.extensions import OVER_GRPC, PROTOCOL, TRANSPORTS, find_transport
from conformance.spec.ledger import Concern, Party
from conformance.spec.outcome import Outcome
from conformance.spec.report import Report, RequirementEntry, find_party

IN_DOUBT, NOT_JUDGED, NOT_APPLICABLE = "in doubt", "not judged", "not applicable"
ABSENT: Mapping[Party, str] = {Party.SERVER: "not offered", Party.CLIENT: "not used"}
# The explanations of these three phrases.
MEANINGS: Mapping[str, str] = {
    IN_DOUBT: "a row was blocked or in error, so the suite cannot say whether the requirement is met",
    NOT_JUDGED: "the requirement applies, but no row of it was judged: a model is missing, the profile leaves the rows "
    "out, the rows were not run, or no request of the client concerns the requirement",
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
    """How many requirements of a level are met, not met, and so on.

    Attributes:
        failed: how many were judged and are not met.
        in_doubt: how many have a row that was blocked or in error.
        not_judged: how many apply, but were not judged: no model, skipped by the profile, or not run.
        not_offered: how many are of an extension that the server does not offer, or the client does not use.
        not_offered_words: the words for `not_offered` in a sentence: "not offered", or "not used" for a client.
        not_applicable: how many are of an offered extension, but have no row that concerns this target.
    """

    level: str
    met: int
    failed: int
    in_doubt: int
    not_judged: int
    not_offered: int
    not_offered_words: str = "not offered"
    not_applicable: int = 0

    @property
    def applying(self) -> int:
        """The number of applicable requirements."""
        return self.met + self.failed + self.in_doubt + self.not_judged

    @property
    def counts(self) -> list[tuple[str, int]]:
        """The number of requirements for each color of a bar, by the name of the color."""
        absent = self.not_judged + self.not_offered + self.not_applicable
        return [("pass", self.met), ("fail", self.failed), ("blocked", self.in_doubt), ("absent", absent)]

    @property
    def sentence(self) -> str:
        """All counts as a sentence without a full stop, such as `3 of 5 MUSTs that apply are met, 2 not met`."""
        return f"{self.met} of {self.applying} {self.level}s that apply are met{self._other_counts}"

    @property
    def brief(self) -> str:
        """All counts in a short form that omits the level, such as `3 of 5 met, 2 not met`."""
        return f"{self.met} of {self.applying} met{self._other_counts}"

    @property
    def _other_counts(self) -> str:
        others = ((self.failed, "not met"), (self.in_doubt, IN_DOUBT), (self.not_judged, NOT_JUDGED))
        return "".join(f", {count} {what}" for count, what in others if count) + self.inapplicable_counts

    @property
    def words(self) -> list[str]:
        """The phrases of `sentence` that are keys of `MEANINGS`, such as `in doubt`."""
        counts = ((self.in_doubt, IN_DOUBT), (self.not_judged, NOT_JUDGED), (self.not_offered, self.not_offered_words))
        return [word for count, word in (*counts, (self.not_applicable, NOT_APPLICABLE)) if count]

    @property
    def inapplicable_counts(self) -> str:
        """The counts of requirements that do not apply, such as `; 2 not offered`; empty if all apply."""
        others = ((self.not_offered, self.not_offered_words), (self.not_applicable, NOT_APPLICABLE))
        return "".join(f"; {count} {what}" for count, what in others if count)


def count_requirements(
    level: str,
    requirements: Iterable[RequirementEntry],
    offered: Collection[str],
    selected: Collection[str] = (),
    party: Party = Party.SERVER,
) -> Tally:
    """Count the requirements of a level.

    `level`: `MUST`, `SHOULD`, `MAY` or `OBSERVE`.
    `selected`: the extensions that the user selected; empty if none.
    `party`: whether the target is a server or a client.
    """
    entries = [entry for entry in select_requirements(requirements, selected) if entry["level"] == level]
    found = [entry for entry in entries if is_judged(entry) or entry["extension"] in (PROTOCOL, *offered)]
    verdicts = Counter(entry["verdict"] for entry in found)
    met, failed = (sum(verdicts[outcome] for outcome in outcomes) for outcomes in (MET, NOT_MET))
    not_judged = sum(not is_judged(entry) and "unjudged" in entry for entry in found)
    not_applicable = verdicts[Outcome.NOT_APPLICABLE] - not_judged
    in_doubt = verdicts.total() - met - failed - not_judged - not_applicable
    return Tally(level, met, failed, in_doubt, not_judged, len(entries) - len(found), ABSENT[party], not_applicable)


def count_by_concern(
    requirements: Iterable[RequirementEntry],
    extension: str,
    offered: Collection[str],
    selected: Collection[str] = (),
    party: Party = Party.SERVER,
) -> dict[str, Tally]:
    """Count the MUSTs of an extension, separately for each concern; for arguments see `count_requirements`."""
    entries = list(select_requirements(requirements, selected))
    own = [entry for entry in entries if entry["extension"] == extension]
    return {
        str(concern): count_requirements(
            "MUST", [entry for entry in own if entry["concern"] == concern], offered, selected, party
        )
        for concern in Concern
    }


def tally_report(report: Report, level: str = "MUST") -> Tally:
    """Count the requirements of a level in a report (`schemas/report.schema.json`)."""
    offered = [name for name, entry in report["extensions"].items() if entry["offered"]]
    return count_requirements(
        level, report["requirements"], offered, report["options"]["extensions"], find_party(report)
    )


def describe_absence(report: Report, extension: str) -> str:
    """Return why a report does not judge an extension: it was not selected, or is not offered."""
    party, selected = find_party(report), report["options"]["extensions"]
    if party is Party.CLIENT:
        return ABSENT[party]
    is_unselected = extension not in selected if selected else extension in OVER_GRPC and "grpc" not in report["target"]
    return "not asked for" if is_unselected else ABSENT[party]


def select_requirements(
    requirements: Iterable[RequirementEntry], selected: Collection[str] = ()
) -> list[RequirementEntry]:
    """Return the requirements that count in a run: those of the selected extensions and the judged transports."""
    entries = list(requirements)
    judged = {find_transport(entry["area"]) for entry in entries if is_judged(entry)}
    wanted = {PROTOCOL, *selected} if selected else set[str]()
    return [
        entry
        for entry in entries
        if find_transport(entry["area"]) in (judged or TRANSPORTS) and (not wanted or entry["extension"] in wanted)
    ]


def is_judged(entry: RequirementEntry) -> bool:
    """Return whether a requirement has a verdict other than `not_applicable`, which may be `blocked` or `error`."""
    return entry["verdict"] != Outcome.NOT_APPLICABLE
