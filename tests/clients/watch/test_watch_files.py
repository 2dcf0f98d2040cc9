"""What a watch leaves: reports, a recording that gives the same verdict, a baseline, and no secret in any of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.commands.main import main
from conformance.report.findings import get_failure
from conformance.report.report_file import read
from conformance.spec import ledger, verdict
from conformance.transport.har import NAME
from tests.clients.watch.programs import (
    BROKEN_WITH_SECRETS,
    GOOD,
    SECRET,
    WITH_SECRETS,
    WRONG_LENGTH,
    WRONG_TYPE,
    make_bare_client,
)
from tests.support.run_archives import expand_archive

LENGTH = "CLIENT-SENDS-HEADER-LENGTH"


def watch(upstream: str, *requests: str, options: tuple[str, ...] = ()) -> int:
    return main(
        ["client", "watch", "--port", "0", "--upstream", upstream, *options, "--", *make_bare_client(*requests)]
    )


def test_a_report_is_one_of_a_client(upstream: str, tmp_path: Path) -> None:
    files = [tmp_path / f"report{suffix}" for suffix in (".json", ".html", ".md", ".svg", ".shields.json")]
    options = tuple(f"--conformance-report={file}" for file in files)
    assert watch(upstream, GOOD, WRONG_LENGTH, options=options) == 1
    report = read(files[0])
    assert report["party"] == "client"
    assert report["verdict"] == "nonconformant"
    assert report["target"]["name"] == "good/1.0, bad/2.0"
    assert report["target"]["url"].startswith("http://127.0.0.1:")
    assert report["footer"]["complete"] is True
    requirements = {entry["id"]: entry["verdict"] for entry in report["requirements"]}
    assert list(requirements) == [entry.id for entry in ledger.load_for_party(ledger.Party.CLIENT)]
    assert requirements[LENGTH] == "fail"
    assert requirements["CLIENT-READS-VALUES"] == "not_applicable"
    (failed,) = [check for check in report["rows"] if check["outcome"] == "fail"]
    assert (failed["check"], failed["row"]) == ("client.watched-header-counts-the-json", "bad/2.0")
    assert get_failure(failed)["evidence"]["request"]["head"][0] == "POST /v2/models/identity_int32/infer"
    assert all(file.read_text(encoding="utf-8") for file in files)
    assert LENGTH in files[1].read_text(encoding="utf-8")


def test_a_page_says_how_to_watch_again(upstream: str, tmp_path: Path) -> None:
    file = tmp_path / "report.md"
    watch(upstream, WRONG_LENGTH, options=(f"--conformance-report={file}",))
    text = file.read_text(encoding="utf-8")
    assert "Rerun     oip-conformance client watch -- ..." in text
    assert "pytest" not in text


def test_github_has_annotations_and_a_summary(
    upstream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    assert watch(upstream, WRONG_LENGTH) == 1
    assert f"::error title=oip-conformance MUST {LENGTH}::" in capsys.readouterr().out
    assert LENGTH in (tmp_path / "summary").read_text()


def test_watch_without_requests_is_incomplete(upstream: str, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    assert watch(upstream, options=(f"--conformance-report={file}",)) == 6
    report = read(file)
    assert (report["verdict"], report["why"]) == ("incomplete", ["no inference request came"])
    assert report["footer"]["complete"] is False


@pytest.mark.parametrize(
    ("requests", "options", "status"),
    [
        ((GOOD,), (), 0),
        ((GOOD, WRONG_LENGTH), (), 1),
        ((WRONG_TYPE,), (), 0),
        ((WRONG_TYPE,), ("--conformance-strict",), 1),
        ((), (), 6),
        (("request(JSON_PART + TENSOR, length=20)",), (), 1),
        (("request(JSON_PART + TENSOR, length=200)",), (), 1),
    ],
)
def test_a_recording_gives_the_same_verdict(
    requests: tuple[str, ...],
    options: tuple[str, ...],
    status: int,
    upstream: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "evidence"
    assert watch(upstream, *requests, options=(*options, "--conformance-evidence", str(folder))) == status
    first = capsys.readouterr().out.partition("= clients =")[2]
    assert main(["replay", str(folder)]) == status
    assert capsys.readouterr().out.partition("= clients =")[2] == first
    assert main(["replay", str(folder / NAME)]) == status


@pytest.mark.parametrize(
    ("requests", "gate", "status"),
    [
        ((GOOD,), "interoperable", 0),
        ((GOOD, WRONG_LENGTH), "conformant", 1),
        ((GOOD, WRONG_LENGTH), "interoperable", 0),
    ],
)
def test_the_gate_decides_the_exit_status_of_a_watch_and_of_its_recording(
    requests: tuple[str, ...], gate: str, status: int, upstream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        verdict, "INTEROPERABILITY_CONCERNS", (ledger.Concern.TRANSPORT,)
    )  # as if its MUST were none of them
    asked = f"--conformance-gate={gate}"
    assert watch(upstream, *requests, options=(asked, f"--conformance-evidence={tmp_path / 'left'}")) == status
    assert main(["replay", asked, str(tmp_path / "left")]) == status


def test_a_baseline_takes_the_gate(upstream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict, "INTEROPERABILITY_CONCERNS", (ledger.Concern.TRANSPORT,))
    known = tmp_path / "known.toml"
    update = (f"--conformance-baseline={known}", "--conformance-update-baseline")
    assert watch(upstream, GOOD, options=update) == 0
    assert watch(upstream, GOOD, WRONG_LENGTH, options=update[:1]) == 1
    assert watch(upstream, GOOD, WRONG_LENGTH, options=(*update[:1], "--conformance-gate=interoperable")) == 0


def test_the_evidence_of_rows_has_no_verdict_for_a_gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "--conformance-gate=interoperable", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_evidence_has_the_bytes_of_what_is_wrong(upstream: str, tmp_path: Path) -> None:
    watch(upstream, GOOD, WRONG_LENGTH, options=("--conformance-evidence", str(tmp_path)))
    (folder,) = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert folder.name == "client.watched-header-counts-the-json-bad_2.0"
    assert (folder / "request.bin").read_bytes().startswith(b'{"inputs"')
    assert "Inference-Header-Content-Length: 7" in (folder / "request.txt").read_text()
    assert "HTTP 400" in (folder / "response.txt").read_text()
    assert (folder / "response.bin").read_bytes().startswith(b'{"error"')
    assert "<-" in (folder / "bytes.txt").read_text()


def test_a_folder_that_cannot_be_written_is_one_line(
    upstream: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert watch(upstream, GOOD, options=("--conformance-evidence", str(tmp_path / "file" / "below"))) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("request_", [WITH_SECRETS, *BROKEN_WITH_SECRETS])
def test_secrets_reach_no_file_and_no_terminal(
    request_: str, upstream: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reports = tuple(f"--conformance-report={tmp_path / f'report{suffix}'}" for suffix in (".json", ".html", ".md"))
    assert watch(upstream, request_, options=(*reports, "--conformance-evidence", str(tmp_path / "e"))) == 1
    texts = [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
    assert len(texts) > 5
    har = expand_archive(tmp_path / "e" / NAME)
    headers = {header["name"]: header["value"] for header in har["log"]["entries"][0]["request"]["headers"]}
    assert headers["Authorization"] == "..."
    output = capsys.readouterr()
    for text in (*texts, output.out, output.err):
        assert SECRET not in text


# --- the baseline -----------------------------------------------------------------------------------------------------


def test_a_baseline_knows_failures_and_notices_fixes(
    upstream: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "known.toml"
    options = ("--conformance-baseline", str(file))
    assert watch(upstream, GOOD, WRONG_LENGTH, options=(*options, "--conformance-update-baseline")) == 0
    text = file.read_text()
    assert 'check = "client.watched-header-counts-the-json"' in text
    assert 'rows = "bad/2.0"' in text
    capsys.readouterr()
    assert watch(upstream, GOOD, WRONG_LENGTH, options=options) == 0
    assert "gate passed" in capsys.readouterr().out
    fixed = GOOD.replace("good/1.0", "bad/2.0")
    assert watch(upstream, GOOD, fixed, options=options) == 1
    assert "1 fixed" in capsys.readouterr().out
    assert watch(upstream, WRONG_LENGTH.replace("bad/2.0", "new/1.0"), options=options) == 1
    assert "1 new" in capsys.readouterr().out
    assert watch(upstream, GOOD, fixed, options=(*options, "--conformance-update-baseline")) == 0
    assert "check" not in file.read_text()
