"""Honest servers and clients of strangers are conformant; servers by a row for each thing that a check says.

`tox -e strangers` judges them over every row, and those that need Debian's packages.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conformance import judge
from conformance.judging.selection import find_row
from tests.strangers.bugs import (
    CLIENTS_CAUGHT,
    LEVELS,
    Bug,
    Sighting,
    is_seen,
    list_bugs,
    list_client_bugs,
    load_bugs,
    load_reasons,
    read_caught,
)
from tests.strangers.client_programs import CLIENTS, judge_client
from tests.strangers.servers import HERE, STRANGERS, serving
from tests.support.few_rows import with_few_rows
from tests.support.sightings import judge_rows
from tests.support.strangers_page import UNSEEN

WITHOUT_PACKAGES = [name for name, stranger in STRANGERS.items() if not stranger.packages]


@pytest.mark.parametrize("name", WITHOUT_PACKAGES)
def test_an_honest_server_is_conformant(name: str, tmp_path: Path) -> None:
    with serving(name, tmp_path) as url, with_few_rows():
        report = judge(url, profile="certify")
    assert (report.verdict, report.advice) == ("conformant", ()), str(report)


def serve_one_connection_at_a_time(folder: Path) -> None:
    """Let the server of http.server serve its connections one after the other."""
    file = folder / "server.py"
    file.write_text(file.read_text(encoding="utf-8").replace("ThreadingHTTPServer", "HTTPServer"), encoding="utf-8")


def test_an_honest_server_of_one_connection_at_a_time_is_conformant(tmp_path: Path) -> None:
    with serving("http_server", tmp_path, serve_one_connection_at_a_time) as url, with_few_rows():
        report = judge(url, profile="certify", timeout=2)
    assert (report.verdict, report.advice) == ("conformant", ()), str(report)


EVERY_NTH = 6  # a bug of so many is judged here; `python -m tests.strangers --bugs` judges all of them
SEEN = [
    bug
    for name in WITHOUT_PACKAGES
    for bug in load_bugs(name).values()
    if read_caught().get(f"{name}/{bug.name}", Sighting()).row
]


@pytest.mark.parametrize("bug", SEEN[::EVERY_NTH], ids=lambda bug: f"{bug.server}-{bug.name}")
def test_a_planted_bug_is_seen_again(bug: Bug, tmp_path: Path) -> None:
    sighting = read_caught()[f"{bug.server}/{bug.name}"]
    found = find_row(*sighting.row)
    assert found is not None
    with serving(bug.server, tmp_path, bug.plant) as url:
        (result,) = judge_rows(url, [found])
    assert (str(result.outcome), result.failure and result.failure.requirement) == (sighting.outcome, sighting.first)


@pytest.mark.parametrize("kind", ["bugs", "honest"])
@pytest.mark.parametrize("name", [*STRANGERS, *CLIENTS])
def test_every_bug_can_be_planted(name: str, kind: str, tmp_path: Path) -> None:
    for bug in load_bugs(name, kind).values():
        copy = tmp_path / bug.name
        shutil.copytree(HERE / name, copy)
        bug.plant(copy)
        assert bug.level in LEVELS


def test_every_bug_was_tried() -> None:
    assert set(read_caught()) == {f"{bug.server}/{bug.name}" for bug in list_bugs()}
    assert set(read_caught(CLIENTS_CAUGHT)) == {f"{bug.server}/{bug.name}" for bug in list_client_bugs()}


def test_what_is_not_seen_is_explained() -> None:
    sightings = read_caught()
    unseen = {key for bug in list_bugs() if not is_seen(bug, sightings[key := f"{bug.server}/{bug.name}"])}
    assert set(load_reasons()) == unseen


def test_a_bug_of_a_client_fails_a_row_or_there_is_a_reason() -> None:
    caught = read_caught(CLIENTS_CAUGHT)
    musts = [bug for bug in list_client_bugs() if bug.level == "MUST"]
    keys = {bug: f"{bug.server}/{bug.name}" for bug in musts}
    assert {keys[bug] for bug in musts if caught[keys[bug]].outcome != "fail"} == set(UNSEEN)


def test_an_honest_client_is_conformant(tmp_path: Path) -> None:
    assert judge_client("clients/node", tmp_path)["verdict"] == "conformant"
