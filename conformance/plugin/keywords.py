"""What `-k` means of the suite: the name of an area is that area, the id of a check is that check.

pytest takes a word for a part of a name, so that `raw` would be every row with those letters in it. Here such a word is
replaced by one that is part of no other name, before pytest reads it; any other word is taken as pytest takes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from conformance import checks
from conformance.spec.check import Check, Row
from conformance.spec.ledger import Party

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
