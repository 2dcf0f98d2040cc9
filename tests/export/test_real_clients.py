"""What is known of real clients, and the page that shows it."""

from __future__ import annotations

import asyncio
import json
import sys
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from threading import Event
from typing import Any

import clients
import pytest

from conformance.judging.selection import CLIENTS, list_profile_rows
from conformance.spec import ledger

DOCS = Path(__file__).parents[2] / "docs"


def test_what_is_known_names_clients_rows_and_requirements() -> None:
    names = clients.read_clients()
    rows = [case.ids for case in list_profile_rows("certify", subjects=CLIENTS, transports=("http", "grpc"))]
    for known in clients.read_known():
        assert known.reason
        assert set(known.clients) <= names.keys(), known
        assert ledger.get_requirement(known.requirement), known
        is_watch_check = known.check.startswith("client.watched-")
        assert is_watch_check or any(
            fnmatchcase(check, known.check) and fnmatchcase(row, known.rows) for check, row in rows
        ), known


def test_every_adapter_is_there() -> None:
    for client in clients.read_clients().values():
        assert (clients.CLIENTS / client.adapter).is_file()


def test_the_event_loop_of_an_adapter_runs_between_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(clients.CLIENTS / "adapters")
    loop, is_later = import_module("lines").Loop(), Event()

    async def begin() -> None:
        asyncio.get_running_loop().call_later(0.01, is_later.set)

    loop.run(begin())
    assert is_later.wait(10)


def test_without_gos_packages_a_client_cannot_be_judged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(clients, "WORK", tmp_path)
    assert clients.main(["go-grpc", "--reports", str(tmp_path)]) == 2
    assert "go-grpc was not built: " in capsys.readouterr().err


def test_an_adapter_is_judged_and_a_program_is_watched() -> None:
    found = clients.read_clients()
    judged = clients.build_command(found["kserve-rest"], Path("r.json"))
    assert judged[:3] == [sys.executable, "-m", "pytest"]
    assert judged[-1] == f"--client-adapter={sys.executable} {clients.CLIENTS / 'adapters/kserve_rest.py'}"
    watched = clients.build_command(found["curl"], Path("r.json"))
    assert watched[1:3] == ["client", "watch"]
    assert watched[-3:] == ["--", sys.executable, str(clients.CLIENTS / "curl_fixtures.py")]


def test_an_unknown_client_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        clients.main(["triton"])
    assert "there is no client 'triton', only tritonclient-http, " in capsys.readouterr().err


def test_without_node_a_client_cannot_be_judged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert clients.main(["node", "--reports", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "there is no node on this machine\n"


def row(outcome: str, requirement: str, name: str = "json") -> dict[str, Any]:
    """Return a row of a report."""
    failure = {"requirement": requirement} if outcome in ("fail", "advisory") else None
    shown = {"check": "client.states-the-content-type", "row": name, "outcome": outcome, "message": "got another"}
    return {**shown, "requirements": [requirement], "failure": failure}


@pytest.mark.parametrize(
    ("rows", "status", "told"),
    [
        ([row("advisory", "CLIENT-SENDS-CONTENT-TYPE")], 0, "as known: conformant, 1 rows advisory"),
        ([row("pass", "CLIENT-SENDS-CONTENT-TYPE")], 1, "NOT SEEN    CLIENT-SENDS-CONTENT-TYPE"),
        ([row("fail", "CLIENT-SENDS-JSON", "x")], 1, "UNEXPECTED  fail CLIENT-SENDS-JSON client.states-the-content"),
    ],
    ids=["known", "fixed", "new"],
)
def test_an_outcome_is_compared_with_what_is_known(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    rows: list[dict[str, Any]],
    status: int,
    told: str,
) -> None:
    of_aio = [each for each in clients.read_known() if each.clients == ("tritonclient-http-aio",)]
    aio = [each for each in of_aio if each.check == "client.states-the-content-type"]
    report = {"verdict": "conformant", "rows": rows}
    monkeypatch.setattr(clients, "judge", lambda _, path: path.write_text(json.dumps(report), encoding="utf-8"))
    monkeypatch.setattr(clients, "read_known", lambda: aio)
    assert clients.main(["tritonclient-http-aio", "--reports", str(tmp_path)]) == status
    assert told in capsys.readouterr().out
