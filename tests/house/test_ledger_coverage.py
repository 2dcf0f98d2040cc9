"""Checks and ledger fit together: no unknown id, no MUST without a check, no stale page."""

from __future__ import annotations

from pathlib import Path

from conformance.checks import answers_by_requirement
from conformance.commands.requirements_page import render
from conformance.terms import ledger
from conformance.terms.ledger import Level

PAGE = Path(__file__).parents[2] / "docs" / "requirements.md"


def test_checks_cite_known_requirements() -> None:
    assert sorted(set(answers_by_requirement()) - set(ledger.load())) == []


def test_every_must_has_a_check() -> None:
    answered = answers_by_requirement()
    musts = [entry.id for entry in ledger.load().values() if entry.level is Level.MUST]
    assert [requirement_id for requirement_id in musts if not answered.get(requirement_id)] == []


def test_requirements_page_is_fresh() -> None:
    fresh = render(ledger.load(), answers_by_requirement())
    assert PAGE.read_text(encoding="utf-8") == fresh, (
        "stale; write it with: oip-conformance requirements > docs/requirements.md"
    )
