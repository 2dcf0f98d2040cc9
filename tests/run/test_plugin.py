"""The plugin as a user meets it: what a run prints, what it leaves behind, and its exit status."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.support.few_rows import FEW_ROWS
from tests.support.servers import JsonOnly, judge, run_acceptor, run_bundled, serve
from tests.support.valid_reports import read_valid_report

ORDER = "response_follows_its_json"


@pytest.fixture(scope="module")
def narrowed(tmp_path_factory: pytest.TempPathFactory, reference: str) -> tuple[Path, CompletedProcess[str]]:
    """A run of one check in a folder with a conftest of the user's, and that folder."""
    folder = tmp_path_factory.mktemp("narrowed")
    (folder / "conftest.py").write_text("raise RuntimeError('imported')\n")
    written = ("--conformance-report=r.json", "--junitxml=j.xml", "--conformance-junit=rows")
    return folder, judge(folder, f"--target-url={reference}", "-k", ORDER, *written)


def test_a_narrowed_run_keeps_the_status_of_pytest_and_says_that_it_was_narrowed(
    narrowed: tuple[Path, CompletedProcess[str]],
) -> None:
    folder, run = narrowed
    assert run.returncode == 0
    report = read_valid_report(folder / "r.json")
    assert (report["verdict"], report["footer"]["complete"]) == ("narrowed", False)
    last = rf"http://127.0.0.1:\d+: narrowed run, {len(report['rows'])} of \d+ rows, none failed"
    assert re.fullmatch(last, run.stdout.splitlines()[-1])
    assert "Deploy these roles" not in run.stdout


def test_the_header_says_who_is_judged_on_what(narrowed: tuple[Path, CompletedProcess[str]], reference: str) -> None:
    lines = narrowed[1].stdout.splitlines()
    assert f"target      {reference}: oip-reference-server 0.1.0" in lines
    assert "extensions  binary_tensor_data (listed), raw (works), classification (listed)" in lines
    assert "roles       59 of 59 filled" in lines
    assert "profile     certify" in lines


def test_the_protocol_is_judged_alone_where_it_is_asked_for(tmp_path: Path, small: str) -> None:
    asked = ("--target-extension=protocol", "--conformance-profile=quick", *FEW_ROWS, "--conformance-report=r.json")
    run = judge(tmp_path, f"--target-url={small}", *asked)
    assert run.returncode == 0, run.stdout[-2000:]
    assert "extensions  protocol (asked for)" in run.stdout
    last = run.stdout.splitlines()[-1]
    assert last.startswith(f"{small} is partial in the base protocol: ")
    report = read_valid_report(tmp_path / "r.json")
    assert report["options"]["extensions"] == ["protocol"]
    assert report["target"]["extensions_offered"] == []
    assert {name for name, entry in report["extensions"].items() if entry["offered"]} == {"protocol"}
    judged = {entry["extension"] for entry in report["requirements"] if entry["verdict"] == "pass"}
    assert judged == {"protocol"}


def test_a_json_only_server_is_one_line_and_status_6(tmp_path: Path) -> None:
    with serve(JsonOnly) as url:
        run = judge(tmp_path, f"--target-url={url}")
    assert run.returncode == 6
    assert run.stdout.splitlines()[-1].startswith(f"incomplete: {url} offers none of the extensions")
    assert (run.stdout + run.stderr).count("offers none") == 1
    parts = ("binary_tensor_data: the server", "raw: HTTP 4", "classification: the", "--target-extension=protocol")
    assert all(part in run.stdout.splitlines()[-1] for part in parts)


def test_what_is_asked_for_is_judged_though_it_is_not_offered(tmp_path: Path) -> None:
    with serve(JsonOnly) as url:
        asked = ("--target-extension=binary_tensor_data", "-k", "metadata or headers or raw", "--target-timeout=1")
        run = judge(tmp_path, f"--target-url={url}", *asked, "--conformance-report=r.json")
    assert run.returncode == 1
    report = read_valid_report(tmp_path / "r.json")
    asked_for, other = (report["extensions"][name] for name in ("binary_tensor_data", "raw"))
    assert (asked_for["offered"], asked_for["counts"]["fail"] > 0) == (True, True)
    assert (other["offered"], set(other["counts"])) == (False, {"not_applicable"})
    assert "\x1b" not in run.stdout


SURVEY = "errors.nothing-breaks-in-discovery"


def ending(kind: str) -> AbstractContextManager[str]:
    return run_bundled(kind, program=("-m", "tests.support.ending_server"))


def judge_ending(folder: Path, words: str, *workers: str) -> tuple[list[Any], CompletedProcess[str]]:
    """Judge a server that ends; return the rows that failed, and the run."""
    with ending('"classification":2') as url:
        run = judge(folder, f"--target-url={url}", "-k", words, "--conformance-report=r.json", *workers)
    assert run.returncode == 1
    return [check for check in read_valid_report(folder / "r.json")["rows"] if check["outcome"] == "fail"], run


def test_a_server_that_ends_has_failed_requests_of_two_workers(tmp_path: Path) -> None:
    failed, run = judge_ending(tmp_path, "classification or ordering", "-n", "2")
    assert 1 <= len(failed) <= 2, run.stdout[-2000:]
    assert {check["failure"]["requirement"] for check in failed} == {"OIP-ALIVE"}  # nobody knows whose request it was


def test_a_server_that_ends_at_a_request_has_failed_it_and_the_run_says_how_to_go_on(tmp_path: Path) -> None:
    words = "classification.binary-data-is-obeyed or ordering"  # a row about refusals beside it may have ended it too
    (failed,), run = judge_ending(tmp_path, words)
    is_named = '"classification": 2' in failed["failure"]["request"]
    assert is_named or "in flight of" in failed["failure"]["expected"], failed
    assert failed["failure"]["requirement"] == "OIP-ALIVE-LEGAL"
    (line,) = re.findall(r"^ *(never = \[.*\])", run.stdout, re.MULTILINE)
    assert tomllib.loads(line)["never"] == [f"{failed['check']}[{failed['row']}]"]
    assert re.search(r"^ *restart = ", run.stdout, re.MULTILINE)


BAD_GATEWAY = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize("before", [nullcontext, run_acceptor, partial(run_acceptor, answer=BAD_GATEWAY)])
def test_a_server_that_is_started_again_fails_each_row_that_ends_it(
    tmp_path: Path, before: Callable[[str], AbstractContextManager[str]]
) -> None:
    evidence = ("--conformance-evidence=e", "--conformance-report=r.json")
    with ending('again:"classification":2') as server, before(server) as url:
        run = judge(tmp_path, f"--target-url={url}", "-k", "another_place", *evidence)
    assert run.returncode == 1, run.stdout[-2000:]
    rows = read_valid_report(tmp_path / "r.json")["rows"]
    failed = [row["failure"]["requirement"] for row in rows if row["outcome"] == "fail"]
    assert failed, run.stdout[-2000:]
    assert set(failed) == {"OIP-ALIVE-LEGAL"}
    assert {row["outcome"] for row in rows} >= {"fail", "pass"}
    assert not {row["outcome"] for row in rows} & {"error", "blocked"}
    judge(tmp_path, "--target-replay=e/run.har.xz", "-k", "another_place", "--conformance-report=again.json")
    again = read_valid_report(tmp_path / "again.json")["rows"]
    assert [(row["outcome"], row["message"]) for row in again] == [(row["outcome"], row["message"]) for row in rows]


def test_a_server_that_restarts_between_requests_fails_nothing(tmp_path: Path) -> None:
    with ending("after:20") as url:
        run = judge(tmp_path, f"--target-url={url}", "-k", "ordering or headers", "--conformance-report=r.json")
    rows = read_valid_report(tmp_path / "r.json")["rows"]
    assert [row for row in rows if row["outcome"] in ("fail", "advisory", "error", "blocked")] == []
    assert run.returncode == 0, run.stdout[-2000:]


def test_the_restart_command_is_run_and_kept_out_of_reports(tmp_path: Path) -> None:
    """The command ends with an error: the run shows its output, and the report neither."""
    (tmp_path / "target.toml").write_text("restart = 'echo ran-$((1 + 1)) >> ran.txt; cat ran.txt; exit 7'")
    with ending('"classification":2') as url:
        options = (f"--target-url={url}", "--target-config=target.toml", "-k", "classification")
        run = judge(tmp_path, *options, "--conformance-report=r.json", "--conformance-evidence=e")
    assert (tmp_path / "ran.txt").read_text() == "ran-2\n"
    assert "the restart command ended with exit status 7" in run.stdout
    assert re.search("The restart command failed; the end of its output:\n *ran-2", run.stdout)
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.name not in ("target.toml", "ran.txt")]
    assert not [path for path in written if b"ran-" in path.read_bytes()]


def test_a_server_that_ends_in_the_survey_is_nonconformant(tmp_path: Path) -> None:
    with ending("raw:") as url:
        run = judge(tmp_path, f"--target-url={url}", "--conformance-report=r.json")
    assert run.returncode == 1
    report = read_valid_report(tmp_path / "r.json")
    assert [(check["check"], check["failure"]["requirement"]) for check in report["rows"]] == [
        (SURVEY, "OIP-ALIVE-LEGAL")
    ]
    assert report["interoperable"] is False
    assert f"{url} is nonconformant: 1 row failed; cannot connect to {url}" in run.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target-url=ftp://x"], "--target-url 'ftp://x' is not an http or https URL"),
        (["--client-adapter=a", "--target-model=m"], "--target-model cannot be combined with --client-adapter"),
        (
            ["--target-url=http://x", "--conformance-robustness", "-n", "2"],
            "--conformance-robustness cannot be combined",
        ),
        (
            ["--target-url=http://x", "-m", "must and typo"],
            "-m: unknown marker 'typo'; the markers are must, should, may, observe, protocol, robustness, "
            "binary_tensor_data, raw",
        ),
    ],
)
def test_usage_errors_are_one_line_and_status_4(tmp_path: Path, arguments: list[str], message: str) -> None:
    """Those of options and files: tests/judging/test_run_options.py."""
    run = judge(tmp_path, *arguments)
    (line,) = run.stderr.split("\n\n")[0].splitlines()
    assert run.returncode == 4
    assert line.startswith(f"ERROR: {message}")
    assert "Traceback" not in run.stdout + run.stderr


def test_addresses_for_watched_clients_name_no_target(tmp_path: Path, small: str) -> None:
    (tmp_path / "test_own.py").write_text("def test_own():\n    pass\n")
    run = judge(tmp_path, OIP_TARGET_URL=small, OIP_WATCHED="1")
    assert (run.returncode, "target " in run.stdout) == (0, False), run.stdout
    assert "1 passed" in run.stdout


def test_a_conftest_of_the_user_does_not_reach_into_the_suite(narrowed: tuple[Path, CompletedProcess[str]]) -> None:
    folder, run = narrowed
    assert (folder / "conftest.py").exists()
    assert run.returncode == 0, run.stdout + run.stderr
    assert "imported" not in run.stdout + run.stderr


def test_junit_names_the_requirements(narrowed: tuple[Path, CompletedProcess[str]]) -> None:
    assert '<property name="requirements" value="BIN-ORDER-O"' in (narrowed[0] / "j.xml").read_text()


def test_profiles_differ_in_what_they_run(tmp_path: Path, reference: str) -> None:
    counts = {}
    for profile in ("quick", "certify", "explore"):
        arguments = (f"--conformance-profile={profile}", "--conformance-report=r.json", "--hypothesis-seed=7")
        run = judge(tmp_path, f"--target-url={reference}", "-k", "datatypes and uint64", *arguments)
        report = read_valid_report(tmp_path / "r.json")
        assert {check["outcome"] for check in report["rows"]} == {"pass"}
        counts[profile] = (len(report["rows"]), report["seed"], "seed 7" in run.stdout)
    assert counts["quick"][0] < counts["certify"][0] < counts["explore"][0]
    assert [counts[profile][1:] for profile in counts] == [(None, False), (0, False), (7, True)]


def test_advice_fails_when_strict(tmp_path: Path) -> None:
    with serve(JsonOnly) as url:
        asked = (f"--target-url={url}", "--target-extension=binary_tensor_data", "-k", "input_against_the_metadata")
        mild = judge(tmp_path, *asked)
        strict = judge(tmp_path, *asked, "--conformance-strict")
    assert (mild.returncode, strict.returncode) == (0, 1)
    assert "advisory" in mild.stdout.splitlines()[-2]


def test_evidence_is_left_as_files(tmp_path: Path) -> None:
    with serve(JsonOnly) as url:
        arguments = ("--target-extension=binary_tensor_data", "--conformance-evidence=evidence")
        run = judge(tmp_path, f"--target-url={url}", "-k", "octet_stream_request_is_accepted", *arguments)
    folder = tmp_path / "evidence/headers.octet-stream-request-is-accepted-json-outputs"
    request = (folder / "request.bin").read_bytes()
    # the JSON says INT32 of shape [3], 12 bytes follow it
    assert request.startswith(b'{"inputs":[{"name":"INPUT","shape":[3],"datatype":"INT32"')
    assert request.rindex(b"}") == len(request) - 13
    assert json.loads((folder / "response.bin").read_bytes()) == {"error": "not an inference request"}
    assert f"--data-binary @{folder.relative_to(tmp_path)}/request.bin" in run.stdout
