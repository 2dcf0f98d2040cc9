"""The recipes of docs/cookbook.md that need FastAPI, KServe or Triton, as they stand there apart from addresses."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import recipe
from recipes import RECIPES

PAGE = Path(__file__).parents[2] / "docs" / "cookbook.md"


def read_blocks(section: str) -> list[str]:
    """Return the code blocks below a heading of the page."""
    _, heading, text = PAGE.read_text(encoding="utf-8").partition(f"\n## {section}\n")
    assert heading
    return [part.partition("\n")[2] for part in text.partition("\n## ")[0].split("```")[1::2]]


def run(folder: Path, script: str, **more: str) -> None:
    """Run the commands of a recipe with the suite of this interpreter, and more variables; they have to succeed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "OIP_"))}
    environment = {**kept, **more, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = ["bash", "-euo", "pipefail", "-c", script]
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_a_fastapi_server(tmp_path: Path) -> None:
    server, test, command = read_blocks("A FastAPI server in its own tests")
    (tmp_path / "my_server.py").write_text(server)
    (tmp_path / "test_conformance.py").write_text(test)
    run(tmp_path, command)


def test_a_predictor_of_kserve(tmp_path: Path) -> None:
    predictor, test, command = read_blocks("A custom predictor of KServe")
    (tmp_path / "iris.py").write_text(predictor)
    (tmp_path / "test_iris.py").write_text(test)
    run(tmp_path, command)


def test_a_python_backend_of_triton(tmp_path: Path) -> None:
    model, config, commands = read_blocks("A Python backend of Triton")
    triton = RECIPES["triton"]
    place = recipe.WorkFolder(recipe.WORK / triton.name)  # that of `tox -e triton`, so that it is installed once
    place.work.mkdir(parents=True, exist_ok=True)
    recipe.install(triton, place)
    shutil.rmtree(place.work / "models", ignore_errors=True)
    folder = place.work / "models" / "models" / "double"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text(model)
    (folder / "config.pbtxt").write_text(config)
    with recipe.run_server(triton, place) as server:
        commands = commands.replace("127.0.0.1:8000", server.addresses["http"])
        run(tmp_path, commands, PYTEST_ADDOPTS="--conformance-profile=quick")
