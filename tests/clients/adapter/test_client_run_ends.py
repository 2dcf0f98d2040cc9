"""`pytest --client-adapter=...` where the adapter breaks, or what is asked for cannot be: how it ends, what is told."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from conformance.spec.report import ReportRow
from tests.clients.adapter.programs import (
    FEW,
    HELLO,
    RunResult,
    list_report_options,
    make_answering_command,
    make_option,
    make_small_command,
    run_pytest,
)
from tests.support.servers import run_command

USAGE, INCOMPLETE = 4, 6


# --- an adapter that breaks -------------------------------------------------------------------------------------------


def find_kind(check: ReportRow) -> str | None:
    reason = check.get("reason")
    return reason["kind"] if reason else None


def reasons(found: RunResult) -> set[str | None]:
    return {find_kind(check) for check in found.report["rows"] if check["outcome"] == "error"}


def test_an_adapter_that_dies_is_an_error_of_its_rows_with_its_last_words(tmp_path: Path) -> None:
    found = run_pytest(tmp_path, make_option(make_small_command("dies")), *FEW, *list_report_options("r.json"))
    assert found.status == INCOMPLETE
    assert found.last.startswith("small 1.2 is incomplete: 13 rows in error; ")
    assert "      | the library\\x1b[31m has crashed" in found.lines
    assert reasons(found) == {"adapter_broke"}
    assert {check["failure"] for check in found.report["rows"] if check["outcome"] == "error"} == {None}


def test_one_that_dies_once_costs_one_row(tmp_path: Path) -> None:
    life = {"SMALL_ADAPTER_LIFE": str(tmp_path / "life")}
    found = run_pytest(
        tmp_path, make_option(make_small_command("dies-once")), *FEW, *list_report_options("r.json"), **life
    )
    outcomes = [check["outcome"] for check in found.report["rows"]]
    assert (outcomes.count("error"), outcomes.count("pass"), outcomes.count("not_applicable")) == (1, 12, 12)


def test_what_a_library_prints_is_named(tmp_path: Path) -> None:
    found = run_pytest(tmp_path, make_option(make_small_command("prints")), *FEW, *list_report_options("r.json"))
    assert any(
        "is not JSON: 'connected'; redirect what libraries print to standard error" in one for one in found.lines
    )
    assert reasons(found) == {"adapter_broke"}


def test_one_that_breaks_again_and_again_ends_the_judging(tmp_path: Path) -> None:
    dying = make_answering_command(HELLO, then="sys.exit(1)")
    found = run_pytest(tmp_path, make_option(dying), *FEW, *list_report_options("r.json"))
    kinds = list(map(find_kind, found.report["rows"]))
    assert (kinds.count("adapter_broke"), kinds.count("target_lost")) == (10, 15)
    assert found.last.startswith("odd is incomplete: ")
    assert "failed 10 times in a row" in found.last


def test_one_that_never_says_who_it_is_ends_the_run(tmp_path: Path) -> None:
    found = run_pytest(
        tmp_path, make_option(make_small_command("silent")), "--client-timeout=0.5", *list_report_options("r.json")
    )
    assert found.status == INCOMPLETE
    assert found.last == "incomplete: the adapter has not answered in 0.5 s"
    assert found.report["verdict"] == "incomplete"


def test_one_that_is_not_there_ends_the_run(tmp_path: Path) -> None:
    found = run_pytest(tmp_path, "--client-adapter=no-such-adapter --with 'an argument'", "-n", "2")
    assert found.status == INCOMPLETE
    assert found.last.startswith("incomplete: the adapter cannot be started: no-such-adapter: ")


def test_nothing_runs_any_more_when_the_run_has_ended(tmp_path: Path) -> None:
    lives = tmp_path / "lives"
    os.mkfifo(lives)
    reader = os.open(lives, os.O_RDONLY | os.O_NONBLOCK)
    stays = f"file = open({str(lives)!r}, 'w'); sys.stdin.readline(); print({HELLO!r}, flush=True); time.sleep(600)"
    adapter = (sys.executable, "-c", f"import sys, time; {stays}")
    found = run_pytest(tmp_path, make_option(adapter), "--collect-only", "-q")
    assert found.status == 0
    assert os.read(reader, 1) == b""  # nobody has it open: else there would be nothing to read yet
    os.close(reader)


# --- what a user says -------------------------------------------------------------------------------------------------


def test_the_ini_file_names_an_adapter_too(tmp_path: Path) -> None:
    """As the environment does: tests/judging/test_run_options.py."""
    (tmp_path / "pytest.ini").write_text(f"[pytest]\noip_client_adapter = {shlex.join(make_small_command())}\n")
    found = run_pytest(tmp_path, *FEW)
    assert found.status == 0
    assert "client      small 1.2 (Python)" in found.lines


def test_a_server_on_the_command_line_comes_before_an_adapter_elsewhere(tmp_path: Path) -> None:
    found = run_pytest(tmp_path, "--target-url=http://127.0.0.1:1", OIP_CLIENT_ADAPTER=shlex.join(make_small_command()))
    assert found.status == INCOMPLETE
    assert "127.0.0.1:1" in found.last


def test_client_run_command_gives_same_verdict(tmp_path: Path) -> None:
    done = run_command(tmp_path, "client", "run", *FEW, "--color=no", "--", *make_small_command("wrong-size"))
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("small 1.2 is nonconformant")
    alone = run_command(tmp_path, "client", "run", "-q")
    assert alone.returncode == USAGE
    assert alone.stderr.startswith("oip-conformance: error: client run needs the command of an adapter after --: ")
