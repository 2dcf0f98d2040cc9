"""`pytest --client-adapter=...` as a user meets it: the verdict and its exit status, whatever the adapter does."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from conformance.transport import recording
from conformance.transport.har import HarError
from tests.clients.adapter.programs import (
    FEW,
    RunResult,
    list_report_options,
    make_option,
    make_small_command,
    run_pytest,
)
from tests.support.few_rows import FEW_ROWS
from tests.support.run_archives import read_log
from tests.support.servers import run_command

ROOT = Path(__file__).parents[3]
HONEST = ("env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "tests.clients.honest")
REPORTS = ("r.json", "r.html", "r.md", "r.svg", "r.shields.json")


# --- a client that is right -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """A run of all requirements on two workers, each with an adapter and a peer of its own."""
    folder = tmp_path_factory.mktemp("whole")
    files = [*list_report_options(*REPORTS), "--conformance-evidence=evidence", "--junitxml=j.xml"]
    return run_pytest(folder, make_option(HONEST), "-n", "2", *FEW_ROWS, *files)


def test_a_right_client_is_conformant(whole: RunResult) -> None:
    assert whole.status == 0, whole.lines[-30:]
    assert whole.last.startswith("honest 1 is conformant (")
    assert "not met" not in whole.last


def test_the_header_says_which_client_is_judged_and_how(whole: RunResult) -> None:
    shown = {line[:11].strip(): line[12:] for line in whole.lines[:12]}
    assert shown["client"] == "honest 1 (Python)"
    assert shown["adapter"] == shlex.join(HONEST)
    assert shown["transports"] == "http, grpc"
    assert shown["profile"] == "certify"


def test_its_report_is_about_a_client(whole: RunResult) -> None:
    report = whole.report
    assert (report["party"], report["verdict"], report["footer"]["complete"]) == ("client", "conformant", True)
    target = report["target"]
    assert (target["name"], target["version"], target["language"]) == ("honest", "1", "Python")
    assert target["transports"] == ["http", "grpc"]
    assert target["url"].startswith("http://127.0.0.1:")
    assert {entry["area"] for entry in report["requirements"]} == {"client", "client-grpc"}
    assert {check["area"] for check in report["rows"]} == {"client", "client-grpc"}


def test_a_row_counts_for_every_extension_that_it_answers_for(whole: RunResult) -> None:
    found = whole.report["extensions"]
    assert {entry["verdict"] for entry in found.values()} == {"conformant"}
    assert set(whole.report["target"]["extensions_offered"]) == set(found) - {"protocol"}
    assert found["raw"]["counts"]["pass"] > 0


def test_clients_are_compared_with_clients_alone(whole: RunResult) -> None:
    page = run_command(whole.folder, "compare", "r.json", "r.json")
    assert page.returncode == 0, page.stderr
    assert page.stdout.startswith("# Conformance of inference clients, side by side\n")
    assert "server" not in page.stdout.partition("## Requirements")[0]
    of_server = str(ROOT / "docs/results/reference.json.xz")
    mixed = run_command(whole.folder, "compare", "r.json", of_server)
    assert mixed.returncode == 2
    assert mixed.stderr.startswith("oip-conformance: error: reports of servers and of clients cannot be compared")


@pytest.mark.parametrize("name", REPORTS[1:])
def test_no_page_about_a_client_speaks_of_a_server_that_was_judged(whole: RunResult, name: str) -> None:
    text = whole.text(name).lower()
    assert "this server" not in text
    assert "<dt>server</dt>" not in text
    assert "model role" not in text
    assert "not offered" not in text


def test_pages_name_the_client(whole: RunResult) -> None:
    assert "<dt>Client</dt><dd>honest 1 (Python)</dd>" in whole.text("r.html")
    assert "| uses | `binary_tensor_data`, `classification`" in whole.text("r.md")
    assert "honest 1: conformant" in whole.text("r.svg")


def test_junit_has_a_case_for_each_requirement(whole: RunResult) -> None:
    cases = ElementTree.parse(whole.folder / "j.xml").getroot().findall("*/testcase")  # noqa: S314 - our own file
    assert {case.get("classname") for case in cases} == {"client", "client-grpc"}
    assert len(cases) > 40
    assert [case.get("name") for case in cases if case.find("failure") is not None] == []


def test_every_exchange_is_recorded_and_cannot_be_taken_for_a_servers(whole: RunResult) -> None:
    log = read_log(whole.folder / "evidence/run.har.xz")
    assert log["_party"] == "client"
    requests = [entry for entry in log["entries"] if "_received" in entry]
    assert len(requests) == sum(len(check["exchanges"]) for check in whole.report["rows"])
    with pytest.raises(HarError, match="a recording of a client"):
        recording.load(whole.folder / "evidence/run.har.xz")


# --- a client that is wrong -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    folder = tmp_path_factory.mktemp("faulty")
    files = [*list_report_options(*REPORTS), "--conformance-evidence=evidence", "--junitxml=j.xml"]
    return run_pytest(folder, make_option(make_small_command("wrong-size")), *FEW, *files)


def test_a_wrong_client_fails_the_requirement(faulty: RunResult) -> None:
    assert faulty.status == 1
    assert faulty.last.startswith("small 1.2 is nonconformant: 13 rows failed")
    assert {check["failure"]["requirement"] for check in faulty.report["rows"] if check["failure"]} == {
        "CLIENT-SENDS-SIZE"
    }


def test_what_fails_counts_for_the_extension_of_what_is_failed_alone(faulty: RunResult) -> None:
    found = faulty.report["extensions"]
    assert found["binary_tensor_data"]["counts"] == {"fail": 13}
    assert found["protocol"]["counts"] == {"not_applicable": 12}


def test_a_failure_shows_what_was_asked_sent_and_expected_with_the_bytes(faulty: RunResult) -> None:
    start = next(place for place, line in enumerate(faulty.lines) if line.startswith("1. CLIENT-SENDS-SIZE"))
    block = faulty.lines[start : faulty.lines.index("", start)]
    shown = {line[6:16].strip(): line[16:] for line in block if line[:6] == " " * 6 and line[6:7].isalpha()}
    assert shown["Check"] == "client.sends-every-datatype [BOOL-binary]"
    assert shown["Asked"].startswith("over http: model ")
    assert shown["Asked"].endswith("BOOL shape [3] binary")
    assert shown["Sent"].startswith("POST /v2/models/")
    assert '"binary_data_size": 4' in shown["Request"]
    assert (shown["Expected"], shown["Actual"]) == ("3 for BOOL [3]", "inputs[0].parameters.binary_data_size: 4")
    assert (
        shown["Rerun"]
        == f"{shlex.join(['pytest', make_option(make_small_command('wrong-size'))])} -k CLIENT-SENDS-SIZE"
    )
    assert any("<- tensor 0 IN0 BOOL" in line for line in block)
    assert "Repeat" not in shown


def test_what_it_cannot_do_is_shown_with_its_reason(faulty: RunResult) -> None:
    (line,) = [
        line
        for line in faulty.lines
        if line.startswith("the client cannot make this inference: it sends binary data alone: 12 rows")
    ]
    assert "client.sends-every-datatype [BOOL-json]" in line


def test_a_failed_row_leaves_evidence(faulty: RunResult) -> None:
    folder = faulty.folder / "evidence" / "client.sends-every-datatype-INT32-binary"
    hello, asked = [json.loads(line) for line in (folder / "asked.jsonl").read_text().splitlines()]
    (said,) = [json.loads(line) for line in (folder / "said.jsonl").read_text().splitlines()]
    assert (hello["command"], asked["command"], asked["seq"], said["seq"]) == ("hello", "infer", 2, 2)
    body = (folder / "request.bin").read_bytes()
    assert asked["inferences"][0]["inputs"][0]["datatype"] == "INT32"
    assert b'"binary_data_size": ' in body
    assert (folder / "answer.bin").read_bytes().startswith(b"{")
    assert "Inference-Header-Content-Length" in (folder / "request.txt").read_text()
    assert json.loads((folder / "check.json").read_text())["party"] == "client"


def test_its_failed_rows_are_judged_again(faulty: RunResult) -> None:
    evidence = str(faulty.folder / "evidence")
    still = run_command(
        faulty.folder, "replay", evidence, "--client-adapter", shlex.join(make_small_command("wrong-size"))
    )
    assert (still.returncode, still.stdout.count("failed  client.sends-every-datatype")) == (1, 13)
    fixed = run_command(faulty.folder, "replay", evidence, "--client-adapter", shlex.join(make_small_command()))
    assert (fixed.returncode, fixed.stdout.count("fixed   client.sends-every-datatype")) == (0, 13)
    without = run_command(faulty.folder, "replay", evidence)
    assert without.returncode == 2
    assert without.stderr == "oip-conformance: error: the evidence of a client needs --client-adapter COMMAND\n"


def test_other_formats_are_made_of_its_report_later(faulty: RunResult) -> None:
    made = run_command(faulty.folder, "report", "r.json", "-o", "later.md")
    assert made.returncode == 0, made.stderr
    assert faulty.text("later.md") == faulty.text("r.md")
    assert "Asked     over http: model " in faulty.text("later.md")
    assert "pytest --client-adapter=... -k client.sends-every-datatype" in faulty.text("later.md")


def test_it_stops_at_the_first_failure(tmp_path: Path) -> None:
    found = run_pytest(
        tmp_path, make_option(make_small_command("wrong-size")), "-x", *FEW, *list_report_options("r.json")
    )
    assert found.status == 1
    assert [row["outcome"] for row in found.report["rows"]].count("fail") == 1


def test_failures_that_are_known_pass_the_gate(tmp_path: Path) -> None:
    known = '[[known]]\nrequirement = "CLIENT-SENDS-SIZE"\nreason = "counts one byte too many"\n'
    (tmp_path / "b.toml").write_text(known)
    found = run_pytest(
        tmp_path,
        make_option(make_small_command("wrong-size")),
        *FEW,
        "--conformance-baseline=b.toml",
        *list_report_options("r.json"),
    )
    assert found.status == 0, found.lines[-20:]
    assert found.last.endswith("; gate passed")
    assert len(found.report["gate"]["known"]) == 13


def test_advice_fails_where_that_is_asked_for(tmp_path: Path) -> None:
    chosen = ("-k", "client.states-the-content-type")
    advised = run_pytest(tmp_path, make_option(make_small_command("no-type")), *chosen, *list_report_options("r.json"))
    assert (advised.status, advised.report["rows"][0]["outcome"]) == (0, "advisory")
    strict = run_pytest(tmp_path, make_option(make_small_command("no-type")), *chosen, "--conformance-strict")
    assert strict.status == 1
