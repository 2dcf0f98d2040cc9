"""`oip-conformance run URL --through URL`, with a server that has a fault in the place of a gateway."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.few_rows import FEW_ROWS
from tests.support.servers import FEW_MODELS, run_bundled, run_command, run_proxy

ROWS = ("-k", "OIP-ERROR or BIN-HEADER-O or OIP-MODEL-VERSION")


def run_through(folder: Path, direct: str, through: str, *more: str) -> subprocess.CompletedProcess[str]:
    return run_command(folder, "run", direct, f"--through={through}", *FEW_ROWS, *ROWS, *more)


def run_with_fault(folder: Path, direct: str, fault: str) -> subprocess.CompletedProcess[str]:
    with run_bundled(*FEW_MODELS, f"--fault={fault}") as through:
        return run_through(folder, direct, through)


def test_a_way_that_changes_nothing(small: str, tmp_path: Path) -> None:
    run = run_through(tmp_path, small, small, "--conformance-evidence=kept")
    lines = run.stdout.splitlines()
    assert run.returncode == 0, run.stdout + run.stderr
    assert [line.split()[0] for line in lines[:2]] == ["direct", "through"]
    assert lines[2].endswith("exchanges that both ways have:")
    assert lines[3:] == ["the gateway breaks no requirement"]
    assert {path.name for path in (tmp_path / "kept/through").iterdir()} >= {"run.har.xz", "report.json", "run.log"}


@pytest.mark.parametrize(
    ("fault", "requirement", "texts"),
    [
        ("header-under-another-name", "BIN-HEADER-O", ["header lost", "x-inference-header-content-length ("]),
        ("model-version-as-a-number", "OIP-MODEL-VERSION", ["JSON member changed", "directly  model_version: 1"]),
        ("errors-under-the-member-detail", "OIP-ERROR", ["error object replaced", '{"detail":"']),
    ],
)
def test_a_way_that_breaks_a_requirement(
    small: str, tmp_path: Path, fault: str, requirement: str, texts: list[str]
) -> None:
    run = run_with_fault(tmp_path, small, fault)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "met directly, not met through the gateway:\n" in run.stdout
    assert run.stdout.splitlines()[-1] == f"the gateway breaks 1 requirement: {requirement}"
    assert [text for text in texts if text not in run.stdout] == []


def test_what_the_server_itself_does_not_meet_is_not_the_fault_of_the_way(small: str, tmp_path: Path) -> None:
    with run_bundled(*FEW_MODELS, "--fault=header-under-another-name") as faulty:
        alike = run_through(tmp_path, faulty, faulty)
        mended = run_through(tmp_path, faulty, small)
    assert (alike.returncode, mended.returncode) == (0, 0)
    assert "met in neither way: BIN-HEADER-O" in alike.stdout
    assert "not met directly, met through the gateway:\n  BIN-HEADER-O: " in mended.stdout


def test_a_gateway_that_ends_during_its_run(small: str, tmp_path: Path) -> None:
    with run_proxy(small, connections=40) as gateway:
        run = run_through(tmp_path, small, gateway, "--target-timeout=2")
    assert run.returncode == 1, run.stdout + run.stderr
    assert f"cannot connect to {gateway}: " in run.stdout.splitlines()[1]
    assert "met directly, not judged through the gateway:\n" in run.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--through=http://127.0.0.1:1"], 6, "through: incomplete: cannot connect to http://127.0.0.1:1: "),
        (["--through=SERVER", "--conformance-report=r.json"], 4, "cannot be combined with --conformance-report"),
        (["--through-config=t.toml"], 4, "--through-config needs --through URL or --through-grpc HOST:PORT"),
        (["--through=SERVER", "--through-grpc=h:1"], 4, "--target-grpc and --through-grpc need each other"),
    ],
)  # fmt: skip
def test_a_run_that_cannot_be_compared_is_one_line(
    small: str, tmp_path: Path, arguments: list[str], status: int, message: str
) -> None:
    given = [word.replace("SERVER", small) for word in arguments]
    run = run_command(tmp_path, "run", small, *given, *FEW_ROWS, *ROWS)
    assert run.returncode == status, run.stdout + run.stderr
    assert message in run.stderr
    assert len(run.stderr.splitlines()) == 1


def test_the_bundled_server_of_a_run_has_no_gateway(tmp_path: Path) -> None:
    run = run_command(tmp_path, "run", "reference", "--through=http://127.0.0.1:1")
    assert run.returncode == 4
    assert "serve` starts the bundled one" in run.stderr
