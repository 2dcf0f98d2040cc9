"""The suite: one module per area, each a list of checks. `conformance.check` says what a check is."""

from __future__ import annotations

import importlib
from functools import cache

from conformance.check import Check

# In the order in which a reader wants them: what is offered, the frame, the contents, what is built on both.
MODULES = (
    "metadata",
    "headers",
    "sizes",
    "datatypes",
    "bytes",
    "ordering",
    "overrides",
    "raw",
    "classification",
    "json",
    "errors",
    "state",
    "golden",
    "grpc",
)

# What is judged over gRPC; all other modules are about HTTP.
GRPC = "grpc"

# Checks that no role is needed for: each is run on every model that is named with --model, and not at all without.
RELATIONS = "relations"


@cache
def of_module(name: str) -> tuple[Check, ...]:
    """Return the checks of one module, in the order of its text."""
    module = importlib.import_module(f"{__name__}.{name}")
    return tuple(value for value in vars(module).values() if isinstance(value, Check))


@cache
def load() -> tuple[Check, ...]:
    """Return every check of the suite.

    Raises:
        ValueError: two checks have one id, or two rows of a check.
    """
    checks = tuple(check for name in MODULES for check in of_module(name))
    for ids in ([check.id for check in checks], *[[f"{c.id}[{row.id}]" for row in c.rows] for c in checks]):
        twice = sorted({identity for identity in ids if ids.count(identity) > 1})
        if twice:
            raise ValueError(f"not unique: {', '.join(twice)}")
    return checks


def answers_by_requirement() -> dict[str, list[str]]:
    """Return ledger id -> ids of the checks that answer for it, in the order of the suite."""
    answers: dict[str, list[str]] = {}
    for check in load():
        for requirement in {r: None for row in check.rows for r in check.requirements(row)}:
            answers.setdefault(requirement, []).append(check.id)
    return answers
