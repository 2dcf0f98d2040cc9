"""The suite: a package for each area, in which every module is made of checks. `support` explains how one is written.

A check belongs to the suite by standing in a module of an area's package. A package may put its modules into an `ORDER`,
that of runs and reports; nothing else hangs on it, and a module that is not named comes last. The area of a check is the
first part of its id. That is its package, but for checks that run over gRPC as over HTTP: these stand side by side.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import ModuleType

from conformance.spec.check import Check, format_label
from conformance.spec.extensions import CLIENT, CLIENT_GRPC, ROBUSTNESS
from conformance.spec.user_error import UserError

# Area -> package, in the order in which a reader wants them: what is offered, the frame, the contents, what is built on
# both. A package is never called like a module of Python's own, or like a dependency.
PACKAGES: Mapping[str, str] = {
    "metadata": "metadata",
    "headers": "headers",
    "sizes": "sizes",
    "datatypes": "datatypes",
    "bytes": "byte_layout",
    "ordering": "ordering",
    "overrides": "overrides",
    "raw": "raw",
    "classification": "classification",
    "json": "json_documents",
    "errors": "errors",
    "state": "state",
    "golden": "golden",
    "walk": "walk",
    "grpc": "grpc_calls",
    "robustness": "robustness",
    "client": "client",
    "client-grpc": "client",
}

# What is judged over gRPC; all other areas are about HTTP.
GRPC = "grpc"
# What a server withstands (`ROBUSTNESS`) is sent only where that is asked for.
# What is judged of clients, over each transport; all other areas are about servers.
CLIENT_AREAS = (CLIENT, CLIENT_GRPC)
AREAS = tuple(area for area in PACKAGES if area not in (ROBUSTNESS, *CLIENT_AREAS))


class SuiteError(UserError):
    """The suite itself is broken: its checks cannot be told apart."""


def import_modules(package: str) -> Iterator[ModuleType]:
    """Yield the modules of an area's package: those of its `ORDER`, then all others by name."""
    home = importlib.import_module(f"{__name__}.{package}")
    names = sorted(found.name for found in pkgutil.iter_modules(home.__path__))
    order = getattr(home, "ORDER", ())
    for name in sorted(names, key=lambda name: order.index(name) if name in order else len(order)):
        yield importlib.import_module(f"{__name__}.{package}.{name}")


@cache
def load_every_check(*, of_clients: bool) -> tuple[Check, ...]:
    """Return every check of servers, or of clients, package by package and in the order of their texts.

    Raises:
        SuiteError: two checks have one id, or two rows of a check.
    """
    areas = CLIENT_AREAS if of_clients else [area for area in PACKAGES if area not in CLIENT_AREAS]
    found = tuple(
        value
        for package in dict.fromkeys(PACKAGES[area] for area in areas)
        for module in import_modules(package)
        for made in vars(module).values()
        if isinstance(made, Check) and made.body.__module__ == module.__name__
        for value in (made, *made.also)
    )
    expect_unique(found)
    return found


def expect_unique(checks: Iterable[Check]) -> None:
    """Expect that checks, and the rows of each, can be told apart by their ids.

    Raises:
        SuiteError: they cannot, or two checks of an area by the name of their function, which is what `pytest -k` takes;
            the message names the check, and the row.
    """
    names: dict[str, str] = {}
    functions: dict[tuple[str, str], str] = {}
    for check in checks:
        body = f"{check.body.__module__}.{check.name}"
        if check.id in names:
            raise SuiteError(f"the suite is broken: two checks have the id {check.id}: {names[check.id]} and {body}")
        names[check.id] = body
        other = functions.setdefault((check.area, check.name), check.id)
        if other != check.id:
            raise SuiteError(f"the suite is broken: {other} and {check.id} are both called {check.name}, in {body}")
        ids: set[str] = set()
        for row in check.rows:
            if row.id in ids:
                raise SuiteError(
                    f"the suite is broken: two rows are called {format_label(check.id, row.id)}, in {body}"
                )
            ids.add(row.id)


@cache
def list_area_checks(area: str) -> tuple[Check, ...]:
    """Return the checks of one area, those of its own package first."""
    home = f"{__name__}.{PACKAGES[area]}."
    found = [check for check in load_every_check(of_clients=area in CLIENT_AREAS) if check.area == area]
    return tuple(sorted(found, key=lambda check: not check.body.__module__.startswith(home)))


@cache
def load() -> tuple[Check, ...]:
    """Return every check that is run on model roles, or without any model."""
    return tuple(check for area in AREAS for check in list_area_checks(area))


def map_checks_by_requirement() -> dict[str, list[str]]:
    """Return ledger id -> ids of the checks that answer for it, in the order of the suite."""
    answers: dict[str, list[str]] = {}
    for check in load():
        for requirement in {r: None for row in check.rows for r in check.requirements(row)}:
            answers.setdefault(requirement, []).append(check.id)
    return answers
