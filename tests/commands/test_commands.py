"""The `oip-conformance` command: output, exit status, and what becomes of `serve`."""

from __future__ import annotations

import os
import sys

import pytest

from conformance import __version__
from conformance.commands import explain, main, requirements_page
from conformance.commands.requirements_page import render
from conformance.terms import ledger

CHECKS = {"BIN-ORD-O": ["ordering.answer-follows-its-json"]}


@pytest.fixture(autouse=True)
def _few_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (explain, requirements_page):
        monkeypatch.setattr(module, "answers_by_requirement", lambda: CHECKS)


@pytest.mark.parametrize("spelling", ["BIN-ORD-O", "bin-ord-o"])
def test_explain_prints_one_requirement(spelling: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["explain", spelling]) == 0
    printed = capsys.readouterr()
    assert printed.out == ledger.explain("BIN-ORD-O", CHECKS) + "\n"
    assert printed.out.startswith("BIN-ORD-O\n  Level      MUST, literal\n")
    assert printed.out.endswith("\n  Checks     ordering.answer-follows-its-json\n")
    assert printed.err == ""


def test_explain_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "BIN-META            MUST     metadata"
    assert [line.split()[0] for line in lines] == list(ledger.load())
    assert {len(line.split()) for line in lines} == {3}


def test_explain_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["explain", "BIN-ORDER-O"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("oip-conformance: error: unknown requirement 'BIN-ORDER-O'; did you mean BIN-ORD-O")
    assert printed.err.count("\n") == 1


def test_requirements_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["requirements"]) == 0
    assert capsys.readouterr().out == render(ledger.load(), CHECKS)


@pytest.mark.parametrize("arguments", [["--port", "0"], ["--help"], ["--fault", "a", "--", "-x"], []])
def test_serve_becomes_the_reference_server(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    class Replaced(Exception):  # noqa: N818 (not an error: it ends the process as execv would)
        pass

    calls: list[tuple[str, list[str]]] = []

    def execv(path: str, command: list[str]) -> None:
        calls.append((path, command))
        raise Replaced

    monkeypatch.setattr(os, "execv", execv)
    with pytest.raises(Replaced):
        main.main(["serve", *arguments])
    assert calls == [(sys.executable, [sys.executable, "-m", "reference_server", *arguments])]


@pytest.mark.parametrize(
    ("arguments", "status", "stream", "text"),
    [
        (["--version"], 0, "out", f"oip-conformance {__version__}\n"),
        (["--help"], 0, "out", "oip-conformance explain BIN-ORD-O "),
        ([], 2, "err", "the following arguments are required: COMMAND"),
        (["judge"], 2, "err", "invalid choice: 'judge'"),
        (["explain", "BIN-ORD-O", "BIN-ORD-I"], 2, "err", "unrecognized arguments: BIN-ORD-I"),
        (["requirements", "--html"], 2, "err", "unrecognized arguments: --html"),
        (["--ver"], 2, "err", "error: "),
    ],
)
def test_usage(arguments: list[str], status: int, stream: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main.main(arguments)
    assert stopped.value.code == status
    assert text in getattr(capsys.readouterr(), stream)
