"""The project's own workflows: `.ci/run` decides a change, and a release publishes what was tested, by trust."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks import __main__ as benchmarks
from tests.strangers.servers import STRANGERS

PACKAGES = {package for stranger in STRANGERS.values() for package in stranger.packages}
WORKFLOWS = Path(__file__).parents[2] / ".github" / "workflows"


def jobs(name: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((WORKFLOWS / name).read_text())
    assert document["permissions"] == {"contents": "read"}
    found: dict[str, Any] = document["jobs"]
    assert all("timeout-minutes" in job for job in found.values())
    return found


def commands(job: dict[str, Any]) -> str:
    return "\n".join(step["run"] for step in job["steps"] if "run" in step)


def test_a_change_is_decided_by_the_script() -> None:
    assert commands(jobs("ci.yml")["run"]) == "./.ci/run"


def test_what_a_change_samples_is_run_whole_each_night() -> None:
    job = jobs("nightly.yml")["whole"]
    environments = job["strategy"]["matrix"]["environment"]
    assert {"matrix", "matrix-clients", "strangers"} <= set(environments)
    described = (WORKFLOWS.parents[1] / "tox.ini").read_text(encoding="utf-8")
    assert [name for name in environments if f"[testenv:{name}]" not in described] == []
    assert commands(job).splitlines()[-1] == "tox -e ${{ matrix.environment }}"
    assert any(all(f" {package}" in step.get("run", "") for package in PACKAGES) for step in job["steps"])


@pytest.mark.parametrize("name", ["ci.yml", "nightly.yml"])
def test_every_python_of_tox_is_tested(name: str) -> None:
    found = re.search(r"^env_list = py3\{([\d,]+)\}", (WORKFLOWS.parents[1] / "tox.ini").read_text(), re.MULTILINE)
    assert found
    oldest, *newer = [f"3.{minor}" for minor in found[1].split(",")]
    job = jobs(name)["pythons"]
    assert job["strategy"]["matrix"]["python"] == newer
    project = tomllib.loads((WORKFLOWS.parents[1] / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == f">={oldest}"
    named = {one.rpartition(" ")[2] for one in project["classifiers"] if "Python :: 3." in one}
    assert named <= {oldest, *newer}


def test_a_pull_request_is_measured_and_no_time_fails_it() -> None:
    job = jobs("benchmarks.yml")["compare"]
    line = next(step["run"] for step in job["steps"] if "python -m benchmarks" in step.get("run", ""))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["benchmarks", *line.removeprefix("python -m benchmarks").split()])
        options = benchmarks._options()
    assert (options.compare, options.warn_above, options.names) == (Path("benchmarks/kept.json"), 30, [])
    assert not any("continue-on-error" in step for step in job["steps"])  # one that breaks is seen


def test_a_release_is_checked_before_it_is_published() -> None:
    found = jobs("release.yml")
    assert (found["attest"]["needs"], found["publish"]["needs"]) == ("build", "attest")
    lines = commands(found["build"])
    for part in (
        "python -m build",
        "twine check --strict dist/*",
        "oip-conformance ${GITHUB_REF_NAME#v}",
        "run reference",
    ):
        assert part in lines


def test_a_release_is_published_by_trust_and_not_by_token() -> None:
    publish = jobs("release.yml")["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert [step["uses"].partition("@")[0] for step in publish["steps"]][-1] == "pypa/gh-action-pypi-publish"
    assert "secrets." not in (WORKFLOWS / "release.yml").read_text()


def test_a_release_says_what_it_brings_along_and_where_it_was_built() -> None:
    found = jobs("release.yml")
    assert "cyclonedx-py environment" in commands(found["build"])
    attest = found["attest"]
    assert attest["permissions"] == {"id-token": "write", "attestations": "write"}
    assert "run" not in {key for step in attest["steps"] for key in step}, "what may sign runs nothing of ours"
    subjects = {step["uses"].partition("@")[0]: step["with"].get("subject-path") for step in attest["steps"]}
    assert subjects["actions/attest-build-provenance"] == subjects["actions/attest-sbom"] == "dist/*"
    (written,) = [line for line in commands(found["build"]).splitlines() if '-o "' in line]
    (read,) = [step["with"]["sbom-path"] for step in attest["steps"] if "sbom-path" in step["with"]]
    name = written.split('"')[1]
    assert name.replace("$GITHUB_REF_NAME", "${{ github.ref_name }}") == read


def test_a_release_has_the_pages_that_only_the_site_has() -> None:
    found = jobs("release.yml")
    assert "python -m tests.support.pages -o pages\ntar -czf about/pages.tar.gz pages" in commands(found["build"])
    assert " about/pages.tar.gz " in commands(found["release"])


@pytest.mark.parametrize(
    ("tag", "status", "notes"), [("v1.2.3", 0, "\n### Fixed\n\n- This.\n\n"), ("v1.2", 1, ""), ("v1.2.4", 1, "")]
)
def test_the_notes_of_a_release_are_its_part_of_the_changelog(
    tmp_path: Path, tag: str, status: int, notes: str
) -> None:
    part = "## [1.2.3] - 2026-01-02\n\n### Fixed\n\n- This.\n\n"
    (tmp_path / "CHANGELOG.md").write_text(f"# C\n\n## [Unreleased]\n\n### Added\n\n{part}## [1.2.2] - 2026-01-01\n")
    (step,) = [step for step in jobs("release.yml")["build"]["steps"] if "CHANGELOG.md" in step.get("run", "")]
    command, environment = ["bash", "-euo", "pipefail", "-c", step["run"]], {**os.environ, "GITHUB_REF_NAME": tag}
    done = subprocess.run(command, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == status
    assert (tmp_path / "about/changes.md").read_text() == notes


def test_the_documentation_is_built_by_every_change_and_shown_from_main_alone() -> None:
    found = jobs("docs.yml")
    assert commands(found["build"]).splitlines()[-1] == "python -m tox -e docs"
    assert found["show"]["if"] == "github.ref == 'refs/heads/main'"
    assert found["show"]["permissions"] == {"pages": "write", "id-token": "write"}
