"""The recipes of real servers: their files, how a server is started and stopped, and how an outcome is compared."""

from __future__ import annotations

import dataclasses
import os
import re
import select
import sys
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import known_failures
import pytest
import recipe
import server_process
from known_failures import KnownFailure
from recipes import RECIPES

from conformance import checks
from conformance.export.server_formats import FORMATS
from conformance.spec import ledger
from conformance.spec.check import Case, list_rows
from tests.support import grpc_serving
from tests.support.tables import on_each

TARGETS = Path(__file__).parents[2] / "targets"
ROWS = list_rows(checks.load())
ENTRIES = [(name, known) for name in RECIPES for known in RECIPES[name].known]


# --- files -----------------------------------------------------------------------------------------------------------


def test_there_is_a_recipe_for_each_format() -> None:
    assert {each.format for each in RECIPES.values() if each.format} | {"python"} == set(FORMATS)  # a test judges that
    assert [name for name, each in RECIPES.items() if not each.format] == ["aissemble", "omle", "omle-0.2-alone"]


def test_the_newest_version_has_the_name_of_the_folder() -> None:
    for name, each in RECIPES.items():
        versions = [other.version for other in RECIPES.values() if other.folder == each.folder]
        newest = max(versions, key=lambda version: tuple(map(int, version.partition("-")[0].split("."))))
        assert name == (each.folder if each.version == newest else f"{each.folder}-{each.version}")
        assert f" {each.version.partition('-')[0]}." in each.title


def test_an_unknown_version_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        recipe.main(["triton", "--version", "2.38"])
    assert "triton has the versions 2.39, 2.51" in capsys.readouterr().err


def test_what_a_version_says_stands_instead_of_what_all_share() -> None:
    newer, older = RECIPES["triton"], RECIPES["triton-2.39"]
    assert older.command == newer.command
    assert older.requirements.name == "requirements-2.39.txt"
    assert (older.without, newer.without) == (["BF16"], ())


@pytest.mark.parametrize("folder", sorted({each.folder for each in RECIPES.values()}))
def test_every_file_of_a_folder_belongs_to_a_version(folder: str) -> None:
    own = [each for each in RECIPES.values() if each.folder == folder]
    named = {name for each in own for name in (each.packages, each.prepare) if name}
    files = {"README.md", "recipe.toml", "expected.toml", *named}
    assert {path.name for path in (TARGETS / folder).iterdir()} == files
    entries = tomllib.loads((TARGETS / folder / "expected.toml").read_text(encoding="utf-8"))["known"]
    assert {version for entry in entries for version in entry.get("versions", [])} <= {each.version for each in own}


@pytest.mark.parametrize("name", RECIPES)
def test_every_package_is_pinned(name: str) -> None:
    lines = RECIPES[name].requirements.read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert pins
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][A-Za-z0-9.+]*", pin)] == []


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_names_no_place_that_is_not_there(name: str, tmp_path: Path) -> None:
    target, place = RECIPES[name], recipe.WorkFolder(tmp_path)
    texts = [*target.command, *target.environment.values(), *target.copies, *target.copies.values()]
    filled = [place.fill(text, (8000, 8001, 8002)) for text in [*texts, target.library, target.library_hint]]
    assert "{" not in "".join(filled)
    for transport, port in (("http", "8000"), ("grpc", "8001")):
        assert any(port in text for text in filled) == (transport in target.listens)


@on_each(ENTRIES)
def test_an_entry_fits_rows_of_the_suite_and_gives_a_reason(name: str, known: KnownFailure) -> None:
    deployed = RECIPES[name].models
    pattern, _, model = known.rows.partition("@") if deployed else (known.rows, "", "*")
    rows = [case for case in ROWS if case.check.id == known.check and fnmatchcase(case.row.id, pattern)]
    assert model in {"", "*", *deployed}
    # Of deployed models, a row names its model unless it is about the server.
    assert [case.row for case in rows if not deployed or bool(model) == (case.fit is not None)], (
        f"{name}: no such check, or no such row"
    )
    assert {known.requirement, known.instead or known.requirement} <= ledger.load().keys()
    assert len(known.reason) > 20


@pytest.mark.parametrize("name", RECIPES)
def test_no_row_is_known_twice(name: str) -> None:
    entries = [known for each, known in ENTRIES if each == name]
    assert [label(case) for case in ROWS if len(fitting(entries, case)) > 1] == []


def fitting(entries: list[KnownFailure], case: Case) -> list[KnownFailure]:
    plain = {"check": case.check.id, "row": case.row.id}
    return [known for known in entries if known.fits(plain)]


def label(case: Case) -> str:
    return f"{case.check.id} [{case.row.id}]"


# --- comparing -------------------------------------------------------------------------------------------------------


def judged(row: str, result: str, requirement: str | None = None, check: str = "sizes.a-check") -> dict[str, Any]:
    """Return a row of a report; with a requirement, it is the one that is not met."""
    failure = {"requirement": requirement} if requirement else None
    rows = {"check": check, "row": row, "outcome": result, "requirements": ["A-1", "B-2"]}
    return {**rows, "message": "got 200", "failure": failure}


def known(rows: str, requirement: str = "A-1") -> KnownFailure:
    return KnownFailure("sizes.a-check", rows, requirement, "why")


BLOCKING = dataclasses.replace(known("a"), blocks="grpc.*")
LOST = {"reason": {"kind": "target_lost", "subject": ""}}  # of a row behind the crash of the server
COMPARED: list[tuple[list[dict[str, Any]], list[KnownFailure], list[str]]] = [
    ([judged("a", "pass"), judged("b", "observed"), judged("c", "not_applicable")], [], []),
    ([judged("a", "fail", "A-1"), judged("b", "advisory", "B-2")], [known("a"), known("b", "B-2")], []),
    ([judged("a-1", "fail", "A-1"), judged("a-2", "fail", "A-1"), judged("b", "pass")], [known("a-*")], []),
    ([judged("a", "blocked"), judged("", "error", check="sizes.a-check")], [known("a"), known("", "B-2")], []),
    ([judged("a-1", "fail", "A-1"), judged("a-2", "not_applicable")], [known("a-*")], []),
    ([judged("a-1", "fail", "A-1"), judged("a-2", "error") | LOST], [known("a-*")], []),
    ([judged("b", "pass"), judged("a-2", "error") | LOST], [known("a-*")], []),
    ([judged("a", "fail", "A-1")], [], ["UNEXPECTED  fail A-1 sizes.a-check [a]: got 200"]),
    ([judged("a", "blocked")], [], ["UNEXPECTED  blocked A-1 B-2 sizes.a-check [a]: got 200"]),
    (
        [judged("a", "advisory", "B-2")],
        [known("a")],
        ["UNEXPECTED  advisory B-2 sizes.a-check [a]: got 200", "NOT SEEN    A-1 sizes.a-check [a]"],
    ),
    ([judged("a", "fail", "A-1", check="sizes.b-check")], [], ["UNEXPECTED  fail A-1 sizes.b-check [a]: got 200"]),
    ([judged("a", "pass")], [known("a")], ["NOT SEEN    A-1 sizes.a-check [a]"]),
    ([judged("a", "not_applicable")], [known("a")], ["NOT SEEN    A-1 sizes.a-check [a]"]),
    (
        [judged("a-1", "fail", "A-1"), judged("a-2", "fail", "B-2")],
        [dataclasses.replace(known("a-*"), instead="B-2")],
        [],
    ),
    ([judged("a", "fail", "A-1"), judged("b", "blocked", check="grpc.a-check")], [BLOCKING], []),
    (
        [judged("a", "fail", "A-1"), judged("b", "fail", "B-2", check="grpc.a-check"), judged("b", "blocked")],
        [BLOCKING],
        ["UNEXPECTED  fail B-2 grpc.a-check [b]: got 200", "UNEXPECTED  blocked A-1 B-2 sizes.a-check [b]: got 200"],
    ),
    (
        [judged("a-1", "fail", "A-1"), judged("a-2", "pass")],
        [known("a-*")],
        ["NOT SEEN    A-1 sizes.a-check [a-2] is met; known by the pattern a-*"],
    ),
]


@pytest.mark.parametrize(("rows", "entries", "differences"), COMPARED)
def test_rows_are_compared(rows: list[dict[str, Any]], entries: list[KnownFailure], differences: list[str]) -> None:
    report = {"rows": rows, "verdict": "nonconformant", "why": []}
    assert known_failures.compare(report, entries, {}, 1) == differences


@pytest.mark.parametrize(
    ("wanted", "differences"),
    [
        ({}, []),
        ({"exit_status": 6, "verdict": "incomplete", "why": ["http://* offers nothing"]}, []),
        ({"exit_status": 1}, ["OUTCOME     exit status 6, known is 1"]),
        ({"verdict": "conformant"}, ["OUTCOME     incomplete, known is conformant"]),
        ({"why": ["the target is gone*"]}, ["OUTCOME     http://h offers nothing, known is the target is gone*"]),
    ],
)
def test_the_ending_is_compared(wanted: dict[str, Any], differences: list[str]) -> None:
    report = {"rows": [], "verdict": "incomplete", "why": ["http://h offers nothing"]}
    assert known_failures.compare(report, [], wanted, 6) == differences


def test_what_only_a_baseline_needs_is_passed_over(tmp_path: Path) -> None:
    entry = 'check = "c"\nrows = "*"\nrequirement = "R"\nreason = "why"\nissue = "https://x"\nmessage = "got"\n'
    (tmp_path / "expected.toml").write_text(f"[[known]]\n{entry}")
    assert known_failures.read_known(tmp_path / "expected.toml", "1.0") == [KnownFailure("c", "*", "R", "why")]


def test_an_entry_may_be_of_some_versions(tmp_path: Path) -> None:
    entry = 'check = "c"\nrows = "{}"\nrequirement = "R"\nreason = "why"\n'
    entries = [entry.format("all"), entry.format("old") + 'versions = ["1.0", "1.1"]\n']
    (tmp_path / "expected.toml").write_text("".join(f"[[known]]\n{each}" for each in entries))
    for version, rows in (("1.0", ["all", "old"]), ("1.1", ["all", "old"]), ("2.0", ["all"])):
        assert [known.rows for known in known_failures.read_known(tmp_path / "expected.toml", version)] == rows


# --- starting and stopping -------------------------------------------------------------------------------------------

READY = """
import subprocess, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/v2/health/ready" else 404)
        self.end_headers()
child = "import sys, time; held = open(sys.argv[1], 'w'); print(flush=True); time.sleep(600)"
child = [sys.executable, "-c", child, sys.argv[2]]
subprocess.Popen(child, stdout=subprocess.PIPE).stdout.readline()
HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def test_a_server_is_started_and_stopped_with_its_children(tmp_path: Path) -> None:
    (port,) = server_process.find_free_ports(1)
    held = tmp_path / "held"  # by the child, as long as it lives
    os.mkfifo(held)
    reader = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    addresses = {"http": f"127.0.0.1:{port}"}
    server = server_process.start(
        [sys.executable, "-c", READY, str(port), str(held)], tmp_path, {}, addresses, tmp_path
    )
    try:
        assert server.addresses == addresses
        server.check_alive()
        assert select.select([reader], [], [], 0)[0] == []
    finally:
        server.stop()
    assert select.select([reader], [], [], 10)[0] == [reader]
    assert os.read(reader, 1) == b""
    os.close(reader)
    with pytest.raises(server_process.RecipeError, match="ended by itself with status -15"):
        server.check_alive()


def nowhere() -> dict[str, str]:
    """Return addresses where nobody listens."""
    http, grpc = server_process.find_free_ports(2)
    return {"http": f"127.0.0.1:{http}", "grpc": f"127.0.0.1:{grpc}"}


def test_a_server_that_ends_is_told_with_its_last_lines(tmp_path: Path) -> None:
    script = "print('no models'); raise SystemExit(3)"
    with pytest.raises(server_process.RecipeError, match=r"ended by itself with status 3:\n    no models$"):
        server_process.start([sys.executable, "-c", script], tmp_path, {}, nowhere(), tmp_path)


def test_a_server_that_is_never_ready_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_process, "START_LIMIT", 0.5)
    script = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    with pytest.raises(server_process.RecipeError, match="is not ready after 0 s"):
        server_process.start([sys.executable, "-c", script], tmp_path, {}, nowhere(), tmp_path)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "server.log").read_text()), 0)


def test_a_server_with_grpc_alone_says_there_that_it_is_ready() -> None:
    with grpc_serving.serve() as server:
        assert server_process.PROBES["grpc"](server.address)
    assert not server_process.PROBES["grpc"](nowhere()["grpc"])


def test_free_ports_differ() -> None:
    assert len(set(server_process.find_free_ports(20))) == 20


def test_a_missing_library_is_named_with_where_it_comes_from(tmp_path: Path) -> None:
    place = recipe.WorkFolder(tmp_path)
    place.python.parent.mkdir(parents=True)
    place.python.symlink_to(sys.executable)
    there = dataclasses.replace(RECIPES["triton"], environment={}, library="libc.so.6")
    recipe.check_library(there, place)
    missing = dataclasses.replace(there, library="libnone{version}.so")
    with pytest.raises(
        server_process.RecipeError, match=r"no shared library libnone3\.\d+\.so: Debian has it in the package lib"
    ):
        recipe.check_library(missing, place)


def test_tox_has_an_environment_for_each_recipe() -> None:
    text = (TARGETS.parent / "tox.ini").read_text(encoding="utf-8")
    (names,) = re.findall(r"\[testenv:\{(.*)\}\]", text)
    assert names.split(",") == sorted({each.folder for each in RECIPES.values()})


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_says_how_its_run_ends(name: str) -> None:
    ends = RECIPES[name].outcome
    status = {"conformant": 0, "nonconformant": 1, "incomplete": 6}
    assert ends["exit_status"] == status[ends["verdict"]]
