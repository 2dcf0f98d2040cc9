"""The suite: a package of check modules for each area. `support` explains how to write a check.

The suite collects every function under `@check` in these modules. A package may define `ORDER`, the order of its
modules in runs and reports; unlisted modules come last. The first part of a check's id is its area, and
the check is in the package of that area. A check that runs over HTTP and gRPC has two ids, but only one module.
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

# Area -> package, in the order of reports: metadata, framing, contents, then features that build on both. No package
# has the name of a standard library module or a dependency.
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

# The area of checks over gRPC; all other areas are about HTTP.
GRPC = "grpc"
# The areas of checks on clients, one for each transport; all other areas are about servers.
# `ROBUSTNESS` runs only on request, so `AREAS` omits it.
CLIENT_AREAS = (CLIENT, CLIENT_GRPC)
AREAS = tuple(area for area in PACKAGES if area not in (ROBUSTNESS, *CLIENT_AREAS))


class SuiteError(UserError):
    """The suite itself is invalid: two checks or rows have the same id or name."""


def import_modules(package: str) -> Iterator[ModuleType]:
    """Yield the modules of an area's package: those of its `ORDER`, then all others by name."""
    home = importlib.import_module(f"{__name__}.{package}")
    names = sorted(found.name for found in pkgutil.iter_modules(home.__path__))
    order = getattr(home, "ORDER", ())
    for name in sorted(names, key=lambda name: order.index(name) if name in order else len(order)):
        yield importlib.import_module(f"{__name__}.{package}.{name}")


@cache
def load_every_check(*, of_clients: bool) -> tuple[Check, ...]:
    """Return every check of servers, or of clients, sorted by package and source order.

    Raises SuiteError: two checks, or two rows of a check, have the same id.
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
    expect_unique_ids(found)
    return found


def expect_unique_ids(checks: Iterable[Check]) -> None:
    """Raise an error if two checks, or two rows of one check, have the same id.

    Raises:
        SuiteError: an id occurs twice, or two checks of an area have the same function name, which `pytest -k` selects
            by. The message names the check and the row.
    """
    names: dict[str, str] = {}
    functions: dict[tuple[str, str], str] = {}
    for check in checks:
        body = f"{check.body.__module__}.{check.name}"
        if check.id in names:
            raise SuiteError(f"the suite is invalid: two checks have the id {check.id}: {names[check.id]} and {body}")
        names[check.id] = body
        other = functions.setdefault((check.area, check.name), check.id)
        if other != check.id:
            raise SuiteError(
                f"the suite is invalid: the functions of {other} and {check.id} are both called {check.name}, in {body}"
            )
        ids: set[str] = set()
        for row in check.rows:
            if row.id in ids:
                raise SuiteError(
                    f"the suite is invalid: two rows are called {format_label(check.id, row.id)}, in {body}"
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
    """Return the checks of servers that run by default, ordered by area."""
    return tuple(check for area in AREAS for check in list_area_checks(area))
