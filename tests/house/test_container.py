"""docs/ci/Containerfile: pinned, without root, and all that it copies makes a wheel whose entry point works.

No builder of images is needed. What the builder copies is copied into a clean folder, and built there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import conformance

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs/ci/Containerfile"


def instructions() -> list[tuple[str, str]]:
    """Return each instruction with its arguments, continued lines as one."""
    lines = [line for line in FILE.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    text = "\n".join(lines).replace("\\\n", " ")
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in text.splitlines())]


def find_arguments(name: str) -> list[str]:
    return [rest for found, rest in instructions() if found == name]


def test_the_base_is_pinned_and_slim() -> None:
    (base,) = find_arguments("ARG")
    assert re.fullmatch(r"BASE=docker\.io/library/python:3\.\d+\.\d+-slim-\w+(@sha256:[0-9a-f]{64})?", base)
    assert find_arguments("FROM") == ["${BASE} AS build", "${BASE}"]


def test_it_runs_as_a_user_of_its_own_by_one_entry_point() -> None:
    last = instructions()[instructions().index(("FROM", "${BASE}")) :]
    assert [name for name, _ in last] == ["FROM", "COPY", "ENV", "WORKDIR", "USER", "ENTRYPOINT", "CMD"]
    given = dict(last)
    assert [int(number) > 0 for number in given["USER"].split(":")] == [True, True]
    (program,) = json.loads(given["ENTRYPOINT"])
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert program in scripts
    assert not re.search(r"chmod|sudo|apt-get|curl", FILE.read_text(encoding="utf-8"))


def test_what_is_written_without_being_asked_for_is_nothing() -> None:
    """A read-only file system: no byte code, no cache of pytest."""
    (environment,) = find_arguments("ENV")
    assert "PYTHONDONTWRITEBYTECODE=1" in environment
    assert 'PYTEST_ADDOPTS="-p no:cacheprovider"' in environment


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is in the wheel that the first stage builds of what it copies."""
    folder = tmp_path_factory.mktemp("image")
    (folder / "source").mkdir()
    for arguments in find_arguments("COPY")[:-1]:
        *names, _ = arguments.split()
        for name in names:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, folder / "source" / name)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=folder / "source", check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "unpacked")
    return folder / "unpacked"


def test_what_is_copied_makes_the_whole_wheel(unpacked: Path) -> None:
    inside = ("schemas/report.schema.json", "fixtures/README.md", "py.typed")
    wanted = [*(f"conformance/{name}" for name in inside), "reference_server/__main__.py"]
    assert [name for name in wanted if not (unpacked / name).is_file()] == []


def test_the_entry_point_works_from_that_wheel(unpacked: Path, tmp_path: Path) -> None:
    (folder,) = unpacked.glob("*.dist-info")
    scripts = (folder / "entry_points.txt").read_text()
    module, function = re.findall(r"^oip-conformance = ([\w.]+):(\w+)$", scripts, flags=re.MULTILINE)[0]
    program = f"import sys; from {module} import {function}; sys.exit({function}())"
    environment = {**os.environ, "PYTHONPATH": str(unpacked), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", program, "--version"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"oip-conformance {conformance.__version__}\n"), done.stderr
    assert list(tmp_path.iterdir()) == []
