"""docs/cookbook.md: its recipes as they stand, apart from addresses. Those for nginx and for CI hosts run elsewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml

from tests.support.doc_blocks import DOCS, read_recipe
from tests.support.few_rows import FEW_ROWS
from tests.support.grpc_serving import serve
from tests.support.scripts import ROOT, run

FEW = " ".join(FEW_ROWS)
SERVER = "http://127.0.0.1:8000"


def test_one_model_only(tmp_path: Path, lone: str) -> None:
    done = run(tmp_path, read_recipe("One model only", "sh").replace(SERVER, lone), PYTEST_ADDOPTS=FEW)
    assert done.returncode == 0, done.stdout
    assert "\nmulti               answers " in done.stdout
    assert " is partial: " in done.stdout.splitlines()[-1]


def test_grpc_alone(tmp_path: Path) -> None:
    with serve() as served:
        done = run(
            tmp_path, read_recipe("gRPC alone", "sh").replace("127.0.0.1:8001", served.address), PYTEST_ADDOPTS=FEW
        )
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1].startswith(f"grpc://{served.address} is ")


def test_a_fleet_every_night(tmp_path: Path, lone: str) -> None:
    few = '[defaults]\nextensions = ["protocol"]\n'  # fewer rows, of the first target: the second is the same
    fleet = read_recipe("A fleet every night", "toml").replace("[defaults]\n", few).partition("[targets.canary]")[0]
    (tmp_path / "fleet.toml").write_text(fleet.replace(SERVER, lone))
    (job,) = yaml.safe_load(read_recipe("A fleet every night", "yaml"))["jobs"].values()
    script = "\n".join(step["run"] for step in job["steps"] if "run" in step)
    (kept,) = {step["with"]["path"] for step in job["steps"] if "path" in step.get("with", {})}
    for _ in range(2):
        done = run(tmp_path, script)
        assert done.returncode == 0, done.stdout
    index = json.loads((tmp_path / kept / "index.json").read_text())
    assert [target["verdict"] for target in index["targets"]] == ["partial"]
    assert len(index["history"]) == 2


def test_a_gate_before_a_release(tmp_path: Path, reference: str) -> None:
    judge, compare = read_recipe("A gate before a release", "sh").replace(SERVER, reference).splitlines()
    done = run(tmp_path, judge, PYTEST_ADDOPTS=FEW)
    assert done.returncode == 0, done.stdout
    (tmp_path / "released.json").write_bytes((tmp_path / "release.json").read_bytes())
    done = run(tmp_path, compare)
    assert (done.returncode, done.stdout.splitlines()[0].split()) == (0, ["new", "failures", "0"])


def test_every_recipe_is_run_by_a_test() -> None:
    page = (DOCS / "cookbook.md").read_text(encoding="utf-8")
    tests = [
        path.read_text(encoding="utf-8") for name in ("tests", "targets") for path in (ROOT / name).rglob("test_*.py")
    ]
    sections = re.findall(r"^## (.*)$", page, re.MULTILINE)
    assert [section for section in sections if not any(f'("{section}"' in text for text in tests)] == []
