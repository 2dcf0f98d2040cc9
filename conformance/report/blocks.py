"""What to fix, and in which order: the rows of a run that miss a requirement, together, one block for each.

What explains the most comes first: a requirement whose pattern covers at least as many rows as any other requirement
has that no pattern explains. What other patterns explain comes last. In between, what lies deeper comes first: the
protocol before its extensions, then what more of the rows miss that ask for it. A golden case asks for much at once;
where a check of one thing alone misses what the case misses, the case stands there, and where none does, behind these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from conformance.report.findings import Entry, Group, build_group, group_by
from conformance.spec import ledger
from conformance.spec.extensions import EXTENSIONS, PROTOCOL, ROBUSTNESS
from conformance.spec.outcome import Outcome

GOLDEN_PREFIX = "golden."  # how the ids of checks begin that ask for much at once
EXTENSION_ORDER = (PROTOCOL, *EXTENSIONS, ROBUSTNESS)
NO_VERDICT = (Outcome.NOT_APPLICABLE, Outcome.BLOCKED, Outcome.ERROR)


@dataclass(frozen=True, slots=True)
class Block:
    """A requirement that is not met, and the rows that show it.

    Attributes:
        groups: the rows by check, at least one; the first row of the first shows it best.
        judged: how many rows of the run ask for it and came to a verdict.
        patterns: what its failed requests share, and others that fail for the same reason, as the report has them.
    """

    requirement: str
    groups: list[Group]
    judged: int
    patterns: Sequence[Entry] = ()

    @property
    def first(self) -> Group:
        """The group that shows it best; it has the level, the statement and the sources."""
        return self.groups[0]

    @property
    def count(self) -> int:
        """How many rows miss it."""
        return sum(len(group.rows) for group in self.groups)


def build_blocks(checks: Sequence[Entry], *outcomes: str, patterns: Sequence[Entry] = ()) -> list[Block]:
    """Return the requirements that rows with these outcomes miss, the one to be fixed first at the head.

    Args:
        checks: of the run.
        outcomes: of the rows that are meant.
        patterns: what failed requests share, as the report has it.
    """
    missing = [check for check in checks if check["outcome"] in outcomes and check["failure"]]
    dedicated = {check["failure"]["requirement"] for check in missing if not _is_golden(check)}
    judged = _judged(checks)
    found = []
    for rows in group_by(missing, lambda check: _home(check, dedicated)):
        requirement = _home(rows[0], dedicated)
        ordered = sorted(rows, key=lambda row: (_is_golden(row), row["failure"]["requirement"] != requirement))
        groups = [build_group(own) for own in group_by(ordered, lambda row: row["check"])]
        own_patterns = [pattern for pattern in patterns if pattern["requirement"] == requirement]
        found.append(Block(requirement, groups, max(judged[requirement], len(rows)), own_patterns))
    explained = _count_explained(patterns)
    most = max((block.count - explained[block.requirement] for block in found), default=0)
    return sorted(found, key=lambda block: (*_rank(block, explained, most), *_urgency(block)))


def _count_explained(patterns: Sequence[Entry]) -> Counter[str]:
    """Return how many rows that miss a requirement patterns explain."""
    explained: Counter[str] = Counter()
    for pattern in patterns:
        explained.update(pattern["missed"])
    return explained


def _rank(block: Block, explained: Counter[str], most: int) -> tuple[int, int]:
    """Return 0 of a block whose pattern explains most, with how much; 2 of one that others explain; else 1."""
    rows = max((pattern["rows"] for pattern in block.patterns), default=0)
    if rows and rows >= most:
        return 0, -rows
    return (2 if not rows and explained[block.requirement] >= block.count else 1), 0


def _is_golden(check: Entry) -> bool:
    return bool(check["check"].startswith(GOLDEN_PREFIX))


def _home(check: Entry, dedicated: set[str]) -> str:
    """Return the requirement in whose block a row stands."""
    missed: str = check["failure"]["requirement"]
    if not _is_golden(check) or missed in dedicated:
        return missed
    return next((name for name in check["requirements"] if name in dedicated), missed)


def _judged(checks: Sequence[Entry]) -> Counter[str]:
    """Return how many rows came to a verdict about each requirement."""
    return Counter(name for check in checks if check["outcome"] not in NO_VERDICT for name in check["requirements"])


def _urgency(block: Block) -> tuple[bool, int, float, int]:
    """Return a key that sorts what is to be fixed first to the head."""
    known = list(ledger.load())
    entry = ledger.load().get(block.requirement)
    depth = EXTENSION_ORDER.index(entry.extension) if entry else len(EXTENSION_ORDER)
    is_golden = _is_golden(block.first.rows[0])  # something is wrong, and no check of one thing says what
    return is_golden, depth, -block.count / block.judged, known.index(block.requirement) if entry else len(known)
