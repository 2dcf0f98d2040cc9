"""A wheel of this tree, installed in an empty environment outside the checkout, judges the bundled server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from conformance.report.json_report import compute_suite_digest

ROOT = Path(__file__).parents[2]


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "OIP_"))
    }
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=600, check=False)


def test_an_installed_wheel_judges_the_bundled_server(tmp_path: Path) -> None:
    built = run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path), cwd=ROOT)
    assert built.returncode == 0, built.stdout + built.stderr
    packages = list(map(str, tmp_path.iterdir()))
    assert sorted(Path(package).suffix for package in packages) == [".gz", ".whl"]
    checked = run(sys.executable, "-m", "twine", "check", "--strict", *packages, cwd=ROOT)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    folders = {name.split("/")[2] for name in names if name.startswith("conformance/fixtures/")}
    assert folders == {"README.md", "grpc", "invalid", "valid"}
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {
        "conformance",
        "reference_server",
        "oip_conformance",
    }
    (source,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        held = {name.split("/")[1] for name in archive.getnames()}
    assert {".ci", ".github", ".pre-commit-hooks.yaml", "action.yml", "tests"} < held, "tests there read these"
    assert {"conformance/schemas/report.schema.json", "conformance/fixtures/README.md"} < set(names)
    assert {"conformance/registry/templates/index.html.jinja", "conformance/report/templates/plain.css"} < set(names)
    assert {f"conformance/report/templates/report/page.{kind}" for kind in ("html.jinja", "css", "js")} < set(names)
    environment = tmp_path / "venv"
    assert run(sys.executable, "-m", "venv", "--without-pip", str(environment), cwd=tmp_path).returncode == 0
    pip = (sys.executable, "-m", "pip", "--python", str(environment / "bin/python"))
    installed = run(*pip, "install", "--quiet", "--no-compile", str(wheel), cwd=tmp_path)
    assert installed.returncode == 0, installed.stderr
    explained = run(str(environment / "bin/oip-conformance"), "explain", "grpc-errors-are-unknown", cwd=tmp_path)
    assert explained.returncode == 0, explained.stderr  # a fault of gRPC, whose packages are not there
    few = ("-k", "golden or metadata or ordering")  # what reads fixtures and schemas, and some more
    asked = ("--target-url=reference", "--conformance-profile=quick", *few, "--conformance-report=r.json")
    judged = run(str(environment / "bin/pytest"), *asked, cwd=tmp_path)
    assert judged.returncode == 0, judged.stdout[-3000:] + judged.stderr
    report = json.loads((tmp_path / "r.json").read_text())
    assert {check["outcome"] for check in report["rows"]} - {"observed"} == {"pass"}
    assert report["suite"]["digest"] == compute_suite_digest(), "the wheel is not the suite of the checkout"
