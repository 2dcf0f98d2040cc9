"""`models export --format python` is a server that starts as its README says, and nothing of it fails."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import server_process

from conformance import judge
from conformance.export import export
from conformance.roles import roles
from conformance.roles.roles import Role

PREFIX = "my-"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("python") / "server"
    export("python", path, prefix=PREFIX)
    return path


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    """The URL of its server, started by the command of its README."""
    (line,) = [line for line in (folder / "README.md").read_text().splitlines() if line.strip().startswith("uvicorn ")]
    (port,) = server_process.find_free_ports(1)
    command = [sys.executable, "-m", *shlex.split(line.replace("8000", str(port)))]
    server = server_process.start(command, folder, os.environ, {"http": f"127.0.0.1:{port}"}, folder.parent)
    yield f"http://127.0.0.1:{port}"
    server.stop()


def list_served() -> dict[str, Role]:
    return {name: role for name, role in roles.load().items() if not role.versions}


def test_nothing_of_the_server_fails(url: str, folder: Path) -> None:
    report = judge(url, config=folder / "target.toml", profile="quick")
    assert (report.verdict, report.failures, report.advice) == ("partial", (), ()), str(report)
    assert len(report.to_dict()["target"]["roles"]) == len(list_served())


@pytest.mark.parametrize(
    ("shape", "data", "status"),
    [([2, 0, 3], [[], []], 200), ([3, 0, 0], [], 200), ([2, 0, 3], [[], [], []], 400), ([2, 1, 3], [[], []], 400)],
)
def test_nested_data_without_elements(url: str, shape: list[int], data: list[Any], status: int) -> None:
    tensor = {"name": "INPUT", "shape": shape, "datatype": "INT16", "data": data}
    assert httpx.post(f"{url}/v2/models/{PREFIX}rank3/infer", json={"inputs": [tensor]}).status_code == status


def test_roles_are_data_with_labels(folder: Path) -> None:
    written = json.loads((folder / "roles.json").read_text(encoding="utf-8"))
    assert {name: role["labels"] for name, role in written.items()} == {
        PREFIX + name: dict(role.labels) for name, role in list_served().items()
    }


def test_only_one_file_knows_the_framework(folder: Path) -> None:
    assert [path.name for path in sorted(folder.glob("*.py")) if "starlette" in path.read_text()] == ["app.py"]
