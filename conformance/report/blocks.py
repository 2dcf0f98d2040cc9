"""Groups the failing rows of a run by requirement, most urgent first.

0. Requirements whose rows end the server: nobody gets anything afterwards.
1. Requirements with a failure pattern that explains many rows. "Many" is at least the number of failing rows that no
   pattern explains, in the requirement with the most such rows.
2. Other requirements: those about wrong requests (`Concern.REFUSAL`) after the others, which every client notices; of
   each kind first those whose bugs make other answers wrong (`SPREADING`), then those with a successful answer whose
   values are wrong, since nothing tells a client so; then the protocol before its extensions, then those of several
   failing rows before those of one, then by the share of their rows that fail. The share counts for less if a
   requirement has few rows. Requirements that fail only in golden cases come after the others of their kind, and so do
   relations, which do not tell which of two answers is wrong.
3. Requirements whose failing rows are explained by the patterns of other requirements.

A golden case tests many requirements at once. If a dedicated check of one of these requirements fails as well,
the failing golden case joins the block of that requirement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from conformance.report.findings import Group, build_group, find_requirement, get_failure, group_by
from conformance.spec import ledger
from conformance.spec.extensions import EXTENSIONS, PROTOCOL, ROBUSTNESS
from conformance.spec.ledger import Concern
from conformance.spec.outcome import Outcome
from conformance.spec.report import Pattern, ReportRow

GOLDEN_PREFIX = "golden."  # prefix of the ids of checks that test many requirements at once
EXTENSION_ORDER = (PROTOCOL, *EXTENSIONS, ROBUSTNESS)
# Number of passing rows to add when the share of failing rows is computed: 1 of 1 row shows less than 9 of 10.
ADDED_ROWS = 3
RELATIONS = (
    "BIN-SAME-AS-JSON-I",
    "BIN-SAME-AS-JSON-O",
    "GRPC-RAW-AS-TYPED",
    "GRPC-SAME-AS-HTTP",
    "GRPC-CLS-SAME-AS-HTTP",
)
# Requirements whose bugs make the answers to other requests wrong as well, the most basic first.
SPREADING = ("HTTP-LENGTH", "OIP-ISOLATION")
_USUAL_TYPES = frozenset({"application/json", "application/octet-stream"})
NO_VERDICT = (Outcome.NOT_APPLICABLE, Outcome.BLOCKED, Outcome.ERROR)


@dataclass(frozen=True, slots=True)
class Block:
    """An unmet requirement and its failing rows.

    Attributes:
        groups: the rows by check, at least one group; the first row of the first group is the best example.
        judged: the number of rows that test the requirement and reached a verdict.
        patterns: the report's failure patterns of this requirement; they may cover rows of other requirements.
    """

    requirement: str
    groups: list[Group]
    judged: int
    patterns: Sequence[Pattern] = ()

    @property
    def first(self) -> Group:
        """The group with the best example; it also has the level, statement and sources of the requirement."""
        return self.groups[0]

    @property
    def count(self) -> int:
        """The number of failing rows."""
        return sum(len(group.rows) for group in self.groups)

    @property
    def ends_server(self) -> bool:
        """Whether a failing row ends the server."""
        return any(get_failure(row).get("ends_server") for group in self.groups for row in group.rows)

    @property
    def corrupts_values(self) -> bool:
        """Whether a failing row got a successful answer with wrong values."""
        return any(get_failure(row).get("wrong_values") for group in self.groups for row in group.rows)


def build_blocks(checks: Sequence[ReportRow], *outcomes: str, patterns: Sequence[Pattern] = ()) -> list[Block]:
    """Return a block for each requirement that is unmet in rows with these outcomes, most urgent first."""
    missing = [check for check in checks if check["outcome"] in outcomes and check["failure"]]
    dedicated = {find_requirement(check) for check in missing if not _is_golden(check)}
    judged = _count_judged_rows(checks)
    found = []
    for rows in group_by(missing, lambda check: _choose_requirement(check, dedicated)):
        requirement = _choose_requirement(rows[0], dedicated)
        ordered = sorted(rows, key=partial(_rank_example, requirement))
        groups = [build_group(own) for own in group_by(ordered, lambda row: row["check"])]
        own_patterns = [pattern for pattern in patterns if pattern["requirement"] == requirement]
        found.append(Block(requirement, groups, max(judged[requirement], len(rows)), own_patterns))
    explained = _count_explained(patterns)
    max_unexplained = max((block.count - explained[block.requirement] for block in found), default=0)
    return sorted(
        found,
        key=lambda block: (
            not block.ends_server,
            *_rank_by_pattern(block, explained, max_unexplained),
            *_compute_urgency(block),
        ),
    )


def _count_explained(patterns: Sequence[Pattern]) -> Counter[str]:
    """Count, per requirement, the failing rows that patterns explain."""
    explained: Counter[str] = Counter()
    for pattern in patterns:
        explained.update(pattern["missed"])
    return explained


def _rank_by_pattern(block: Block, explained: Counter[str], max_unexplained: int) -> tuple[int, int]:
    """Return a sort key: first the blocks with a pattern of many rows, last the blocks that other patterns explain."""
    rows = max((pattern["rows"] for pattern in block.patterns), default=0)
    if rows and rows >= max_unexplained:
        return 0, -rows
    return (2 if not rows and explained[block.requirement] >= block.count else 1), 0


def _is_golden(check: ReportRow) -> bool:
    return check["check"].startswith(GOLDEN_PREFIX)


def _rank_example(requirement: str, row: ReportRow) -> tuple[bool, bool, bool, bool]:
    """Return a sort key for the rows of a requirement, the best example first."""
    is_other = find_requirement(row) != requirement
    return _is_golden(row), is_other, requirement not in row["requirements"], _is_odd(row)


def _is_odd(check: ReportRow) -> bool:
    """Return whether the failing request has a content type that is not the protocol's, or was sent in an odd way."""
    evidence = get_failure(check).get("evidence")
    head = evidence["request"]["head"] if evidence else []
    types = [line.partition(":")[2].strip() for line in head if line.lower().startswith("content-type:")]
    return any(line.startswith("(") for line in head) or not _USUAL_TYPES.issuperset(types)


def _choose_requirement(check: ReportRow, dedicated: set[str]) -> str:
    """Return the requirement whose block gets a failing row; the module's docstring explains it for golden cases."""
    missed = find_requirement(check)
    if not _is_golden(check) or missed in dedicated:
        return missed
    return next((name for name in check["requirements"] if name in dedicated), missed)


def _count_judged_rows(checks: Sequence[ReportRow]) -> Counter[str]:
    """Count, per requirement, the rows that reached a verdict."""
    return Counter(name for check in checks if check["outcome"] not in NO_VERDICT for name in check["requirements"])


def _compute_urgency(block: Block) -> tuple[bool, int, bool, bool, int, bool, float, int]:
    """Return a sort key for blocks, most urgent first.

    A bug that meets other requests by chance fails a row here and there, of requirements that it does not break.
    """
    known = list(ledger.load())
    entry = ledger.load().get(block.requirement)
    depth = EXTENSION_ORDER.index(entry.extension) if entry else len(EXTENSION_ORDER)
    # No dedicated check shows what is wrong.
    is_vague = _is_golden(block.first.rows[0]) or block.requirement in RELATIONS
    share = block.count / (block.judged + ADDED_ROWS)
    name = block.requirement.partition("/")[0]
    return (
        entry is not None and entry.concern is Concern.REFUSAL,
        SPREADING.index(name) if name in SPREADING else len(SPREADING),
        not block.corrupts_values,
        is_vague,
        depth,
        block.count == 1,
        -share,
        known.index(block.requirement) if entry else len(known),
    )
