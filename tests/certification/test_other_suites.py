"""Folders that another suite made, and real folders in a registry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.certification.manifest import read
from conformance.commands.main import main
from tests.support.forging import FolderContents, forge, link_files

pytestmark = pytest.mark.usefixtures("few_models_are_enough")

# --- folders of another suite ----------------------------------------------------------------------------------------


@pytest.fixture
def of_another_suite(honest: Path, original: FolderContents, tmp_path: Path) -> Path:
    """A folder that suite 0.0.9 made, whose requirements were others, and which did not send all that this one does."""

    def edit(found: FolderContents) -> None:
        for suite in (found.report["suite"], found.manifest["suite"]):
            suite["version"] = "0.0.9"
        found.manifest["suite"]["ledger"] = "0" * 16
        for entry in found.entries("classification.number-"):
            found.har["log"]["entries"].remove(entry)

    folder = tmp_path / "c"
    folder.mkdir()
    forge(original, honest, folder, edit, with_har=True)
    return folder


def installer(folder: Path, name: str, script: str) -> str:
    """Make a program that is called like one that runs packages; return a PATH with nothing else."""
    folder.mkdir()
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("uvx", "--from oip-conformance[grpc,signing]==0.0.9"),
        ("pipx", "run --spec oip-conformance[grpc,signing]==0.0.9"),
    ],
)
def test_the_suite_of_the_folder_decides(
    name: str, before: str, of_another_suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("PATH", installer(tmp_path / "bin", name, 'echo "verified: $*"'))
    assert main(["verify", str(of_another_suite), "--with-suite"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"verified: {before} oip-conformance verify {of_another_suite}"
    assert said[1] == "today's suite 0.1.0: its requirements are not all the same"
    assert " rows can be judged on this recording" in said[2]
    assert said[3] == "today's suite 0.1.0: of the MUSTs that they judge, each is met"


@pytest.mark.parametrize(
    ("script", "status", "message"),
    [
        ('echo "refused: it was changed"; exit 1', 1, "refused: it was changed\n"),
        ("echo no such package >&2; exit 3", 2, "suite 0.0.9 ended with status 3: no such package\n"),
    ],
)
def test_what_the_suite_of_the_folder_refuses(
    script: str, status: int, message: str, of_another_suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("PATH", installer(tmp_path / "bin", "uvx", script))
    assert main(["verify", str(of_another_suite), "--with-suite"]) == status
    said = capsys.readouterr()
    assert (said.out + said.err).endswith(message)
    assert (said.out + said.err).count("\n") == 1


def test_a_suite_that_cannot_be_run_is_one_line(
    of_another_suite: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert main(["verify", str(of_another_suite), "--with-suite"]) == 2
    assert "the folder is of suite 0.0.9, which needs uvx or pipx to be run" in capsys.readouterr().err


def test_with_its_own_suite_a_folder_is_verified_as_ever(honest: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(honest), "--with-suite"]) == 0
    assert "today's" not in capsys.readouterr().out


@pytest.mark.parametrize("version", ["", "1; true", "--help", "1.0\n", "../x"])
def test_a_version_is_a_version(version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It becomes a part of a command."""
    (tmp_path / "manifest.json").write_text(json.dumps({"schema": 4, "suite": {"version": version}}))
    assert main(["verify", str(tmp_path), "--with-suite"]) == 2
    assert "its manifest names no version of the suite" in capsys.readouterr().err


def test_the_folder_of_a_suite_to_come_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"schema": 4, "suite": {"version": "9.0"}}))
    assert main(["verify", str(tmp_path)]) == 1
    assert "has schema 4, and this suite reads 3: verify it with the suite that made it" in capsys.readouterr().out


# --- registries ------------------------------------------------------------------------------------------------------


def test_what_a_registry_says_of_real_folders(
    honest: Path, failing: Path, original: FolderContents, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A registry that has the vendor's key takes the honest one, and neither the failing nor the forged one."""
    root = tmp_path / "registry"
    root.mkdir()
    (root / "registry.toml").write_text(
        'title = "R"\nurl = "https://r.example"\ndemands = []\n[[suites]]\nversion = "0.1.0"\n'
        f'[vendors.V]\nkeys = ["{read(honest).key["id"]}"]\n'
    )
    check = ["registry", "check", "--root", str(root)]
    assert main([*check, str(honest)]) == 0
    assert "### Certifications: all accepted" in capsys.readouterr().out
    forged = tmp_path / "forged"
    forged.mkdir()
    alias = {"name": "p", "version": "1", "reason": "r"}
    forge(original, honest, forged, lambda found: found.manifest.update(product="Q", alias_of=alias))
    assert main([*check, str(failing), str(honest), str(forged)]) == 1
    said = capsys.readouterr().out
    assert "### Certifications: 2 of 3 not accepted" in said
    assert "- `the verdict is nonconformant: " in said
    assert f"- `the policy does not list the key {read(forged).key['id']} for V`" in said
    assert f"- `{honest} certifies the same run, as P 1 by V`" in said
    (root / "c").mkdir()
    link_files(honest, root / "c")
    assert main(["registry", "build", str(root), "-o", str(tmp_path / "site")]) == 0
    assert "1 valid" in capsys.readouterr().out
