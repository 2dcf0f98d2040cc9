"""pytest's own options mean of the suite what they mean of any tests: on a server with one fault."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.few_rows import FEW_ROWS
from tests.support.servers import FEW_MODELS, judge, judge_afresh, judge_cached, run_bundled
from tests.support.valid_reports import read_valid_report

SELECTION = ("-k", "json_outputs_take_no_bytes or response_follows_its_json or request_follows_its_json")


@pytest.fixture(scope="module")
def faulty() -> Iterator[str]:
    with run_bundled("--fault", "binary-outputs-in-reverse", *FEW_MODELS) as url:
        yield url


@pytest.fixture(scope="module")
def failed_before(tmp_path_factory: pytest.TempPathFactory, faulty: str) -> Path:
    """A folder with the report of a run that failed, and pytest's cache of it; it is not to be changed."""
    folder = tmp_path_factory.mktemp("failed")
    first = judge_cached(folder, f"--target-url={faulty}", *SELECTION, "--conformance-report=r.json")
    assert first.returncode == 1, first.stdout[-2000:]
    return folder


def test_what_failed_last_is_run_again_alone(tmp_path: Path, failed_before: Path, faulty: str, small: str) -> None:
    shutil.copytree(failed_before, tmp_path, dirs_exist_ok=True)
    failed = {check["row"] for check in read_valid_report(tmp_path / "r.json")["rows"] if check["outcome"] == "fail"}
    assert failed
    for url, status, verdict, workers in (
        (faulty, 1, "nonconformant", ()),
        (faulty, 1, "nonconformant", ("-n", "2")),
        (small, 0, "narrowed", ()),  # mended
    ):
        again = judge_cached(tmp_path, f"--target-url={url}", "--lf", "--conformance-report=r.json", *workers)
        report = read_valid_report(tmp_path / "r.json")
        assert (again.returncode, report["verdict"]) == (status, verdict)
        assert {check["row"] for check in report["rows"]} == failed


@pytest.mark.parametrize("options", [(), ("-x",)], ids=["whole", "-x"])
def test_processes_change_nothing_of_a_run(tmp_path: Path, faulty: str, options: tuple[str, ...]) -> None:
    found = []
    for number in ("1", "4"):
        (folder := tmp_path / number).mkdir()
        run = judge(
            folder,
            f"--target-url={faulty}",
            f"--conformance-concurrency={number}",
            *("-v", "-k", "ordering or overrides", "--conformance-report=r.json", "--junitxml=j.xml"),
            *options,
        )
        rows = [{**row, "duration_s": 0} for row in read_valid_report(folder / "r.json")["rows"]]
        shown = [line for line in run.stdout.splitlines() if "::" in line]
        cases = re.sub(r'(time|timestamp|hostname)="[^"]*"', "", (folder / "j.xml").read_text())
        found.append((run.returncode, rows, shown, cases))
    assert found[0] == found[1]


def test_stepwise_stops_at_a_failure_and_goes_on_there(tmp_path: Path, faulty: str) -> None:
    for _ in range(2):
        run = judge_cached(tmp_path, f"--target-url={faulty}", *SELECTION, "--sw", "--conformance-report=r.json")
        assert run.returncode == 1
        failed = [
            check["row"] for check in read_valid_report(tmp_path / "r.json")["rows"] if check["outcome"] == "fail"
        ]
        assert len(failed) == 1
    assert read_valid_report(tmp_path / "r.json")["rows"][0]["row"] == failed[0]


def test_collecting_only_shows_ids_and_judges_nothing(tmp_path: Path, faulty: str) -> None:
    run = judge(tmp_path, f"--target-url={faulty}", *SELECTION, "--co", "-q", "--conformance-report=r.json")
    assert run.returncode == 0
    shown = [line for line in run.stdout.splitlines() if "::" in line]
    assert any(line.startswith("ordering::response_follows_its_json[") for line in shown)
    assert {line.partition("::")[0] for line in shown} == {"ordering"}
    assert run.stdout.splitlines()[-1].startswith(f"{len(shown)}/")
    assert not (tmp_path / "r.json").exists()


def test_no_summary_leaves_the_verdict(tmp_path: Path, faulty: str) -> None:
    run = judge(tmp_path, f"--target-url={faulty}", *SELECTION, "--no-summary")
    assert run.returncode == 1
    assert [title for title in ("= summary =", "= failures =", "= not judged =") if title in run.stdout] == []
    assert " is nonconformant: " in run.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "options", [("-q",), ("-q", "--tb=no"), ("--tb=short",), ("-v",), ("--no-header",)], ids=" ".join
)
def test_how_much_is_shown_changes_no_verdict(tmp_path: Path, faulty: str, options: tuple[str, ...]) -> None:
    run = judge(tmp_path, f"--target-url={faulty}", *SELECTION, *FEW_ROWS, *options)
    assert run.returncode == 1
    assert " is nonconformant: " in run.stdout.splitlines()[-1]
    assert "Traceback" not in run.stdout + run.stderr
    assert ("profile     certify" in run.stdout) == (not {"-q", "--no-header"} & set(options))


def test_a_path_narrows_like_a_word(tmp_path: Path, faulty: str) -> None:
    from conformance.plugin import SUITE

    run = judge(tmp_path, f"--target-url={faulty}", f"{SUITE}/ordering", "--no-summary", "--conformance-report=r.json")
    assert run.returncode == 1
    report = read_valid_report(tmp_path / "r.json")
    assert {check["area"] for check in report["rows"]} == {"ordering"}
    assert report["verdict"] == "nonconformant"
    assert report["extensions"]["binary_tensor_data"]["verdict"] == "nonconformant"


# --- a plain run -----------------------------------------------------------------------------------------------------

PLAIN = """
import sys, pytest
status = pytest.main(["-q", "-p", "no:hypothesispytest", "-p", "no:cacheprovider"])
print(status, *sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_a_plain_run_has_its_own_tests_alone_and_imports_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text("def test_own(): pass\n")
    run = subprocess.run([sys.executable, "-c", PLAIN], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "1 passed" in run.stdout
    status, *modules = run.stdout.splitlines()[-1].split()
    assert "conformance" in modules
    heavy = {
        "numpy",
        "httpx",
        "hypothesis",
        "jsonschema",
        "jinja2",
        "uvicorn",
        "h11",
        "grpc",
        "tomlkit",
        "cryptography",
    }
    assert (status[-1], heavy & set(modules)) == ("0", set())


def test_what_a_plain_run_has_more_begins_with_a_prefix_of_ours(tmp_path: Path) -> None:
    listed = [judge(tmp_path, "--help", *without).stdout for without in ((), ("-p", "no:oip_conformance"))]
    options = [set(re.findall(r"^  (--[\w-]+)", text, re.MULTILINE)) for text in listed]
    added = options[0] - options[1]
    assert {name.split("-")[2] for name in added} == {"target", "conformance", "client"}
    shown = [judge(tmp_path, "--fixtures", "-q", *without).stdout for without in ((), ("-p", "no:oip_conformance"))]
    fixtures = [{line.partition(" ")[0] for line in text.splitlines() if line[:1].isalpha()} for text in shown]
    assert {name for name in fixtures[0] - fixtures[1] if not name.startswith("oip_")} == set()
    assert "oip_report" in fixtures[0]


# A plugin that prints how checks were imported: pytest's own loader rewrites assertions.
LOADERS = """
import sys
def pytest_terminal_summary(terminalreporter):
    checks = [module for name, module in sys.modules.items() if name.startswith("conformance.checks.")]
    terminalreporter.write_line(f"loaders { {type(check.__loader__).__name__ for check in checks} }")
"""


def test_a_run_imports_neither_hypothesis_nor_rewritten_checks(tmp_path: Path, reference: str) -> None:
    (tmp_path / "loaders.py").write_text(LOADERS)
    options = (f"--target-url={reference}", "-k", "metadata.server", "-q", "-p", "loaders")
    run = judge_afresh(tmp_path, *options, PYTHONPROFILEIMPORTTIME="1", PYTHONPATH=str(tmp_path))
    assert "| conformance.spec.options\n" in run.stderr.replace("  ", "")
    assert not [line for line in run.stderr.splitlines() if line.split("|")[-1].strip() == "hypothesis"]
    assert "loaders {'SourceFileLoader'}\n" in run.stdout
