"""What `-k` and `-m` select of the suite."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.judging.selection import list_profile_rows
from conformance.plugin import markers
from conformance.spec import ledger
from conformance.spec.check import Case
from conformance.spec.extensions import TRANSPORTS
from tests.support.servers import judge, judge_afresh


def selected(folder: Path, url: str, *arguments: str) -> list[str]:
    run = judge(folder, f"--target-url={url}", *arguments, "--co", "-q")
    assert run.returncode in (0, 5), run.stderr
    return [line for line in run.stdout.splitlines() if "::" in line]


def areas(ids: list[str]) -> set[str]:
    return {each.partition("::")[0] for each in ids}


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory, small: str) -> list[str]:
    return selected(tmp_path_factory.mktemp("all"), small)


@pytest.mark.parametrize(
    ("words", "found"),
    [("raw", {"raw"}), ("RAW or BIN-ORDER-O and ordering", {"raw", "ordering"}), ("json and not json", set())],
)
def test_the_name_of_an_area_selects_that_area_alone(
    tmp_path: Path, small: str, everything: list[str], words: str, found: set[str]
) -> None:
    ids = selected(tmp_path, small, "-k", words)
    assert areas(ids) == found
    if words == "raw":
        assert ids == [each for each in everything if each.startswith("raw::")]
        others = selected(tmp_path, small, "-k", "not raw")
        assert others == [each for each in everything if not each.startswith("raw::")]
        assert any("raw" in each for each in others)


def test_the_id_of_a_check_selects_its_rows_and_another_word_what_it_is_part_of(tmp_path: Path, small: str) -> None:
    of_check = selected(tmp_path, small, "-k", "ordering.response-follows-its-json")
    assert {each.partition("[")[0] for each in of_check} == {"ordering::response_follows_its_json"}
    of_word = selected(tmp_path, small, "-k", "follows_its_json")
    assert {each.partition("[")[0] for each in of_word} > {"ordering::response_follows_its_json"}
    of_start = selected(tmp_path, small, "-k", "ordering.res")
    assert of_start == of_check
    required = selected(tmp_path, small, "-k", "BIN-ORDER-O")
    assert set(of_check) < set(required)


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        (
            "must and raw or binary_tensor_data and not must",
            lambda case: (
                set(markers.list_markers(case)) & {"raw", "binary_tensor_data", "must"}
                in ({"raw", "must"}, {"binary_tensor_data"})
            ),
        ),
        ("area_state and over_http", lambda case: case.check.area == "state"),
    ],
)
def test_markers_select(tmp_path: Path, small: str, expression: str, holds: Callable[[Case], bool]) -> None:
    rows = [case for case in list_profile_rows("certify") if holds(case)]
    assert len(selected(tmp_path, small, "-m", expression)) == len(rows) > 0


def test_every_row_has_one_level_one_extension_and_one_area() -> None:
    for case in list_profile_rows("explore", transports=TRANSPORTS):
        level, extension, area, *over = markers.list_markers(case)
        assert (level in markers.LEVELS, area) == (True, f"area_{case.check.area}")
        assert {level, extension, area, *over} <= set(markers.describe_markers())
        levels = {str(ledger.get_requirement(name).level) for name in case.requirements}
        assert "MUST" not in levels or level == "must"


def test_markers_are_known_where_there_is_a_target_alone(tmp_path: Path) -> None:
    with_target = judge(tmp_path, "--markers", "--target-url=http://127.0.0.1:9")
    assert "@pytest.mark.must: oip-conformance: a row that judges a MUST." in with_target.stdout
    assert "oip-conformance" not in judge(tmp_path, "--markers").stdout
    (tmp_path / "test_own.py").write_text("import pytest\n@pytest.mark.must\ndef test_own(): pass\n")
    assert "'must' not found in `markers`" in judge(tmp_path, "--strict-markers").stdout
    assert judge(tmp_path, "-m", "typo").returncode == 5


BROKEN = """
from conformance.checks.{area} import {module}
from conformance.spec.check import check, rows

def twice(*_):
    \"""One row stands twice.\"""

twice.__module__ = {module}.__name__
{module}.twice = check("{area}.twice", requirements="OIP-ALIVE")(rows("a", "b", "a")(twice))
"""


@pytest.mark.parametrize("options", [(), ("--co", "-q")])
def test_two_rows_of_one_id_are_refused_before_anything_is_judged(
    tmp_path: Path, small: str, options: tuple[str, ...]
) -> None:
    (tmp_path / "broken.py").write_text(BROKEN.format(area="state", module="connections"), encoding="utf-8")
    run = judge_afresh(tmp_path, "-p", "broken", f"--target-url={small}", *options)
    where = "conformance.checks.state.connections.twice"
    said = f"ERROR: the suite is invalid: two rows are called state.twice [a], in {where}"
    assert (run.returncode, run.stderr.strip()) == (4, said)


def test_the_rows_of_clients_are_looked_at_like_those_of_servers(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN.format(area="client", module="answers"), encoding="utf-8")
    adapter = shlex.join([sys.executable, "-m", "tests.clients.honest"])
    run = judge_afresh(tmp_path, "-p", "broken", f"--client-adapter={adapter}")
    assert run.returncode == 4
    assert "two rows are called client.twice [a], in conformance.checks.client.answers.twice" in run.stderr
