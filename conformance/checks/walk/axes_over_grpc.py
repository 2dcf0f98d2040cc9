"""The axes of the walk over gRPC: properties of the request, of an earlier call, and of concurrent calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.checks.support.covering import Step
from conformance.checks.support.step_shrinking import Axes
from conformance.checks.walk.axes import (
    ALONE,
    AXES,
    CANCELLED,
    CONCURRENT_REQUESTS,
    CONTENTS,
    KINDS,
    NEUTRAL,
    ROLE_RULES,
    ExclusionRules,
)

BEFORE = (
    *("nothing", "near", "larger", "smaller", "other-form", "with-id", "classes-asked"),
    *("unknown-model", "unknown-output", "wrong-size", "no-contents", CANCELLED),
)
_CONCURRENT_REQUESTS: Mapping[str, Sequence[str]] = {
    "path": ("plain", "version"),
    "before": BEFORE,
    "beside": CONCURRENT_REQUESTS["beside"],
}
CALLS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "calls": {
        "role": KINDS["binary"]["role"],
        **{axis: values for axis, values in CONTENTS.items() if axis != "id"},
        "id": ("none", "ascii", "two-bytes", "four-bytes", "quotes", "long"),
        "send": ("json", "binary"),
        **_CONCURRENT_REQUESTS,
    },
    "classified-calls": {
        **{axis: KINDS["classes"][axis] for axis in ("role", "classes", "count", "values", "id", "send")},
        **_CONCURRENT_REQUESTS,
    },
}
# The server chooses the form of the outputs.
PLAIN_CALL: Step = {**NEUTRAL, "want": "raw"}


def is_excluded_call(
    kind: str, axis: str, value: str, other_axis: str, other_value: str, rules: ExclusionRules = ROLE_RULES
) -> bool:
    """Say whether two values of two axes exclude each other in a kind of call."""
    pair = {axis: value, other_axis: other_value}
    if pair.get("before") == "classes-asked" and kind == "calls":
        return True
    if rules.has_no_typed_answer(pair):
        return True
    return rules.is_excluded("classes" if kind == "classified-calls" else "", axis, value, other_axis, other_value)


def is_invalid_call(step: Step, rules: ExclusionRules = ROLE_RULES) -> bool:
    """Say whether a call with the values of a step would be impossible, invalid or too slow."""
    return rules.is_invalid(step) or rules.has_no_typed_answer(step)


SHRINKING = Axes(
    order=[axis for axis in AXES if axis not in ("send", "want", "classes")],
    neutral=PLAIN_CALL,
    alone=ALONE,
    smaller={"count": CONTENTS["count"][2:]},  # without 0, which a server may refuse alone
    forms=(
        {"send": "json", "classes": "none"},
        {"send": "binary", "classes": "none"},
        {"send": "json"},
        {"send": "binary"},
    ),
    is_invalid=is_invalid_call,
)
