"""Selection of rows: markers for `-m` (level, extension, area, transport), and areas and ids of checks for `-k`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

import pytest

from conformance import checks
from conformance.judging import packs
from conformance.spec import ledger
from conformance.spec.check import Case
from conformance.spec.extensions import EXTENSIONS, PROTOCOL, ROBUSTNESS, TRANSPORTS
from conformance.spec.ledger import Party

# From the strongest to the weakest.
LEVELS: Mapping[str, str] = {
    "must": "a row that judges a MUST",
    "should": "a row that judges a SHOULD, and no MUST",
    "may": "a row that judges a MAY, and no MUST or SHOULD",
    "observe": "a row that only records behaviour that the documents leave open",
}
AREA, OVER = "area_", "over_"
_OPERATORS = ("and", "or", "not")
# A name in an expression and its optional arguments, as pytest parses them.
_NAME = re.compile(r"[\w:+\-.\[\]\\/]+")
_ARGUMENTS = re.compile(r"\([^()]*=[^()]*\)")


def describe_markers() -> Mapping[str, str]:
    """Return the markers of the suite with their descriptions."""
    return {
        **LEVELS,
        PROTOCOL: "a row about the base protocol",
        ROBUSTNESS: "a row with a hostile request, run with --conformance-robustness",
        **{name: f"a row about the extension {name}" for name in EXTENSIONS},
        **{f"{AREA}{name}": f"a row of the area {name}" for name in checks.PACKAGES},
        **{mark: f"a row of the pack {name}" for name in packs.list_loaded() for mark in (name, f"{AREA}{name}")},
        **{f"{OVER}{name}": f"a row that is judged over {name}" for name in TRANSPORTS},
    }


def list_markers(case: Case) -> Iterator[str]:
    """Yield the markers of a row."""
    yield from _find_level_and_extension(case.requirements)
    yield f"{AREA}{case.check.area}"
    yield from (f"{OVER}{transport}" for transport in case.check.over)


@cache
def _find_level_and_extension(names: tuple[str, ...]) -> tuple[str, str]:
    """Return the strictest level (`must`, `should`, ...) of some requirements, and the extension of the first one."""
    requirements = [ledger.get_requirement(name) for name in names]
    level = min((str(entry.level).lower() for entry in requirements), key=list(LEVELS).index)
    return level, str(requirements[0].extension)


@cache
def make_marker(name: str) -> pytest.MarkDecorator:
    """Return the pytest mark with a name; the result is cached, because thousands of rows share a few marks."""
    decorator: pytest.MarkDecorator = getattr(pytest.mark, name)
    return decorator


def register(config: pytest.Config) -> None:
    """Register the markers with pytest, and reject unknown markers in `-m`.

    Raises pytest.UsageError: `-m` names an unknown marker.
    """
    for name, meaning in describe_markers().items():
        config.addinivalue_line("markers", f"{name}: oip-conformance: {meaning}.")
    registered = {re.split(r"[:(]", line)[0].strip() for line in config.getini("markers")}
    asked = _NAME.findall(_ARGUMENTS.sub("", config.option.markexpr))
    unknown = [name for name in asked if name not in _OPERATORS and name not in registered]
    if unknown:
        raise pytest.UsageError(f"-m: unknown marker {unknown[0]!r}; the markers are {', '.join(describe_markers())}")


# --- names for -k -----------------------------------------------------------------------------------------------------
# pytest matches a word of `-k` anywhere in a name, so `raw` would select every row with these letters. Therefore a word
# that is an area or the id of a check is replaced by one that is part of no other name.

# A word in an expression, as pytest parses it.
_WORD = re.compile(r"[\w:+\-.\[\]\\/]+")


def list_keywords(case: Case) -> Iterator[str]:
    """Yield the keywords of a row for `-k`, in addition to the name of its pytest item."""
    yield from (_build_exact_keyword(case.check.area), _build_exact_keyword(case.check.id))
    yield from (case.check.id, case.check.name, *case.requirements)


def make_keywords_exact(config: pytest.Config, party: Party) -> None:
    """Replace each word of `-k` that is an area or the id of a check by a keyword that selects only these rows."""
    if not config.option.keyword:
        return
    areas = [area for area in checks.PACKAGES if (area in checks.CLIENT_AREAS) == (party is Party.CLIENT)]
    found = [check for area in areas for check in checks.list_area_checks(area)]
    found += [check for name in packs.list_loaded() for check in packs.list_checks(name) or ()]
    names = {name.lower() for name in (*areas, *packs.list_loaded(), *(check.id for check in found))}

    def replace_word(word: re.Match[str]) -> str:
        return _build_exact_keyword(word[0].lower()) if word[0].lower() in names else word[0]

    config.option.keyword = _WORD.sub(replace_word, config.option.keyword)


def _build_exact_keyword(name: str) -> str:
    """Return a keyword for the name of an area or check; unlike the name itself, it is part of no other keyword."""
    return f":{name}:"
