"""The view model of report pages, computed from the JSON report alone, so that all pages agree.

Only the title is escaped here; `page_html`, `page_markdown` and `badge` escape everything else. Texts come from the
report, which is untrusted; statements and sources of requirements come from the installed ledger.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from conformance.report import pack_results, robustness
from conformance.report.blocks import Block, build_blocks
from conformance.report.findings import (
    Group,
    Observation,
    build_groups,
    collect_observations,
    find_missing_role,
    find_requirement,
    format_label,
    group_by,
    group_unjudged,
    summarize_message,
)
from conformance.report.pack_results import PackResults
from conformance.report.party_labels import PartyLabels, find_labels
from conformance.report.robustness import Robustness
from conformance.report.scope import describe_limits_of, describe_report_verdict
from conformance.spec import extensions, ledger
from conformance.spec.coverage import GAP_REASONS, GapReason
from conformance.spec.documents import Sentence
from conformance.spec.ledger import Party
from conformance.spec.options import format_arguments
from conformance.spec.outcome import CONFORMANT, INTEROPERABLE, OUTCOME_WORDINGS, Outcome
from conformance.spec.report import CoverageEntry, Gate, Pattern, Report, ReportRow, RequirementEntry, find_party
from conformance.spec.tally import MEANINGS, NOT_JUDGED, Tally, describe_absence, select_requirements, tally_report
from conformance.spec.text import escape_text
from conformance.spec.verdict import describe_verdict, format_sentence

NOT_RUN = "not run"
MAX_TITLE_CHARS = 120
_FULL_COVERAGE: CoverageEntry = {"unjudged": (), "waiting": 0, "left_out": 0, "deploy": ()}
TITLES: Mapping[str, str] = {name: title[0].upper() + title[1:] for name, title in extensions.TITLES.items()}


@dataclass(frozen=True, slots=True)
class ReportSection:
    """An extension, or an area of one, with its counts by outcome.

    Attributes:
        absence: the reason why an extension is not judged, such as "not offered".
        musts: for an extension, the met and applicable MUSTs by concern, such as `3/4`.
    """

    name: str
    counts: dict[str, int]
    offered: bool = True
    absence: str = ""
    verdict: str = ""
    verdict_in_words: str = ""
    areas: list[ReportSection] = field(default_factory=list)
    musts: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The human-readable name."""
        return TITLES.get(self.name, self.name)


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one check that test one requirement, by outcome."""

    check: str
    claim: str
    by_outcome: dict[str, list[ReportRow]]

    @property
    def counts(self) -> dict[str, int]:
        """The number of rows by outcome."""
        return {outcome: len(rows) for outcome, rows in self.by_outcome.items()}


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement with its verdict and its rows by check.

    Attributes:
        verdict: an outcome, `not run`, or `not judged` if the requirement applies but was not judged.
        page: the URL of the requirement's page; empty if there is none.
        explain: the command that explains the requirement; empty if this version of the suite has no such requirement.
        is_counted: whether the requirement counts: its transport was judged, and its extension was not deselected.
        reasons: why the requirement was not judged; empty if it was judged.
        needs: the roles to deploy so that the remaining rows of the requirement can run.
    """

    id: str
    level: str
    concern: str
    area: str
    extension: str
    verdict: str
    statement: str
    sources: Sequence[Sentence]
    note: str
    page: str
    explain: str
    checks: list[Rows]
    reasons: list[str]
    is_counted: bool
    needs: Sequence[str]


@dataclass(frozen=True, slots=True)
class View:
    """All contents of the pages of a report.

    Attributes:
        words: the nouns and labels for servers, or for clients.
        blocks: the unmet MUSTs by requirement, most urgent first.
        advised: the unmet SHOULDs by requirement, in the same order.
        unjudged: the rows that do not apply, by reason.
        robustness: the results of hostile requests; None if none were sent.
        not_run: a note that some rows did not run; empty if all ran.
    """

    report: Report
    words: PartyLabels
    title: str
    musts: Tally
    counts: dict[str, int]
    parts: list[ReportSection]
    requirements: list[Requirement]
    blocks: list[Block]
    advised: list[Block]
    failures: list[Group]
    stuck: list[Group]
    advice: list[Group]
    observations: list[Observation]
    unjudged: dict[str, list[ReportRow]]
    not_run: str
    robustness: Robustness | None
    packs: list[PackResults]

    @property
    def verdict(self) -> str:
        """The verdict: `conformant`, `partial`, `nonconformant`, `incomplete` or `narrowed`."""
        return self.report["verdict"]

    @property
    def verdict_in_words(self) -> str:
        """The verdict for use in a sentence; a nonconformant party may still be interoperable."""
        return describe_report_verdict(self.report)

    @property
    def limits(self) -> str:
        """The declared limits of the target in words; empty if there are none."""
        return describe_limits_of(self.report)

    @property
    def patterns(self) -> Sequence[Pattern]:
        """The patterns of failed requests; see `failure_patterns`."""
        return self.report.get("failure_patterns", ())

    @property
    def coverage(self) -> CoverageEntry:
        """The unjudged MUSTs and the roles to deploy; all empty if all MUSTs are judged."""
        return self.report.get("coverage", _FULL_COVERAGE)

    @property
    def standing(self) -> str:
        """One word for a badge: `interoperable` if the party is interoperable but not conformant, else the verdict."""
        return INTEROPERABLE if self.report["interoperable"] and self.verdict != CONFORMANT else self.verdict

    def choose_blocks(self, outcome: Outcome) -> list[Block]:
        """Return the unmet requirements of rows with an outcome; with a baseline, only of rows that are not in it."""
        new = self.gate and {*self.gate["new"]}
        rows = [row for row in self.report["rows"] if new is None or format_label(row) in new]
        return build_blocks(rows, outcome, patterns=self.patterns if outcome is Outcome.FAIL else ())

    def sentence(self, name: str) -> str:
        """Return the sentence with the verdict; `name` is the title of the report, formatted for the page."""
        return format_sentence(name, self.verdict, self.report["interoperable"], self.limits)

    @property
    def is_of_client(self) -> bool:
        """Whether a client was judged."""
        return find_party(self.report) is Party.CLIENT

    @property
    def definitions(self) -> dict[str, str]:
        """The words in the sentence about MUSTs that need an explanation, such as "not judged", and their meanings."""
        return {word: MEANINGS[word] for word in self.musts.words}

    @property
    def gate(self) -> Gate | None:
        """The differences of the run from its baseline, or None without one."""
        return self.report.get("gate")

    @property
    def addresses(self) -> list[str]:
        """The addresses of the target over HTTP and gRPC."""
        target = self.report["target"]
        return list(dict.fromkeys((target["url"], target.get("grpc", target["url"]))))

    def rerun(self, check: str) -> str:
        """Return the command that runs only this check; "..." stands for values that a report does not contain."""
        from conformance.clients.traffic import is_watch_check  # lazy: a terminal does not need it

        if is_watch_check(check):
            return "oip-conformance client watch -- ..."
        if self.is_of_client:
            return f"pytest --client-adapter=... -k {shlex.quote(check)}"
        options, roles = self.report["options"], self.report["target"]["roles"]
        judged = {row["row"].rpartition("@")[2] for row in self.report["rows"] if row["check"] == check}
        given = {
            **dict(map(_find_address_option, self.addresses)),
            "--target-config": "..." if any(role != model for role, model in roles.items()) else None,
            "--target-model": [name for name in options.get("models", ()) if name in judged],
            "--target-extension": [pack["name"] for pack in self.report.get("packs", ())],
            "--target-header": [f"{name}: ..." for name in options["headers"]],
        }
        return shlex.join(["pytest", *format_arguments(given), "-k", check])


def _find_address_option(address: str) -> tuple[str, str]:
    """Return the option for an address of the target, and its value."""
    kind = "grpc" if address.startswith(("grpc://", "grpcs://")) else "url"
    return f"--target-{kind}", address.removeprefix("grpc://")


def build_view(report: Report) -> View:
    """Compute the view of a report that matches `schemas/report.schema.json`."""
    checks, target = report["rows"], report["target"]
    complete = report["footer"]["complete"]
    return View(
        report,
        find_labels(find_party(report)),
        escape_text(
            " ".join(part for part in (target["name"], target["version"]) if part) or target["url"], MAX_TITLE_CHARS
        ),
        tally_report(report),
        _count_outcomes(checks),
        _build_sections(report),
        _build_requirements(report),
        build_blocks(checks, Outcome.FAIL, Outcome.KNOWN_FAILURE, patterns=report.get("failure_patterns", ())),
        build_blocks(checks, Outcome.ADVISORY),
        build_groups(checks, Outcome.FAIL, Outcome.KNOWN_FAILURE, Outcome.FIXED),
        build_groups(checks, Outcome.ERROR, Outcome.BLOCKED),
        build_groups(checks, Outcome.ADVISORY),
        collect_observations(checks),
        group_unjudged(checks),
        "" if complete else "Some rows of the suite did not run; this report says nothing about them.",
        robustness.from_report(report),
        pack_results.from_report(report),
    )


def describe_gate(gate: Gate) -> str:
    """Return the result of the gate and the differences from the baseline, on one line."""
    counts = [f"{len(gate[kind])} {kind}" for kind in ("new", "fixed", "stale", "known") if gate[kind]]
    return f"{'passed' if gate['passed'] else 'not passed'}{': ' if counts else ''}{', '.join(counts)}"


def _count_outcomes(checks: Iterable[ReportRow]) -> dict[str, int]:
    counts = Counter(check["outcome"] for check in checks)
    return {outcome: counts[outcome] for outcome in OUTCOME_WORDINGS if counts[outcome]}


# --- extensions and areas ------------------------------------------------------------------------------------------


def _build_sections(report: Report) -> list[ReportSection]:
    extension_of = {entry["id"]: entry["extension"] for entry in report["requirements"]}
    parts = []
    for name, entry in report["extensions"].items():
        own = [
            check
            for check in report["rows"]
            if name in map(extension_of.get, _list_counted_requirements(check, report))
        ]
        areas = [
            ReportSection(rows[0]["area"], _count_outcomes(rows)) for rows in group_by(own, lambda check: check["area"])
        ]
        shown = areas if entry["offered"] else []
        musts = {concern: f"{found['met']}/{found['of']}" for concern, found in entry["musts"].items()}
        words = describe_verdict(entry["verdict"], entry["interoperable"])
        parts.append(
            ReportSection(
                name,
                _count_outcomes(own),
                entry["offered"],
                describe_absence(report, name),
                entry["verdict"],
                words,
                shown,
                musts,
            )
        )
    return parts


def _list_counted_requirements(check: ReportRow, report: Report) -> Sequence[str]:
    """Return the requirements that decide for which extensions a row counts; see `verdict.find_extensions`."""
    if find_party(report) is Party.SERVER:
        return check["requirements"][:1]
    return [find_requirement(check)] if check["failure"] else check["requirements"]


# --- requirements ------------------------------------------------------------------------------------------------


def _build_requirements(report: Report) -> list[Requirement]:
    rows: dict[str, list[ReportRow]] = {}
    for check in report["rows"]:
        for requirement in check["requirements"]:
            rows.setdefault(requirement, []).append(check)
    counting = {entry["id"] for entry in select_requirements(report["requirements"], report["options"]["extensions"])}
    found = []
    for entry in report["requirements"]:
        own = rows.get(entry["id"], [])
        is_run = own or report["footer"]["complete"]
        found.append(
            _build_requirement(
                entry, own, _find_verdict(entry) if is_run else NOT_RUN, is_counted=entry["id"] in counting
            )
        )
    return found


def _find_verdict(entry: RequirementEntry) -> str:
    is_unjudged = entry["verdict"] == Outcome.NOT_APPLICABLE and "unjudged" in entry
    return NOT_JUDGED if is_unjudged else entry["verdict"]


def _build_requirement(
    entry: RequirementEntry, rows: Sequence[ReportRow], verdict: str, *, is_counted: bool
) -> Requirement:
    known = ledger.load().get(entry["id"])
    own = group_by(rows, lambda row: row["check"])
    checks = [Rows(found[0]["check"], found[0]["claim"], _group_by_outcome(found)) for found in own]
    is_open = entry["verdict"] in (Outcome.NOT_APPLICABLE, Outcome.BLOCKED, Outcome.ERROR)
    gap = entry.get("unjudged")
    return Requirement(
        entry["id"],
        entry["level"],
        entry["concern"],
        entry["area"],
        entry["extension"],
        verdict,
        known.statement if known else "",
        known.sources if known else (),
        known.note if known else "",
        known.url if known else "",
        known.explain if known else "",
        checks,
        list(dict.fromkeys(_list_reasons(rows, gap["why"] if gap else ()))) if is_open else [],
        is_counted,
        gap["needs"] if gap else (),
    )


def _list_reasons(rows: Sequence[ReportRow], why: Sequence[str]) -> Iterator[str]:
    """Yield the reasons why a requirement was not judged; rows that only lack a role add no reason."""
    yield from (GAP_REASONS[GapReason(each)] for each in why if each != GapReason.CANNOT)
    yield from (summarize_message(row) for row in rows if row["message"] and find_missing_role(row) is None)


def _group_by_outcome(rows: Sequence[ReportRow]) -> dict[str, list[ReportRow]]:
    found = {outcome: [row for row in rows if row["outcome"] == outcome] for outcome in OUTCOME_WORDINGS}
    return {outcome: rows for outcome, rows in found.items() if rows}
