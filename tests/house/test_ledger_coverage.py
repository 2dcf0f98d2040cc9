"""Checks and ledger fit together: no unknown id, no MUST without a check."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from conformance import checks
from conformance.checks import list_checks_by_requirement
from conformance.pages import requirement_facts
from conformance.spec import ledger
from conformance.spec.ledger import Level, Party


def test_checks_cite_known_requirements() -> None:
    assert sorted(set(list_checks_by_requirement()) - set(ledger.load())) == []


def test_every_must_has_a_check() -> None:
    answered = list_checks_by_requirement()
    musts = [entry.id for entry in ledger.load_for_party(Party.SERVER) if entry.level is Level.MUST]
    assert [requirement_id for requirement_id in musts if not answered.get(requirement_id)] == []


def test_what_clients_owe_has_a_check_each() -> None:
    """A requirement that only observes watched clients has none among the scenarios."""
    owed = [entry for entry in ledger.load_for_party(Party.CLIENT) if entry.level is not Level.OBSERVE]
    assert [entry.id for entry in owed if not requirement_facts.map_checks().get(entry.id)] == []


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
