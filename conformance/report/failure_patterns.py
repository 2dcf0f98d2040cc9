"""Finds features that only failed requests have, for sentences such as "Every request with BYTES in JSON is refused".

Rows whose requests failed in the same way are analyzed together. A pattern names one or two features of these requests.
No request that got another kind of answer has the same features. Patterns are reported only if a few of them explain
nearly all of these
rows. Two features may occur together by chance, so a pattern of two features is reported only if no other pattern is
needed to explain these rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, combinations
from typing import Any

from conformance.report.findings import Entry, group_by
from conformance.spec.outcome import AnswerKind, Outcome

MAX_PATTERNS = 3  # patterns per group of rows that failed in the same way
MAX_UNEXPLAINED = 0.1  # the share of these rows that may remain unexplained
MIN_OTHERS = 20  # rows with other answers; fewer cannot tell features apart
MIN_ROWS = {1: 2, 2: 4}  # rows that a pattern must explain, by its number of features; pairs coincide more often
FAILED = (Outcome.FAIL, Outcome.KNOWN_FAILURE)
ANSWERS = {
    AnswerKind.REFUSED: "is refused",
    AnswerKind.SERVER_ERROR: "gets a server error",
    AnswerKind.NONE: "gets no answer",
}
ANY_REQUEST = ("OIP-ANSWER", "OIP-ANSWER/grpc")  # the requirement for features without their own
Feature = tuple[str, str]
RowsByFeature = Mapping[Feature, int]  # a bit set: 1 << k stands for row k


@dataclass(frozen=True, slots=True)
class FailurePattern:
    """A pattern: one or two features that only requests with the same kind of failure have.

    Attributes:
        requests: the features, as the end of "Every request ...", such as "with BYTES in JSON".
        answer: an `AnswerKind`.
        requirement: the requirement that the pattern violates.
        missed: requirement id -> the number of rows of the pattern that do not meet it.
        rows: the number of rows that fail in this way.
        others: the number of rows over the same transport that got another answer; no such row has the features.
    """

    requests: str
    answer: str
    requirement: str
    missed: Mapping[str, int]
    rows: int
    others: int

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of a report."""
        return asdict(self)


def find_patterns(rows: Iterable[Entry]) -> list[FailurePattern]:
    """Return the patterns of the failed requests of a run, those that explain the most rows first.

    Args:
        rows: results from `CheckResult.to_dict`, including `sent`.
    """
    sent = [row for row in rows if row.get("sent")]
    failed = [row for row in sent if row["outcome"] in FAILED and row["sent"]["answer"] in ANSWERS]
    found = [pattern for alike in group_by(failed, _find_failure_kind) for pattern in _explain_failures(alike, sent)]
    return sorted(found, key=lambda pattern: -pattern.rows)


def _find_failure_kind(row: Entry) -> tuple[str, str]:
    return row["sent"]["over"], row["sent"]["answer"]


def _explain_failures(failed: Sequence[Entry], sent: Sequence[Entry]) -> list[FailurePattern]:
    """Return a few patterns that explain nearly all rows that failed in the same way, or an empty list."""
    over, answer = _find_failure_kind(failed[0])
    others = [row for row in sent if row["sent"]["over"] == over and row["sent"]["answer"] != answer]
    failed_rows, other_rows = _map_features(failed), _map_features(others)
    found: list[FailurePattern] = []
    has_pair = False
    remaining = (1 << len(failed)) - 1
    while remaining and len(others) >= MIN_OTHERS and len(found) < MAX_PATTERNS:
        features, hit = _find_best_features(failed_rows, other_rows, remaining)
        if not hit:
            break
        remaining &= ~hit
        has_pair = has_pair or len(features) > 1
        missed = Counter(row["failure"]["requirement"] for k, row in enumerate(failed) if hit >> k & 1)
        text = " and ".join(text for text, _ in features)
        requirement = _choose_requirement(features, missed)
        found.append(
            FailurePattern(text, answer, requirement, dict(missed.most_common()), hit.bit_count(), len(others))
        )
    is_explained = remaining.bit_count() <= len(failed) * MAX_UNEXPLAINED
    return found if is_explained and (len(found) == 1 or not has_pair) else []


def _map_features(rows: Sequence[Entry]) -> dict[Feature, int]:
    """Map each feature to the bit set of the rows that have it."""
    found: dict[Feature, int] = {}
    for place, row in enumerate(rows):
        for text, requirement in row["sent"]["features"]:
            found[text, requirement] = found.get((text, requirement), 0) | 1 << place
    return found


def _find_best_features(
    failed: RowsByFeature, others: RowsByFeature, remaining: int
) -> tuple[tuple[Feature, ...], int]:
    """Return the features that the most remaining rows share and `others` lack, and the bit set of these rows."""
    names = [name for name, bits in failed.items() if bits & remaining]
    best: tuple[Feature, ...] = ()
    covered = 0
    for some in chain(((name,) for name in names), combinations(names, 2)):
        bits, against = remaining, -1
        for name in some:
            bits, against = bits & failed[name], against & others.get(name, 0)
        if not against and bits.bit_count() >= max(MIN_ROWS[len(some)], covered.bit_count() + 1):
            best, covered = some, bits
    return best, covered


def _choose_requirement(features: Sequence[Feature], missed: Counter[str]) -> str:
    """Return the unmet requirement to report: of a feature, else `OIP-ANSWER`, else the most frequent one."""
    wanted = [*(requirement for _, requirement in features), *ANY_REQUEST]
    return next((name for name in wanted if name in missed), missed.most_common(1)[0][0])


def format_pattern(pattern: Mapping[str, Any]) -> str:
    """Format a failure pattern of a report as a sentence."""
    counts = f"{pattern['rows']} of {pattern['rows']} rows; 0 of {pattern['others']} other rows"
    return f"Every request {pattern['requests']} {ANSWERS[AnswerKind(pattern['answer'])]} ({counts})"
