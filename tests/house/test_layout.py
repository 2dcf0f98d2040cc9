"""The layout: folders import from those above them only, nothing in a circle, and names say what things are."""

from __future__ import annotations

import ast
import builtins
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from conformance import checks
from tests.support.syntax import list_nodes

ROOT = Path(__file__).parents[2]
# From top to bottom: a folder imports from those before it, never from those behind it.
FOLDERS = (
    *("spec", "wire", "roles", "transport", "expect", "discovery", "clients", "checks", "judging", "report", "pages"),
    *("api", "plugin", "certification", "registry", "fleet", "export", "commands"),
)
# Beside what the owner asked for stands only what others look for there alone: git, GitHub, and pre-commit.
TOP_LEVEL = {
    *("pyproject.toml", "tox.ini", "conformance", "schemas", "fixtures", "reference_server", "tests"),
    *("README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "docs", "targets", "benchmarks", "examples"),
    *(".ci", ".github", ".gitattributes", ".gitignore", "CITATION.cff", "action.yml", ".pre-commit-hooks.yaml"),
}
# What every area may import, beside its own package.
SHARED = ("conformance.checks.support",)


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules(package: str) -> Mapping[str, Path]:
    """Return every module of a package; what is exported to real servers is no part of it."""
    paths = sorted((ROOT / package).rglob("*.py"))
    return {name_of(path): path for path in paths if "templates" not in path.parts}


def imported(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """Yield the modules of the package that a file imports, wherever in it: in functions and for type checkers, too."""
    for node in list_nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            module = node.module or ""
            yield from (name if (name := f"{module}.{alias.name}") in known else module for alias in node.names)


@cache
def graph(package: str) -> Mapping[str, frozenset[str]]:
    known = modules(package)
    return {name: frozenset(imported(path, known)) - {name} for name, path in known.items()}


def folder_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_the_top_level_is_what_the_owner_asked_for() -> None:
    """As git has it: what somebody else leaves there has no say."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    paths = listed.stdout.splitlines() or [path.name for path in ROOT.iterdir() if path.name in TOP_LEVEL]
    assert {path.partition("/")[0] for path in paths} <= TOP_LEVEL


def test_every_folder_has_its_place() -> None:
    assert {folder_of(name) for name in modules("conformance")} - {""} == set(FOLDERS)
    assert [name for name in modules("conformance") if name.count(".") == 1 and name.split(".")[1] not in FOLDERS] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_imports_only_from_those_above_it(folder: str) -> None:
    allowed = FOLDERS[: FOLDERS.index(folder) + 1]  # and not the package itself: it imports the API on first use
    upward = [
        f"{name} imports {other}"
        for name, others in graph("conformance").items()
        for other in sorted(others)
        if folder_of(name) == folder and folder_of(other) not in allowed
    ]
    assert upward == []


@pytest.mark.parametrize("package", ["conformance", "reference_server"])
def test_nothing_imports_in_a_circle(package: str) -> None:
    edges = graph(package)
    left = dict(edges)
    while ends := [name for name, others in left.items() if not others & left.keys()]:
        for name in ends:
            del left[name]
    assert sorted(left) == []


@pytest.mark.parametrize("package", [*checks.PACKAGES.values(), "support"])
def test_an_area_imports_no_other_area(package: str) -> None:
    own = f"conformance.checks.{package}"
    foreign = [
        f"{name} imports {other}"
        for name, others in graph("conformance").items()
        for other in sorted(others)
        if name.startswith(own) and other.startswith("conformance.checks.") and not other.startswith((own, *SHARED))
    ]
    assert foreign == []


def test_no_module_is_named_like_a_builtin_a_standard_module_or_a_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [entry for group in project["optional-dependencies"].values() for entry in group]
    dependencies = {re.split(r"[\[<>= ]", entry)[0].replace("-", "_") for entry in project["dependencies"] + extras}
    taken = {*dir(builtins), *sys.stdlib_module_names, *dependencies, "grpc"}
    names = {
        name: set(name.split(".")[1:]) for package in ("conformance", "reference_server") for name in modules(package)
    }
    assert {name: sorted(parts & taken) for name, parts in names.items() if parts & taken - {"__main__"}} == {}


def functions(package: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for name, path in modules(package).items():
        for node in list_nodes(path):
            if isinstance(node, ast.FunctionDef):
                yield f"{name}.{node.name}", node


def returned(node: ast.FunctionDef) -> str:
    return ast.unparse(node.returns) if node.returns else "None"


def test_a_name_says_what_a_function_does() -> None:
    """`is_...`, `has_...` and `are_...` return a bool; `expect_...` raises, and returns anything else or nothing."""
    asking = re.compile(r"_*(is|has|are)_")
    wrong = [
        f"{name} -> {returned(node)}"
        for name, node in functions("conformance")
        if (asking.match(node.name) and returned(node) != "bool")
        or (node.name.lstrip("_").startswith("expect_") and returned(node) == "bool")
    ]
    assert wrong == []


def test_no_module_imports_a_private_name_of_another() -> None:
    own = ("conformance", "reference_server", "tests")
    private = [
        f"{path.relative_to(ROOT)}: {name.name}"
        for package in own
        for path in sorted((ROOT / package).rglob("*.py"))
        for node in list_nodes(path)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in own
        for name in node.names
        if name.name.startswith("_") and not name.name.startswith("__")
    ]
    assert private == []


def test_tests_import_from_no_test_module() -> None:
    files = list((ROOT / "tests").rglob("*.py"))
    wrong = [
        f"{path.name} imports {node.module}"
        for path in files
        for node in list_nodes(path)
        if isinstance(node, ast.ImportFrom) and "test_" in (node.module or "")
    ]
    assert len(files) > 50
    assert wrong == []
