"""The rules that hold the house up, as far as a program can see them."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from conformance import checks
from conformance.roles import roles
from conformance.spec import data_files, ledger
from conformance.spec.check import Case, Check, Row, list_rows
from conformance.spec.extensions import GRPC, TRANSPORTS
from tests.support.syntax import list_nodes
from tests.support.tables import on_each, own_id, row_name

ROOT = Path(__file__).parents[2]
ROWS = list_rows(checks.load())
VENDORS = re.compile(r"\b(triton|kserve|ovms|openvino|mlserver|seldon|nvidia)\b", re.IGNORECASE)


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in list_nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize(
    ("judge", "judged"), [("conformance", "reference_server"), ("reference_server", "conformance")]
)
def test_judge_and_judged_share_no_code(judge: str, judged: str) -> None:
    modules = list((ROOT / judge).rglob("*.py"))
    assert len(modules) > 5
    assert [path for path in modules if judged in imports(path)] == []


def test_the_wire_knows_no_socket_and_no_pytest() -> None:
    wire = {name for path in (ROOT / "conformance/wire").glob("*.py") for name in imports(path)}
    assert wire & {"socket", "httpx", "h11", "pytest", "ssl", "hypothesis"} == set()


@on_each(checks.load(), own_id)
def test_a_check_is_named_for_its_area_and_makes_one_claim(check: Check) -> None:
    assert re.fullmatch(r"[a-z]+\.[a-z0-9]+(-[a-z0-9]+)+", check.id)
    assert re.fullmatch(r"[A-Z].*\.", check.claim), "the first line of the docstring is one sentence"
    assert not check.name.startswith("_")


@on_each(ROWS, row_name)
def test_a_row_answers_for_something_in_its_area(case: Case) -> None:
    requirements = case.requirements
    assert requirements
    assert set(requirements) <= set(ledger.load())
    role = case.role
    assert role is None or role in roles.load()
    assert (
        case.check.area in ("golden", "errors", "walk")
        or case.check.area == ledger.get_requirement(requirements[0]).area
    )


def claims(_target: object) -> None:
    """Nothing at all."""


def claims_more(_target: object) -> None:
    """Nothing more."""


ONE = Check("state.one", ("OIP-ALIVE",), None, (Row("a"), Row("b")), claims)


@pytest.mark.parametrize(
    ("made", "names"),
    [
        ([ONE, replace(ONE, id="state.other", body=claims_more), replace(ONE, id="grpc.one")], ""),
        (
            [ONE, replace(ONE, id="state.other")],
            "the functions of state.one and state.other are both called claims, in ",
        ),
        ([replace(ONE, rows=(*ONE.rows, Row("a")))], "two rows are called state.one [a], in "),
        ([replace(ONE, rows=(Row(""), Row("")))], "two rows are called state.one, in "),
        ([ONE, replace(ONE, id="state.other", body=claims_more), ONE], "two checks have the id state.one: "),
    ],
)
def test_what_cannot_be_told_apart_is_refused_by_name(made: list[Check], names: str) -> None:
    if not names:
        checks.expect_unique_ids(made)
        return
    with pytest.raises(checks.SuiteError, match=re.escape(f"the suite is invalid: {names}")) as raised:
        checks.expect_unique_ids(made)
    assert f"{__name__}.claims" in str(raised.value)


def test_the_packages_are_the_areas() -> None:
    areas = {str(entry.area) for entry in ledger.load().values()}
    assert set(checks.PACKAGES) == areas | {"golden", "walk"}


def test_a_check_is_about_the_transports_that_it_speaks_over() -> None:
    for check in checks.load():
        assert set(check.over) <= set(TRANSPORTS)
        assert check.is_over_grpc == (check.area == GRPC)


def test_no_check_names_a_vendor() -> None:
    named = {
        path.name: VENDORS.findall(line)
        for path in (ROOT / "conformance/checks").rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if VENDORS.search(line) and "Extension" not in line
    }
    assert named == {}


@pytest.mark.parametrize("path", sorted(data_files.find_folder("schemas").glob("*.json")), ids=lambda path: path.stem)
def test_schemas_are_schemas(path: Path) -> None:
    schema = json.loads(path.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    number = schema.get("properties", {}).get("schema", {}).get("const", 1)
    assert schema["$id"] == f"urn:oip-conformance:schema:{path.name.partition('.')[0].replace('_', '-')}:{number}"


def test_the_version_is_that_of_the_package() -> None:
    from conformance import __version__

    assert version("oip-conformance") == __version__


def test_every_dependency_is_justified() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs/dependencies.md").read_text()
    names = [
        re.split(r"[\[<>= ]", entry)[0] for entry in project["dependencies"] + project["optional-dependencies"]["dev"]
    ]
    assert [name for name in names if name not in page] == []
