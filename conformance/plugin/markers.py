"""What selects rows: markers by level, extension, area and transport for `-m`, names of areas and checks for `-k`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

import pytest

from conformance import checks
from conformance.spec import ledger
from conformance.spec.check import Check, Row
from conformance.spec.extensions import EXTENSIONS, PROTOCOL, ROBUSTNESS, TRANSPORTS
from conformance.spec.ledger import Party

# From the strongest to the weakest.
LEVELS: Mapping[str, str] = {
    "must": "a row that answers for a MUST",
    "should": "a row that answers for a SHOULD, and for no MUST",
    "may": "a row that answers for nothing stronger than a MAY",
    "observe": "a row that observes what the documents leave open",
}
AREA, OVER = "area_", "over_"
_OPERATORS = ("and", "or", "not")
# A name in an expression, and the arguments that may follow it: as pytest reads them.
_NAME = re.compile(r"[\w:+\-.\[\]\\/]+")
_ARGUMENTS = re.compile(r"\([^()]*=[^()]*\)")


def describe_markers() -> Mapping[str, str]:
    """Return every marker of the suite, and what it means."""
    return {
        **LEVELS,
        PROTOCOL: "a row about what lies beneath the extensions",
        ROBUSTNESS: "a row about what a server withstands, under --conformance-robustness",
        **{name: f"a row about the extension {name}" for name in EXTENSIONS},
        **{f"{AREA}{name}": f"a row of the area {name}" for name in checks.PACKAGES},
        **{f"{OVER}{name}": f"a row that is judged over {name}" for name in TRANSPORTS},
    }


def list_markers(check: Check, row: Row) -> Iterator[str]:
    """Yield the markers of a row."""
    yield from _of_requirements(check.requirements(row))
    yield f"{AREA}{check.area}"
    yield from (f"{OVER}{transport}" for transport in check.over)


@cache
def _of_requirements(names: tuple[str, ...]) -> tuple[str, str]:
    """Return level and extension of a row that answers for these requirements."""
    requirements = [ledger.get_requirement(name) for name in names]
    level = min((str(entry.level).lower() for entry in requirements), key=list(LEVELS).index)
    return level, str(requirements[0].extension)


@cache
def make_marker(name: str) -> pytest.MarkDecorator:
    """Return a marker of the suite as pytest puts it on an item; thousands of rows have the same few."""
    decorator: pytest.MarkDecorator = getattr(pytest.mark, name)
    return decorator


def register(config: pytest.Config) -> None:
    """Make the markers known to pytest, and see that `-m` names no other.

    Raises:
        pytest.UsageError: it does.
    """
    for name, meaning in describe_markers().items():
        config.addinivalue_line("markers", f"{name}: oip-conformance: {meaning}.")
    registered = {re.split(r"[:(]", line)[0].strip() for line in config.getini("markers")}
    asked = _NAME.findall(_ARGUMENTS.sub("", config.option.markexpr))
    unknown = [name for name in asked if name not in _OPERATORS and name not in registered]
    if unknown:
        raise pytest.UsageError(f"-m: there is no marker {unknown[0]!r}, but {', '.join(describe_markers())}")


# --- names for -k -----------------------------------------------------------------------------------------------------
# pytest takes a word for a part of a name, so that `raw` would be every row with those letters in it. Here a word that
# is the name of an area, or the id of a check, is replaced by one that is part of no other name.

# A word in an expression, as pytest reads it.
_WORD = re.compile(r"[\w:+\-.\[\]\\/]+")


def list_keywords(check: Check, row: Row) -> Iterator[str]:
    """Yield the words that name a row, beside that of its pytest item."""
    yield from (_exactly(check.area), _exactly(check.id))
    yield from (check.id, check.name, *check.requirements(row))


def make_exact(config: pytest.Config, party: Party) -> None:
    """Replace the words of `-k` that are the name of an area, or the id of a check of who is judged."""
    if not config.option.keyword:
        return
    areas = [area for area in checks.PACKAGES if (area in checks.CLIENT_AREAS) == (party is Party.CLIENT)]
    ids = (check.id for area in areas for check in checks.list_area_checks(area))
    names = {name.lower() for name in (*checks.PACKAGES, *ids)}

    def replaced(word: re.Match[str]) -> str:
        return _exactly(word[0].lower()) if word[0].lower() in names else word[0]

    config.option.keyword = _WORD.sub(replaced, config.option.keyword)


def _exactly(name: str) -> str:
    """Return a word for a name that is found in none that the name is a part of."""
    return f":{name}:"
