"""What a release promises: the changelog's kinds, docs/stability.md, a citation, and where to report what is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

import conformance
from conformance.spec.ledger import load

ROOT = Path(__file__).parents[2]
# In this order, each at most once in a version.
KINDS = ("Added", "Changed", "Changed verdicts", "Deprecated", "Removed", "Fixed", "Security")
FORMS = {"accused": {"requirement", "reason", "block", "report"}, "missed": {"wrong", "sentence"}, "bug": {"command"}}
STABLE = (ROOT / "docs/stability.md").read_text(encoding="utf-8")


def versions(changelog: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each version with its kinds, in the order of the text."""
    for part in re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]:
        yield part.partition("\n")[0], re.findall(r"^### (.*)$", part, flags=re.MULTILINE)


def test_every_version_of_the_changelog_is_told_by_kind() -> None:
    found = list(versions((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")))
    assert found[0][0] == "[Unreleased]"
    for name, kinds in found:
        assert kinds == [kind for kind in KINDS if kind in kinds], name
        assert name == "[Unreleased]" or re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", name)


def test_the_version_stands_in_one_place() -> None:
    version = re.compile(rf"\b{re.escape(conformance.__version__)}\b")
    files = [ROOT / name for name in ("pyproject.toml", "CITATION.cff", "tox.ini", "action.yml")]
    files += (ROOT / ".github").rglob("*.yml")
    assert [path.name for path in files if path.is_file() and version.search(path.read_text(encoding="utf-8"))] == []


def test_what_is_promised_is_all_named() -> None:
    names = {*vars(conformance)["__all__"]} - {"__version__"}
    assert {name for name in names if f"`{name}`" not in STABLE and f"conformance.{name}`" not in STABLE} == set()
    statuses = re.findall(r"^\| (\d) \|", STABLE, flags=re.MULTILINE)
    assert statuses == ["0", "1", "2", "3", "4", "5", "6"]
    assert re.findall(r"`([A-Z]+-[A-Z-]+)`", STABLE)[0] in load()


def test_the_citation_is_one() -> None:
    schema = json.loads((ROOT / "tests/house/citation/schema-1.2.0.json").read_text(encoding="utf-8"))
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert [error.message for error in Draft7Validator(schema).iter_errors(citation)] == []
    assert list(Draft7Validator(schema).iter_errors(citation | {"licence": "Apache-2.0"}))
    assert citation["license"] == "Apache-2.0"
    assert "version" not in citation, "the version stands in the package alone"


def form(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / f".github/ISSUE_TEMPLATE/{name}.yml").read_text(encoding="utf-8"))
    return found


def test_the_forms_are_those() -> None:
    assert {path.stem for path in (ROOT / ".github/ISSUE_TEMPLATE").iterdir()} == {*FORMS, "config"}
    assert form("config") == {"blank_issues_enabled": True}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_one_that_github_shows(name: str) -> None:
    """As its documentation has it: ids and labels that occur once, and options of each kind of field alone."""
    document = form(name)
    assert {"name", "description", "body"} <= set(document) <= {"name", "description", "title", "labels", "body"}
    fields = [part for part in document["body"] if part["type"] != "markdown"]
    assert all(set(part) <= {"type", "id", "attributes", "validations"} for part in document["body"])
    assert {part["type"] for part in document["body"]} <= {"markdown", "input", "textarea", "dropdown", "checkboxes"}
    for key, values in (
        ("id", [part["id"] for part in fields]),
        ("label", [part["attributes"]["label"] for part in fields]),
    ):
        assert len(values) == len(set(values)), key
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", part["id"]) for part in fields)
    allowed = {"label", "description", "placeholder", "render", "value"}
    assert all(set(part["attributes"]) <= allowed for part in fields)
    assert all("render" not in part["attributes"] for part in fields if part["type"] == "input")


@pytest.mark.parametrize(("name", "needed"), FORMS.items())
def test_a_form_asks_for_what_settles_the_matter(name: str, needed: set[str]) -> None:
    fields = form(name)["body"]
    required = {part["id"] for part in fields if part.get("validations", {}).get("required")}
    assert needed | {"version"} <= required


def test_where_to_report_a_vulnerability_is_said_where_github_looks_for_it() -> None:
    text = (ROOT / ".github/SECURITY.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\((\.\.[^)]*)\)", text)
    assert linked
    assert [link for link in linked if not (ROOT / ".github" / link).is_file()] == []
