"""The ledger file keeps its schema, and the module hands out what the file says."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from conformance.spec import data_files, ledger
from conformance.spec.ledger import Basis, Concern, Level, Requirement
from conformance.spec.schemas import load_schema
from tests.support.tables import on_each

IDS = tuple(ledger.load())
SCHEMA = Draft202012Validator(load_schema("ledger"))


def _entry(**changes: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "level": "MUST",
        "concern": "exchange",
        "extension": "raw",
        "basis": "literal",
        "statement": "A claim.",
        "sources": ["rfc9110.field-names"],
    }
    return {key: value for key, value in {**entry, **changes}.items() if value is not None}


def test_ledger_keeps_its_schema() -> None:
    errors = [error for area in ledger.AREAS for error in SCHEMA.iter_errors(ledger.read_area(area))]
    assert [f"{error.json_path}: {error.message}" for error in errors] == []


def test_schema_accepts_a_plain_entry() -> None:
    assert SCHEMA.is_valid({"RAW-ONE-INPUT": _entry()})
    assert SCHEMA.is_valid({"RAW-ONE-INPUT": _entry(basis="derived", note="Decision: it follows.")})
    assert SCHEMA.is_valid({"RAW-ONE-INPUT": _entry(basis="derived", level="SHOULD")})
    robustness = _entry(extension="robustness", concern=None)
    assert SCHEMA.is_valid({"ROBUST-HEAD": robustness})


@pytest.mark.parametrize(
    ("requirement_id", "entry"),
    [
        ("raw-one", _entry()),
        ("RAW-ONE-INPUT", _entry(level="must")),
        ("RAW-ONE-INPUT", _entry(concern=None)),
        ("RAW-ONE-INPUT", _entry(concern="safety")),
        ("ROBUST-HEAD", _entry(extension="robustness")),
        ("RAW-ONE-INPUT", _entry(extension="grpc")),
        ("RAW-ONE-INPUT", _entry(area="raw")),
        ("RAW-ONE-INPUT", _entry(basis="implied")),
        ("RAW-ONE-INPUT", _entry(statement="a claim.")),
        ("RAW-ONE-INPUT", _entry(statement="A claim")),
        ("RAW-ONE-INPUT", _entry(statement=None)),
        ("RAW-ONE-INPUT", _entry(sources=[])),
        ("RAW-ONE-INPUT", _entry(sources=["field-names"])),
        ("RAW-ONE-INPUT", _entry(sources=["rfc9110.field-names", "rfc9110.field-names"])),
        ("RAW-ONE-INPUT", _entry(sources=[{"document": "RFC 9110", "section": "5.1 Field Names"}])),
        ("RAW-ONE-INPUT", _entry(basis="derived")),
        ("RAW-ONE-INPUT", _entry(note="It was decided so.")),
        ("RAW-ONE-INPUT", _entry(level="OBSERVE")),
        ("RAW-ONE-INPUT", _entry(level="OBSERVE", note="Decision: so be it.")),
        ("RAW-ONE-INPUT", _entry(comment="x")),
        ("RAW-ONE-INPUT", _entry(symptom="Refuses " + "a" * 90)),
        ("RAW-ONE-INPUT", _entry(usage="often")),
        ("RAW-ONE-INPUT", _entry(example=-1)),
        ("RAW-ONE-INPUT", _entry(questions=[{"text": "No question."}])),
        ("RAW-ONE-INPUT", _entry(errata=[{"name": "fish"}])),
        ("RAW-ONE-INPUT", _entry(grpc={"usage": "rare"})),
    ],
)
def test_schema_refuses(requirement_id: str, entry: dict[str, Any]) -> None:
    assert not SCHEMA.is_valid({requirement_id: entry})


def test_no_statement_stands_twice() -> None:
    statements = Counter(entry.statement for entry in ledger.load().values() if entry.id == entry.name)
    assert [statement for statement, count in statements.items() if count > 1] == []


def test_each_area_has_a_file() -> None:
    folder = data_files.PACKAGE_FOLDER / ledger.FOLDER
    assert {path.stem for path in folder.glob("*.toml")} == set(ledger.AREAS)


def test_no_id_is_in_two_areas() -> None:
    ids = Counter(requirement_id for area in ledger.AREAS for requirement_id in ledger.read_area(area))
    assert max(ids.values()) == 1


def test_a_key_over_grpc_differs_from_that_over_http() -> None:
    repeated = [
        (requirement_id, key)
        for area in ledger.AREAS
        for requirement_id, table in ledger.read_area(area).items()
        for key, value in table.get("grpc", {}).items()
        if key != "example" and table.get(key) == value
    ]
    assert repeated == []


@pytest.mark.parametrize("requirement_id", [key for key in IDS if key.endswith("-I")])
def test_request_side_has_an_answer_side(requirement_id: str) -> None:
    assert requirement_id.removesuffix("-I") + "-O" in IDS


@on_each(IDS)
def test_notes_name_only_known_ids(requirement_id: str) -> None:
    prefixes = "|".join({key.partition("-")[0] for key in IDS})
    named = re.findall(rf"\b(?:{prefixes})(?:-[A-Z0-9]+)+(?:/grpc)?\b", ledger.get_requirement(requirement_id).note)
    assert set(named) <= set(IDS)


def test_requirement_is_what_the_file_says() -> None:
    assert ledger.get_requirement("BIN-ORDER-I") == Requirement(
        id="BIN-ORDER-I",
        level=Level.MUST,
        extension="binary_tensor_data",
        area="ordering",
        basis=Basis.LITERAL,
        statement="The binary data of a request belong to its inputs in the order in which the JSON lists them, "
        "not in the model's order.",
        cited=("triton-binary.order", "triton-binary.example-request-data"),
        note="Decision: the KServe page does not mention the order, but its example follows it.",
        concern=Concern.EXCHANGE,
        page="ordering",
        symptom="Does not read binary inputs in the order of the request's JSON",
        usage="usual",
        look_alike="outputs-in-reverse",
    )


def test_ledger_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        ledger.get_requirement("BIN-ORDER-I").level = Level.MAY  # type: ignore[misc]
    with pytest.raises(TypeError):
        ledger.load()["NEW"] = ledger.get_requirement("BIN-ORDER-I")  # type: ignore[index]


@pytest.mark.parametrize(
    ("requirement_id", "message"),
    [
        ("BIN-ORD", "unknown requirement 'BIN-ORD'; did you mean BIN-ORDER-O, BIN-ORDER-I, BIN-BODY-O?"),
        ("raw-one", "unknown requirement 'raw-one'; did you mean RAW-ONE-INPUT, RAW-SIZE, RAW-EMPTY?"),
        ("", "unknown requirement ''"),
        ("?", "unknown requirement '?'"),
    ],
)
def test_unknown_requirement(requirement_id: str, message: str) -> None:
    with pytest.raises(ledger.UnknownRequirementError) as caught:
        ledger.get_requirement(requirement_id)
    assert str(caught.value) == message


def test_every_derived_must_says_how_it_follows() -> None:
    derived = [entry for entry in ledger.load().values() if entry.basis == "derived" and entry.level == "MUST"]
    assert len(derived) > 50
    assert [entry.id for entry in derived if not entry.note] == []
