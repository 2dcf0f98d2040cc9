"""A run on a server that is right and has a few of the models: what is said of it, and with which exit status."""

from __future__ import annotations

import json
import re
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from conformance.report import formats
from conformance.spec import ledger
from tests.support.few_rows import FEW_ROWS
from tests.support.servers import judge, run_bundled
from tests.support.valid_reports import read_valid_report

FEW = '[roles]\nidentity_int32 = "identity_int32"\nmulti = "multi"\nscores_labelled = "scores_labelled"\n'
LAST = re.compile(
    r"http://[\w.:]+ is partial: (\d+) of (\d+) MUSTs met, none failed, (\d+) not judged"
    r" \(deploy (\w+), (\w+) and (\w+) to judge (\d+) more\)(, \d+ rows left out by the profile quick)?"
)


def few(folder: Path, url: str, *arguments: str) -> CompletedProcess[str]:
    """Judge a server on three roles, by few rows of each."""
    (folder / "t.toml").write_text(f'url = "{url}"\n{FEW}')
    return judge(folder, "--target-config=t.toml", *FEW_ROWS, *arguments)


@pytest.fixture(scope="module")
def partial(tmp_path_factory: pytest.TempPathFactory, reference: str) -> tuple[Path, CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("partial")
    files = [f"--conformance-report=r{suffix}" for suffix in formats.FORMATS]
    return folder, few(folder, reference, "-v", *files)


def test_the_last_line_says_how_much_and_what_is_missing(partial: tuple[Path, CompletedProcess[str]]) -> None:
    folder, run = partial
    assert run.returncode == 0, run.stdout[-2000:]
    found = LAST.fullmatch(run.stdout.splitlines()[-1])
    assert found is not None, run.stdout.splitlines()[-1]
    met, of, unjudged, more = (int(found[group]) for group in (1, 2, 3, 7))
    assert met + unjudged == of
    assert 0 < more <= unjudged
    coverage = read_valid_report(folder / "r.json")["coverage"]
    assert [one["role"] for one in coverage["deploy"][:3]] == [found[4], found[5], found[6]]
    assert sum(len(one["musts"]) for one in coverage["deploy"][:3]) == more


def test_the_report_says_of_each_must_what_would_judge_it(partial: tuple[Path, CompletedProcess[str]]) -> None:
    report = read_valid_report(partial[0] / "r.json")
    entries = {entry["id"]: entry for entry in report["requirements"]}
    for name in report["coverage"]["unjudged"]:
        assert (entries[name]["level"], entries[name]["verdict"]) == ("MUST", "not_applicable")
        assert entries[name]["unjudged"]["why"] == ["no_model"]
        assert entries[name]["unjudged"]["needs"]
    assert {entry["verdict"] for entry in report["extensions"].values() if entry["offered"]} <= {
        "conformant",
        "partial",
    }


@pytest.mark.parametrize("suffix", [".html", ".md"])
def test_pages_say_so_and_name_the_models(partial: tuple[Path, CompletedProcess[str]], suffix: str) -> None:
    folder, _ = partial
    page = (folder / f"r{suffix}").read_text()
    report = read_valid_report(folder / "r.json")
    assert "is partial" in page
    assert "conformant" not in re.sub(r"nonconformant|<style>.*?</style>", "", page, flags=re.DOTALL)
    for reason in report["why"]:
        assert reason in page
    for one in report["coverage"]["deploy"]:
        assert one["role"] in page
    for name in report["coverage"]["unjudged"]:
        assert name in page


def test_the_badge_is_not_green(partial: tuple[Path, CompletedProcess[str]]) -> None:
    badge = json.loads((partial[0] / "r.shields.json").read_text())
    assert re.fullmatch(r"partial \d+/\d+", badge["message"])
    assert (badge["color"], badge["isError"]) == ("6639ba", True)
    assert "conformant" not in (partial[0] / "r.svg").read_text()


def test_words_are_explained_under_v(partial: tuple[Path, CompletedProcess[str]], tmp_path: Path, small: str) -> None:
    words = partial[1].stdout.partition("= words =")[2].partition("\n=")[0]
    assert re.search(r"^not judged +the requirement applies, but no row of it was judged", words, re.MULTILINE)
    assert re.search(r"^n/a +of a row: the extension is not offered, no model fits", words, re.MULTILINE)
    assert "= words =" not in judge(tmp_path, f"--target-url={small}", "-k", "BIN-ORDER-O").stdout


QUICK = "--conformance-profile=quick"


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("--conformance-gate=conformant",), 6),
        (("--conformance-gate=conformant", "-k", "BIN-ORDER-O"), 0),  # pytest's own
    ],
)
def test_a_gate_may_ask_for_more(tmp_path: Path, small: str, arguments: tuple[str, ...], status: int) -> None:
    run = few(tmp_path, small, QUICK, *arguments)
    assert run.returncode == status, run.stdout[-2000:]
    is_narrowed = "-k" in arguments
    assert (": narrowed run, " if is_narrowed else " is partial: ") in run.stdout.splitlines()[-1]


def test_what_fails_is_nonconformant_however_little_was_judged(tmp_path: Path) -> None:
    with run_bundled("--fault=binary-outputs-in-reverse", "--model=multi") as url:
        (tmp_path / "t.toml").write_text(f'url = "{url}"\n[roles]\nmulti = "multi"\n')
        run = judge(tmp_path, "--target-config=t.toml", QUICK, *FEW_ROWS)
    assert run.returncode == 1
    assert " is nonconformant: " in run.stdout.splitlines()[-1]
    assert " not judged" in run.stdout.splitlines()[-1]


def test_the_profile_quick_is_partial_with_every_role(tmp_path: Path, reference: str) -> None:
    run = judge(tmp_path, f"--target-url={reference}", QUICK, *FEW_ROWS, "--conformance-report=r.json")
    assert run.returncode == 0
    assert re.search(
        r" is partial: (\d+) of \1 MUSTs met, none failed, \d+ rows left out by the profile quick$", run.stdout.rstrip()
    )
    report = read_valid_report(tmp_path / "r.json")
    gaps = [entry["unjudged"]["why"] for entry in report["requirements"] if "unjudged" in entry]
    assert {reason for why in gaps for reason in why} == {"left_out"}
    assert {entry["level"] for entry in report["requirements"]} == {str(level) for level in ledger.Level}


def test_nothing_that_fits_a_selection_is_no_verdict(tmp_path: Path, small: str) -> None:
    run = judge(tmp_path, f"--target-url={small}", "-k", "no_such_name")
    assert run.returncode == 5
    assert re.fullmatch(r"narrowed: 0 of \d+ rows, none failed", run.stdout.splitlines()[-1])


def test_tests_of_the_user_beside_a_target_keep_their_own_status(tmp_path: Path, small: str) -> None:
    (tmp_path / "test_own.py").write_text("def test_own():\n    assert False\n")
    run = judge(tmp_path, f"--target-url={small}", "test_own.py")
    assert run.returncode == 1
    assert run.stdout.splitlines()[-1].startswith("narrowed: 0 of ")
