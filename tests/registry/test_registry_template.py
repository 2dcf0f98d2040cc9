"""The template of a registry in docs/registry: its files are of their forms, and its workflow says what is taken."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.registry import policy
from tests.support.registries import make_certification

TEMPLATE = Path(__file__).parents[2] / "docs/registry"
WORKFLOWS = sorted((TEMPLATE / ".github/workflows").glob("*.yml"))
WHO = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")


def git(place: Path, *arguments: str) -> str:
    return subprocess.run(
        ("git", *WHO, *arguments), cwd=place, capture_output=True, text=True, check=True
    ).stdout.strip()


def workflow(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((TEMPLATE / ".github/workflows" / name).read_text())
    return found


@pytest.fixture
def proposed(tmp_path: Path) -> Path:
    """A clone of a registry, beside the branch that a pull request is for."""
    shutil.copytree(TEMPLATE, tmp_path / "registry")
    git(tmp_path / "registry", "init", "-q", "-b", "main")
    git(tmp_path / "registry", "add", "-A")
    git(tmp_path / "registry", "commit", "-qm", "begin")
    git(tmp_path, "clone", "-q", "registry", "proposed")
    return tmp_path / "proposed"


def checked(proposed: Path) -> tuple[int, str]:
    """Commit what is there, run the step of the workflow that checks, and return its status and the comment."""
    base = git(proposed, "rev-parse", "HEAD")
    git(proposed, "add", "-A")
    git(proposed, "commit", "-qm", "more", "--allow-empty")
    (step,) = (each for each in workflow("check.yml")["jobs"]["check"]["steps"] if "BASE" in each.get("env", {}))
    place = proposed.parent
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "BASE": base, "NUMBER": "7", "GITHUB_STEP_SUMMARY": str(place / "summary")}
    done = subprocess.run(
        ("bash", "-e", "-o", "pipefail", "-c", step["run"]), cwd=place, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (place / "said/number").read_text() == "7\n", done.stderr
    assert (place / "summary").read_text() == (place / "said/comment.md").read_text()
    return done.returncode, (place / "said/comment.md").read_text()


def test_its_policy_can_be_read() -> None:
    found = policy.read(TEMPLATE)
    assert found.demands == policy.DEMANDS
    assert policy.read_notices(TEMPLATE) == policy.Notices({}, {})


def test_the_examples_in_its_files_are_of_their_form(tmp_path: Path) -> None:
    for name in (policy.POLICY, policy.NOTICES):
        text = (TEMPLATE / name).read_text()
        (tmp_path / name).write_text(re.sub(r"^# (?=\[|\w+ = )", "", text, flags=re.MULTILINE))
    assert list(policy.read(tmp_path).vendors) == ["Example Inc."]
    assert list(policy.read(tmp_path).third_parties) == ["Example Laboratory"]
    (entry,) = policy.read_notices(tmp_path).disputed.values()
    assert entry.requirement == "BIN-SIZES"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_no_more_rights_than_it_needs(path: Path) -> None:
    found, jobs = workflow(path.name), workflow(path.name)["jobs"].values()
    assert found["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job for job in jobs)
    assert "secrets." not in path.read_text()
    reading = [
        job for job in found["jobs"].values() if any("checkout" in step.get("uses", "") for step in job["steps"])
    ]
    assert all("permissions" not in job for job in reading), "what reads a stranger's files may only read"


def test_a_pull_request_with_a_folder_that_does_not_hold(proposed: Path) -> None:
    make_certification(proposed / "certifications/v/p/1-full")
    status, said = checked(proposed)
    assert status == 1
    assert said.startswith("### Certifications: 1 of 1 not accepted\n\n**`certifications/v/p/1-full`**: not accepted\n")


def test_a_pull_request_without_certifications(proposed: Path) -> None:
    (proposed / "README.md").write_text("changed")
    assert checked(proposed) == (0, "### Certifications: none in this pull request\n")
