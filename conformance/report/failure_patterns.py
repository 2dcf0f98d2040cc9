"""Finds features that only failed requests have, for sentences such as "Every request with BYTES in JSON is refused".

Rows whose requests failed in the same way are analyzed together. A pattern names one or two features of these requests.
No request that got another kind of answer has the same features. Patterns are reported only if a few of them explain
nearly all of these
rows. Two features may occur together by chance, so a pattern of two features is reported only if no other pattern is
needed to explain these rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, combinations

from conformance.report.findings import group_by
from conformance.spec.outcome import AnswerKind, Outcome
from conformance.spec.report import Pattern
from conformance.spec.result import CheckResult, SentRequests

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


def find_patterns(results: Sequence[CheckResult]) -> list[Pattern]:
    """Return the patterns of the failed requests of a run, those that explain the most rows first."""
    sent = [result.sent for result in results if result.sent]
    failed = [
        (result.sent, result.failure.requirement)
        for result in results
        if result.sent and result.failure and result.outcome in FAILED and result.sent["answer"] in ANSWERS
    ]
    groups = group_by(failed, lambda one: (one[0]["over"], one[0]["answer"]))
    found = [pattern for alike in groups for pattern in _explain_failures(alike, sent)]
    return sorted(found, key=lambda pattern: -pattern["rows"])


def _explain_failures(failed: Sequence[tuple[SentRequests, str]], sent: Sequence[SentRequests]) -> list[Pattern]:
    """Return a few patterns that explain nearly all rows that failed in the same way, or an empty list.

    `failed`: the requests of each of these rows, and its unmet requirement.
    """
    over, answer = failed[0][0]["over"], failed[0][0]["answer"]
    others = [one for one in sent if one["over"] == over and one["answer"] != answer]
    failed_rows, other_rows = _map_features([one for one, _ in failed]), _map_features(others)
    found: list[Pattern] = []
    has_pair = False
    remaining = (1 << len(failed)) - 1
    while remaining and len(others) >= MIN_OTHERS and len(found) < MAX_PATTERNS:
        features, hit = _find_best_features(failed_rows, other_rows, remaining)
        if not hit:
            break
        remaining &= ~hit
        has_pair = has_pair or len(features) > 1
        missed = Counter(requirement for k, (_, requirement) in enumerate(failed) if hit >> k & 1)
        found.append(
            {
                "requests": " and ".join(text for text, _ in features),
                "answer": answer,
                "requirement": _choose_requirement(features, missed),
                "missed": dict(missed.most_common()),
                "rows": hit.bit_count(),
                "others": len(others),
            }
        )
    is_explained = remaining.bit_count() <= len(failed) * MAX_UNEXPLAINED
    return found if is_explained and (len(found) == 1 or not has_pair) else []


def _map_features(rows: Sequence[SentRequests]) -> dict[Feature, int]:
    """Map each feature to the bit set of the rows that have it."""
    found: dict[Feature, int] = {}
    for place, row in enumerate(rows):
        for text, requirement in row["features"]:
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


def format_pattern(pattern: Pattern) -> str:
    """Format a failure pattern of a report as a sentence."""
    counts = f"{pattern['rows']} of {pattern['rows']} rows; 0 of {pattern['others']} other rows"
    return f"Every request {pattern['requests']} {ANSWERS[AnswerKind(pattern['answer'])]} ({counts})"
