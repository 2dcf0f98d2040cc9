"""The fixture `oip_report` as a server's own test suite uses it, and the example of docs/python.md."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.few_rows import FEW_ROWS
from tests.support.servers import judge

ROOT = Path(__file__).parents[2]
ORDINARY = ROOT / "tests" / "support" / "fussy_app.py"  # with one ordinary model, iris, and JSON alone

# A server's own module: the bundled server with one model, and right or wrong.
SERVER = """
from reference_server import app as bundled, faults, models

app = bundled.create({"multi": models.load()["multi"]})


def broken():
    return faults.switch_on(faults.load()["binary-outputs-in-reverse"])
"""
THREE_LINES = """
import pytest
from my_server import app, broken

@pytest.fixture(params=["right", "wrong"])
def oip_target(request):
    if request.param == "right":
        yield app
    else:
        with broken():
            yield app

@pytest.fixture
def oip_models():
    return ["multi"]

@pytest.fixture
def oip_options():
    return {"profile": "quick"}

def test_conformance(oip_report):
    assert not oip_report.failures, oip_report
"""


def examples() -> list[str]:
    """Return the Python examples of docs/python.md."""
    parts = (ROOT / "docs/python.md").read_text(encoding="utf-8").split("```")[1::2]
    return [part.partition("\n")[2] for part in parts if part.startswith("python\n")]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a server's own module."""
    (tmp_path / "my_server.py").write_text(SERVER)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\naddopts = --strict-markers -W error\n")
    return tmp_path


def test_a_failing_test_shows_what_is_not_met(project: Path) -> None:
    (project / "test_it.py").write_text(THREE_LINES)
    run = judge(project, *FEW_ROWS)
    assert run.returncode == 1, run.stdout
    assert "1 failed, 1 passed" in run.stdout
    assert re.search(r"\d+ rows failed; \d+ rows? left out .*; not met: [A-Z, -]*BIN-ORDER-O", run.stdout)
    shown = run.stdout.partition(" oip_report setup -")[2]
    assert "MUST BIN-ORDER-O: The binary data of an answer follow the order" in shown


def test_what_is_missing_is_one_line(project: Path) -> None:
    (project / "test_it.py").write_text(
        "import pytest\n"
        "def test_no_target(oip_report): pass\n"
        "@pytest.mark.parametrize('oip_target', ['ftp://x'])\n"
        "def test_bad_target(oip_report): pass\n"
    )
    run = judge(project, *FEW_ROWS)
    assert run.returncode == 1
    assert "oip_report: define a fixture oip_target that returns the URL of a server, or an ASGI app" in run.stdout
    assert "oip_report: --target-url 'ftp://x' is not an http or https URL" in run.stdout
    assert "Traceback" not in run.stdout + run.stderr


def test_the_example_of_a_script(project: Path) -> None:
    (project / "example.py").write_text(examples()[0])
    run = subprocess.run([sys.executable, "example.py"], cwd=project, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert " is partial: " in run.stdout.splitlines()[0]
    assert (project / "conformance.html").is_file()


def test_the_example_of_the_fixture_is_for_an_app_of_one_ordinary_model(project: Path) -> None:
    (project / "my_server.py").write_text(ORDINARY.read_text())
    example = examples()[1]
    (project / "test_example.py").write_text(example)
    (project / "test_offered.py").write_text(example.replace('{"extensions": ["protocol"]}', "{}"))
    (project / "test_no_model.py").write_text(example.replace('"iris"', '"nobody"'))
    run = judge(project, *FEW_ROWS)
    assert "1 passed" in run.stdout, run.stdout
    assert "2 failed" in run.stdout, run.stdout
    assert "offers none of the extensions" in run.stdout  # what judges nothing has not passed
    assert "does not describe a model nobody" in run.stdout


def test_the_example_of_a_shared_report(project: Path) -> None:
    (project / "test_example.py").write_text(examples()[2])
    run = judge(project, *FEW_ROWS)
    assert run.returncode == 0, run.stdout
    assert "2 passed" in run.stdout


def test_options_come_before_the_fixture_of_models(project: Path) -> None:
    program = THREE_LINES.replace('return ["multi"]', 'return ["nobody"]')
    program += '\n@pytest.fixture\ndef oip_options():\n    return {"models": ["multi"], "profile": "quick"}\n'
    (project / "test_it.py").write_text(program)
    assert "1 failed, 1 passed" in judge(project, *FEW_ROWS).stdout
