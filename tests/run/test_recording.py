"""Recordings and evidence: what a run leaves, judged again without a server, and repeated with one."""

from __future__ import annotations

import json
import lzma
import re
import subprocess
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from tests.support.few_rows import FEW_ROWS
from tests.support.run_archives import expand_archive, read_log
from tests.support.servers import FEW_MODELS, JsonOnly, judge, run_bundled, run_command, run_proxy, serve

QUICK = "--conformance-profile=quick"


def rows(path: Path) -> list[dict[str, Any]]:
    """Return what a report says of each row, but for what a clock says and for where the evidence is."""
    found: list[dict[str, Any]] = json.loads(path.read_text())["rows"]
    for row in found:
        del row["duration_s"]
        if row.get("failure"):
            del row["failure"]["repeat"]
    return found


def entries(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_log(folder / "run.har.xz")["entries"]
    return found


def judge_twice(folder: Path, url: str, *options: str, workers: tuple[str, ...] = ()) -> tuple[int, int]:
    """Judge a server, and its recording, which says the same of each row; return both exit statuses."""
    left = ("--conformance-evidence=e", "--conformance-report=a.json")
    live = judge(folder, f"--target-url={url}", QUICK, *options, *workers, *left)
    again = judge(folder, "--target-replay=e/run.har.xz", QUICK, *options, "--conformance-report=b.json")
    assert rows(folder / "a.json") == rows(folder / "b.json"), again.stdout[-2000:]
    return live.returncode, again.returncode


# Two processes write a recording in parts, of whatever rows.
@pytest.mark.parametrize(
    ("options", "workers"), [(FEW_ROWS, ()), (("-k", "metadata or ordering or state"), ("-n", "2"))], ids=["one", "two"]
)
def test_a_recording_is_judged_as_the_server_was(
    tmp_path: Path, small: str, options: tuple[str, ...], workers: tuple[str, ...]
) -> None:
    assert judge_twice(tmp_path, small, *options, workers=workers) == (0, 0)
    assert not list((tmp_path / "e").glob("*.part*"))


def test_failures_of_a_recording_are_those_of_the_server(tmp_path: Path) -> None:
    with run_bundled("--fault", "inputs-shared-by-requests-in-flight", *FEW_MODELS) as url:
        assert judge_twice(tmp_path, url, "-k", "state") == (1, 1)


def test_a_target_that_died_dies_in_the_recording(tmp_path: Path, small: str) -> None:
    with run_proxy(small, connections=40) as url:
        assert judge_twice(tmp_path, url, *FEW_ROWS, "--target-timeout=1") == (1, 1)


ANSWERS = "binary_answer_has_inference_header"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, reference: str) -> Path:
    """The recording of a narrowed run; it is not to be changed."""
    folder = tmp_path_factory.mktemp("recorded")
    header = "--target-header=Authorization: Bearer tok-in-header"
    judge(folder, f"--target-url={reference}", "-k", ANSWERS, header, "--conformance-evidence=e")
    return folder / "e/run.har.xz"


def test_other_options_than_those_of_the_recording_are_an_error(tmp_path: Path, recorded: Path) -> None:
    again = judge(tmp_path, f"--target-replay={recorded}", "-k", "state", QUICK, "--conformance-report=b.json")
    assert "error" in {row["outcome"] for row in rows(tmp_path / "b.json")} <= {"error", "not_applicable", "blocked"}
    assert "the recording has no call 0 of " in again.stdout
    document = expand_archive(recorded)
    answers = [entry for entry in document["log"]["entries"] if entry["_scope"].startswith("headers.")]
    answers[0]["request"]["postData"]["text"] = "e30="
    (tmp_path / "changed.har").write_text(json.dumps(document))
    changed = judge(tmp_path, "--target-replay=changed.har", "-k", ANSWERS)
    assert "was recorded with another body" in changed.stdout
    assert "1 error" in changed.stdout


def test_a_survey_that_was_not_recorded_is_one_line_that_names_the_options(tmp_path: Path, small: str) -> None:
    own = ("-k", ANSWERS, QUICK)
    judge(tmp_path, f"--target-url={small}", *own, "--conformance-evidence=e")
    run = judge(tmp_path, "--target-replay=e/run.har.xz", *own, "--target-model=identity_int32")
    assert run.returncode == 4, run.stdout[-2000:]
    (line,) = [line for line in run.stderr.splitlines() if line]
    assert re.fullmatch(
        r"ERROR: --target-replay: the recording has no call \d+ of survey; "
        r"it was made with --conformance-profile=quick",
        line,
    )


def test_the_roles_of_a_recording_can_be_judged_without_its_models(tmp_path: Path, small: str) -> None:
    own = ("-k", ANSWERS, QUICK, *FEW_ROWS)
    recorded = (*own, "--target-model=identity_int32", "--conformance-evidence=e", "--conformance-report=a.json")
    judge(tmp_path, f"--target-url={small}", *recorded)
    again = judge(tmp_path, "--target-replay=e/run.har.xz", *own, "--conformance-report=b.json")
    assert again.returncode == 0
    first, second = rows(tmp_path / "a.json"), rows(tmp_path / "b.json")
    assert [row["outcome"] for row in first if "@" not in row["row"]] == [row["outcome"] for row in second]


def test_an_archive_has_every_exchange_and_no_secret(recorded: Path, reference: str) -> None:
    log = read_log(recorded)
    assert (log["version"], log["creator"]["name"]) == ("1.2", "oip-conformance")
    assert log["entries"][0]["_scope"] == "survey"
    assert "tok-in" not in json.dumps(log)
    assert b"tok-in" not in lzma.decompress(recorded.read_bytes())
    entry = next(e for e in log["entries"] if e["_scope"] == "headers.binary-answer-has-inference-header[one-output]")
    assert entry["request"]["url"] == f"{reference}/v2/models/identity_uint8/infer"
    assert {"name": "Authorization", "value": "..."} in entry["request"]["headers"]
    assert b64decode(entry["request"]["postData"]["text"]).startswith(b'{"inputs":[{"name":"INPUT"')
    assert len(b64decode(entry["response"]["content"]["text"])) == entry["response"]["bodySize"]
    assert entry["response"]["status"] == 200


def test_both_programs_of_the_evidence_repeat_the_answer(tmp_path: Path) -> None:
    with run_bundled("--fault", "binary-outputs-in-reverse", *FEW_MODELS) as url:
        judge(tmp_path, f"--target-url={url}", "-k", "response_follows_its_json", "--conformance-evidence=e")
        folder = next((tmp_path / "e").glob("ordering.*"))
        answer = (folder / "response.bin").read_bytes()
        for program in (["sh", "repro.sh"], [sys.executable, "repro.py"]):
            done = subprocess.run(program, cwd=folder, capture_output=True, check=True, timeout=30)
            assert done.stdout.startswith(b"HTTP")
            assert done.stdout.endswith(answer)
    names = {path.name for path in folder.iterdir()}
    assert {"request.bin", "request.txt", "response.bin", "response.txt", "bytes.txt", "check.json"} < names
    assert "<- tensor" in (folder / "bytes.txt").read_text()


def test_a_failed_check_is_replayed_until_it_is_fixed(tmp_path: Path, reference: str) -> None:
    with run_bundled("--fault", "binary-outputs-in-reverse", *FEW_MODELS) as url:
        judge(tmp_path, f"--target-url={url}", "-k", "response_follows_its_json and INT64", "--conformance-evidence=e")
        again = run_command(tmp_path, "replay", "e")
    assert again.returncode == 1
    assert {line.split()[0] for line in again.stdout.splitlines()} == {"failed"}
    fixed = run_command(tmp_path, "replay", "e", "--target-url", reference)
    assert fixed.returncode == 0
    assert {line.split()[0] for line in fixed.stdout.splitlines()} == {"fixed"}
    first = str(next((tmp_path / "e").glob("ordering.*")))
    one = run_command(tmp_path, "replay", first, "--target-url", reference)
    assert len(one.stdout.splitlines()) == 1
    gone = run_command(tmp_path, "replay", first, "--target-timeout", "0.2")
    assert gone.returncode == 6
    assert "error   ordering.response-follows-its-json" in gone.stdout


@pytest.mark.parametrize(
    ("fault", "row", "steps"),
    [
        ("raw-answers-cached-by-both-ends", "every_exchange_is_right and raw-identity_int32-brief", 2),
        ("coded-raw-body-in-chunks-is-the-tensor", "every_exchange_is_right and raw-identity_int32-brief", 1),
    ],
)
def test_the_program_of_the_evidence_takes_the_same_course(tmp_path: Path, fault: str, row: str, steps: int) -> None:
    with run_bundled("--fault", fault, *FEW_MODELS) as url:
        judge(tmp_path, f"--target-url={url}", "-k", row, "--conformance-evidence=e")
        (folder,) = (path for path in (tmp_path / "e").iterdir() if path.is_dir())
        done = subprocess.run(["sh", str(folder / "repro.sh")], capture_output=True, check=True)
    sent = sorted(path.name for path in (folder / "course").iterdir())
    assert len(sent) == steps
    head, _, body = done.stdout.partition(b"\n\n")
    assert [line.split(b":")[0].decode() for line in head.splitlines()[:steps]] == sent
    assert body == (folder / "response.bin").read_bytes() + b"\n"


def test_the_program_of_the_evidence_sends_at_once_what_was_in_flight(tmp_path: Path) -> None:
    with run_bundled("--fault", "inputs-shared-by-requests-in-flight", *FEW_MODELS) as url:
        judge(
            tmp_path,
            f"--target-url={url}",
            "-k",
            "answers_in_flight and identity_int32-json",
            "--conformance-evidence=e",
        )
        (folder,) = (path for path in (tmp_path / "e").iterdir() if path.is_dir())
        done = subprocess.run(["sh", str(folder / "repro.sh")], capture_output=True, check=True)
    sent = sorted(path.name for path in (folder / "course").iterdir())
    assert len(sent) == 32
    assert [line.split(b":")[0].decode() for line in done.stdout.splitlines()[:32]] == sent


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda _: None, "e: there is no evidence of a failed row"),
        (
            lambda folder: (folder / "check.json").write_text("{}"),
            "is not evidence of this suite: $: 'check' is a required",
        ),
    ],
)
def test_what_is_no_evidence_is_one_line_and_status_2(tmp_path: Path, prepare: Any, message: str) -> None:
    (tmp_path / "e").mkdir()
    prepare(tmp_path / "e")
    done = run_command(tmp_path, "replay", "e")
    assert done.returncode == 2
    assert message in done.stderr


def test_evidence_of_a_json_only_server_is_recorded_too(tmp_path: Path) -> None:
    with serve(JsonOnly) as url:
        judge(tmp_path, f"--target-url={url}", "--conformance-evidence=e")
    assert {entry["_scope"] for entry in entries(tmp_path / "e")} == {"survey", "metadata of an unknown model"}
    again = judge(tmp_path, "--target-replay=e/run.har.xz")
    assert again.returncode == 6
    assert "offers none of the extensions" in again.stdout
