"""The project's own workflows: `.ci/run` decides a change, and a release publishes what was tested, by trust."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

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


def test_a_release_is_checked_before_it_is_published() -> None:
    found = jobs("release.yml")
    assert found["publish"]["needs"] == "build"
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
