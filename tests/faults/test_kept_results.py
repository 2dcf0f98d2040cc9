"""The result of a fault is kept only as long as nothing that decides it has changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import kept_results
from tests.support.kept_results import CHECKS, FAULTS, RUNNER, VALID_SERVERS, KeptResults, list_closure, list_modules
from tests.support.sightings import Sighting, UnmetRow

MISS = UnmetRow("json.numbers", "a-row", "fail", "OIP-JSON", "")
MODULES = {
    "conformance/__init__.py": "",
    "conformance/check.py": "from conformance import support\n",
    "conformance/support.py": "def read():\n    from conformance.wire import NAMES\n",
    "conformance/wire.py": "NAMES = 1\n",
    "conformance/report.py": "TITLE = 1\n",
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of a few modules, in place of this one."""
    monkeypatch.setattr(kept_results, "ROOT", tmp_path)
    (tmp_path / "conformance").mkdir()
    for name, text in MODULES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def digest_check() -> str:
    for cached in (kept_results.list_imports, kept_results.list_closure, kept_results.digest_file):
        cached.cache_clear()
    return kept_results.digest_modules(["conformance.check"])


@pytest.mark.parametrize(
    ("name", "is_part"),
    [("check", True), ("support", True), ("wire", True), ("__init__", True), ("report", False)],
)
def test_a_digest_changes_with_what_is_imported_at_any_distance(tree: Path, name: str, is_part: bool) -> None:
    before = digest_check()
    with (tree / f"conformance/{name}.py").open("a") as file:
        file.write("# another text\n")
    assert (digest_check() != before) == is_part
    digest_check()


LIST_LOADED = """
import sys
from tests.support.matrix import collect_rows, get_server, load_all
from tests.support.sightings import judge_rows, serve_grpc
load_all()
rows = [case for over_grpc in (False, True) for case in collect_rows(over_grpc=over_grpc)[:40]]
with serve_grpc(get_server()) as address:
    assert len(list(judge_rows(get_server().url, rows, address))) == 80
print(*[name for name in sys.modules if name.partition(".")[0] in ("conformance", "reference_server", "tests")])
"""


def test_all_that_a_run_loads_is_in_a_digest() -> None:
    run = subprocess.run([sys.executable, "-c", LIST_LOADED], cwd=kept_results.ROOT, capture_output=True, check=True)
    loaded = set(run.stdout.decode().split())
    packages = frozenset[str]().union(*map(list_modules, (CHECKS, FAULTS, VALID_SERVERS)))
    assert len(loaded) > 200
    assert loaded - list_closure(RUNNER).union(*map(list_closure, packages)) == set()


def test_a_result_holds_until_something_else_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = KeptResults("", "")
    kept.keep(Sighting("right", touched=True, misses=[MISS, MISS]), "1", is_right=True)
    kept.keep(Sighting("doubted", touched=True, doubted=True), "2", is_right=True)
    kept.keep(Sighting("wrong", touched=True), "3", is_right=False)
    kept.renew(["right", "doubted", "wrong"])
    assert [kept.holds(name) for name in ("right", "doubted", "wrong")] == [True, True, False]
    assert kept.get_sighting("right").misses == [MISS]
    monkeypatch.setattr(kept_results, "digest_everything", lambda: "another")
    assert [kept.holds(name) for name in ("right", "doubted")] == [False, False]
    assert [kept.get_digest(name) for name in ("right", "doubted")] == ["1", ""]
    monkeypatch.setattr(kept_results, "digest_runner", lambda: "another")
    assert kept.get_digest("right") == ""


def test_what_is_written_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_results, "FILE", tmp_path / "kept.json")
    kept = KeptResults("a", "b", {"one": "1", "two": ""}, {"one": [MISS], "two": []})
    kept_results.write(kept)
    assert kept_results.read() == kept
