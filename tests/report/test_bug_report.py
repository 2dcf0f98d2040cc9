"""Bug reports: what a maintainer reads reproduces the bug with curl or Python alone, and is safe to paste."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.judging.selection import find_row
from conformance.report import bug_report
from conformance.report.bug_report import Bug, FailedRow, describe_symptom
from conformance.spec import ledger
from conformance.spec.ledger import Level, Party
from conformance.spec.report import Pattern
from tests.support.made_reports import failure
from tests.support.servers import judge, run_bundled, run_command, run_with_grpc


def read_commands(markdown: str) -> str:
    found = re.search(r"^```sh\n(.*?)^```$", markdown, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def run_commands(folder: Path, commands: str) -> bytes:
    """Run commands with this Python as `python3`, and return what they print."""
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=folder,
        env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "PYTHON": sys.executable},
        capture_output=True,
        check=True,
        timeout=60,
    ).stdout


@pytest.fixture(scope="module")
def reversed_outputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with evidence `e` and report `r.json` of a faulty server, which still runs."""
    folder = tmp_path_factory.mktemp("bugs")
    with run_bundled("--model=multi", "--model=identity_int32", "--fault=binary-outputs-in-reverse") as url:
        selection = ("-k", "response_follows_its_json and INT64-BOOL-FP32")
        judge(folder, f"--target-url={url}", *selection, "--conformance-evidence=e", "--conformance-report=r.json")
        yield folder


@pytest.mark.parametrize("source", ["e", "r.json"])
def test_a_bug_report_reproduces_the_bug_with_curl(reversed_outputs: Path, source: str) -> None:
    run = run_command(reversed_outputs, "bug-report", source)
    title, *lines = run.stdout.splitlines()
    assert (run.returncode, run.stderr) == (0, "")
    assert title == "# oip-reference-server 0.1.0: Does not write binary outputs in the order of the answer's JSON"
    commands = read_commands(run.stdout)
    assert commands.startswith("curl -sS -i -X POST -H 'Content-Type: application/json'")
    printed = run_commands(reversed_outputs, commands).decode()
    (first_wrong,) = [line for line in lines if "<- tensor 0" in line]
    # The server's wrong bytes come back by the commands of the report: od prints an offset, bytes, and `>text<`.
    dump = "".join("".join(line.partition(" ")[2].split(" >")[0].split()) for line in printed.splitlines())
    assert b"HTTP/1.1 200 OK".hex() in dump
    assert "".join(first_wrong.split()[1:9]) in dump
    assert "User-Agent" not in commands  # the failure is not about the client's name
    assert any("element 0 differs" in line for line in lines if line.startswith("Actual"))
    assert any(line.startswith("Model `multi`: ") for line in lines)
    assert any("read it" not in line and "](https://" in line for line in lines if line.startswith("- Triton"))


def test_earlier_requests_are_in_a_program_of_the_standard_library(tmp_path: Path) -> None:
    with run_bundled("--model=identity_int32", "--fault=id-left-over-from-the-request-before") as url:
        judge(tmp_path, f"--target-url={url}", "-k", "id_is_not_left_over", "--conformance-evidence=e")
        run = run_command(tmp_path, "bug-report", "e", "oip-isolation")
        commands = read_commands(run.stdout)
        printed = run_commands(tmp_path, commands)
    assert """b'{"id":"the-one-before",""" in run.stdout
    assert commands.startswith("mkdir repro && cd repro && base64 -d <<'END' | tar xz\n")
    assert commands.endswith(f"END\nURL={url} sh repro.sh\n")
    assert printed.count(b"HTTP 200") == 2
    assert b'"id":"the-one-before"' in printed.splitlines()[-1]


@pytest.mark.parametrize(
    ("fault", "row", "sent", "last"),
    [
        ("head-answered-like-get", "after_head and head-of-server", ["01: HEAD", "02: POST"], "BadStatusLine("),
        (
            "pipelined-requests-answered-last-first",
            "pipelined_requests and all-good",
            ["01-01: POST", "01-02: POST", "01-03: POST"],
            '{"id":"request-0002",',
        ),
    ],
)
def test_what_http_client_hides_is_reproduced(tmp_path: Path, fault: str, row: str, sent: list[str], last: str) -> None:
    with run_bundled("--model=identity_int32", f"--fault={fault}") as url:
        judge(tmp_path, f"--target-url={url}", "-k", row, "--conformance-evidence=e")
        run = run_command(tmp_path, "bug-report", "e")
        printed = run_commands(tmp_path, read_commands(run.stdout)).decode().splitlines()
    assert f"The program sends {len(sent)} requests and prints the answers: `" in run.stdout
    assert [line.partition(" /")[0] for line in printed[: len(sent)]] == sent
    assert printed[-1].startswith(last)
    assert last.startswith("{") or ": no whole answer: BadStatusLine(" in printed[1]


def test_calls_are_reproduced_with_grpcio(tmp_path: Path) -> None:
    with run_with_grpc("--model=identity_bytes", "--fault=grpc-typed-strings-end-at-nul") as (_, grpc):
        judge(tmp_path, f"--target-grpc={grpc}", "-k", "typed_tensors and BYTES-nul", "--conformance-evidence=e")
        run = run_command(tmp_path, "bug-report", "e")
        printed = run_commands(tmp_path, read_commands(run.stdout))
    assert run.stdout.startswith(
        "# oip-reference-server 0.1.0: Misreads or misplaces tensors in typed contents (gRPC)\n"
    )
    assert read_commands(run.stdout).startswith("# needs: pip install grpcio\necho ")
    assert grpc in read_commands(run.stdout)
    assert b"identity_bytes" in printed


def test_files_are_written_for_each_requirement(reversed_outputs: Path) -> None:
    run = run_command(reversed_outputs, "bug-report", "e", "-o", "bugs")
    assert run.stdout == "wrote bugs/BIN-ORDER-O.md\n"
    assert (reversed_outputs / "bugs/BIN-ORDER-O.md").read_text().startswith("# oip-reference-server 0.1.0: Does not ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["e", "BIN-ORDER-I"], "e has no row in which BIN-ORDER-I is not met"),
        (["e", "BIN-ORDERS-O"], "unknown requirement 'BIN-ORDERS-O'; did you mean"),
        (["."], ".: there is no evidence of a failed row"),
        (["absent.json"], "cannot read absent.json: No such file or directory"),
        (["e", "-o", "r.json"], "cannot write r.json: File exists"),
    ],
)
def test_errors_are_one_line(reversed_outputs: Path, arguments: list[str], message: str) -> None:
    run = run_command(reversed_outputs, "bug-report", *arguments)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith(f"oip-conformance: error: {message}")
    assert run.stderr.count("\n") == 1


def test_evidence_of_a_client_is_named_as_such(tmp_path: Path) -> None:
    folder = tmp_path / "e/client.posts-to-the-model-per-cent"
    folder.mkdir(parents=True)
    (folder / "check.json").write_text(
        '{"party": "client", "check": "c", "row": "r", "requirement": "CLIENT-SENDS-POST"}'
    )
    run = run_command(tmp_path, "bug-report", "e")
    assert run.returncode == 2
    assert "e is evidence of a client, and bug reports are for servers" in run.stderr


def test_every_requirement_of_a_server_has_a_symptom() -> None:
    symptoms = {entry.name for entry in ledger.load().values() if entry.symptom}
    judged = {
        requirement.name
        for requirement in ledger.load().values()
        if requirement.party is Party.SERVER
        and not requirement.is_of_robustness
        and requirement.level is not Level.OBSERVE
    }
    assert symptoms == judged


def test_text_of_a_server_stays_text() -> None:
    hostile = "<script>alert(1)</script> ``` [x](http://evil) \x1b[31m @everyone"
    unmet = failure(expected=hostile, actual=hostile, sent=hostile, answer=hostile)
    row = FailedRow("ordering.response-follows-its-json", "x", "http://h", unmet)
    shown = bug_report.render(Bug(hostile, ledger.get_requirement("BIN-ORDER-O"), [row], "0.1.0"))
    outside = re.sub(r"^(`{3,})text\n.*?^\1$", "", shown, flags=re.MULTILINE | re.DOTALL)
    outside = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", outside)
    assert "<script>" not in outside
    assert "](http://evil)" not in outside
    assert "\x1b" not in shown


def test_the_same_requirement_over_grpc_says_so() -> None:
    assert describe_symptom(ledger.get_requirement("OIP-ID/grpc")) == "Does not return the id of a request (gRPC)"


@pytest.mark.parametrize(
    ("requirement", "row", "title", "why"),
    [
        ("OIP-ALIVE-LEGAL", ("json.data-is-flat-or-nested", "nested@m"), "Ends at a legal request", "OIP-DATA"),
        ("OIP-ALIVE", ("errors.refusal-is-an-oip-error", "errors-last-element-missing@m"), "Ends at a request", ""),
    ],
)
def test_a_request_that_ends_the_server_is_explained(
    requirement: str, row: tuple[str, str], title: str, why: str
) -> None:
    unmet, case = failure(requirement, ends_server=True), find_row(*row, models=["m"])
    assert case is not None
    bug = Bug("s", ledger.get_requirement(requirement), [FailedRow(*row, "http://h", unmet)], "0.1.0", case=case)
    shown = bug_report.render(bug)
    assert shown.startswith(f"# s: {title}\n")
    assert f"The server ended at this request of `{row[0]} [{row[1]}]`: The server" in shown
    assert (f"The request is legal, because {why} says:" in shown) is bool(why)
    assert all(sentence.url in shown for sentence in case.requirement.sources)


def test_requirements_that_only_a_pattern_of_another_one_misses_have_its_cause() -> None:
    def make_bug(name: str, rows: int) -> Bug:
        failed = [FailedRow("a.b", str(place), "http://h", failure(name)) for place in range(rows)]
        return Bug("s", ledger.get_requirement(name), failed, "0.1.0")

    bugs = [make_bug("OIP-ANSWER", 2), make_bug("OIP-VALUE", 3), make_bug("BIN-BYTES-I", 4)]
    missed = {"BIN-BYTES-I": 4, "OIP-ANSWER": 2, "OIP-VALUE": 2}
    pattern: Pattern = {
        "requests": "with BYTES", "answer": "refused", "requirement": "BIN-BYTES-I", "missed": missed, "rows": 8,
        "others": 30,
    }  # fmt: skip
    merged = bug_report.merge_same_causes(bugs, [pattern])
    assert {bug.requirement.id: bug.same_cause for bug in merged} == {"OIP-VALUE": [], "BIN-BYTES-I": ["OIP-ANSWER"]}
    assert "- Same cause: `OIP-ANSWER`, which " in bug_report.render(merged[1])
    assert bug_report.merge_same_causes(bugs, []) == [replace(bug, same_cause=[]) for bug in bugs]


def test_evidence_merges_bugs_of_one_cause_as_a_report_does(tmp_path: Path) -> None:
    with run_bundled("--model=multi", "--fault=json-inputs-beside-binary-ones-refused") as url:
        rows = ("-k", "json_inputs_take_no_bytes or overrides or (golden and json-inputs)")
        judge(tmp_path, f"--target-url={url}", *rows, "--conformance-evidence=e", "--conformance-report=r.json")
    for source in ("e", "r.json"):
        run = run_command(tmp_path, "bug-report", source, "-o", f"of-{source}")
        assert run.stdout == f"wrote of-{source}/OIP-ANSWER.md, which covers BIN-MIXED-I\n"
    (tmp_path / "e/patterns.json").write_text("[{}]")
    assert "e/patterns.json is not evidence of this suite: " in run_command(tmp_path, "bug-report", "e").stderr


def test_evidence_that_cannot_be_read_is_one_line(reversed_outputs: Path, tmp_path: Path) -> None:
    copy = tmp_path / "row"
    shutil.copytree(reversed_outputs / "e/ordering.response-follows-its-json-INT64-BOOL-FP32", copy)
    (copy / "request.bin").unlink()
    run = run_command(tmp_path, "bug-report", "row")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith(
        "oip-conformance: error: the evidence of ordering.response-follows-its-json [INT64-BOOL-FP32]"
    )
    assert run.stderr.count("\n") == 1
