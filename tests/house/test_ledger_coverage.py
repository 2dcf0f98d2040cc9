"""Checks and ledger fit together: no unknown id, no MUST without a check."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from conformance import checks
from conformance.pages import requirement_facts
from conformance.spec import ledger
from conformance.spec.ledger import Level, Party


@pytest.mark.parametrize(
    ("party", "levels"),
    [(Party.SERVER, {Level.MUST}), (Party.CLIENT, {*Level} - {Level.OBSERVE})],  # watched clients are observed without
)
def test_each_requirement_has_a_check(party: Party, levels: set[Level]) -> None:
    answered = requirement_facts.map_checks()
    assert [one.id for one in ledger.load_for_party(party) if one.level in levels and one.id not in answered] == []


def ids_in_the_code() -> set[str]:
    """Return every text of the checks and expectations that looks like the id of a requirement."""
    home = Path(checks.__file__).parents[1]
    files = [path for folder in ("checks", "expect") for path in (home / folder).rglob("*.py")]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in files]
    texts = {node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    areas = "|".join({identity.partition("-")[0] for identity in ledger.load()})
    return {
        text for text in texts if isinstance(text, str) and re.fullmatch(f"({areas})[A-Z_]*-[A-Z0-9-]*[A-Z0-9]", text)
    }


def test_ids_in_the_code_are_known() -> None:
    found = ids_in_the_code()
    assert len(found) > 100
    assert sorted(found - set(ledger.load())) == []
