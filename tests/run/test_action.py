"""action.yml and docs/ci/gitlab.yml as their hosts run them: the scripts as they stand, the suite of the tests."""

from __future__ import annotations

import json
import re
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.doc_blocks import read_recipe
from tests.support.few_rows import FEW_ROWS
from tests.support.scripts import find_free_port, run, write_program
from tests.support.servers import reserve_closed_port

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
GITLAB: dict[str, Any] = yaml.safe_load((ROOT / "docs/ci/gitlab.yml").read_text(encoding="utf-8"))[".oip-conformance"]
QUICK = "--target-model=multi\n--conformance-profile=quick\n" + "\n".join(FEW_ROWS) + "\n"


class Runner:
    """A runner of GitHub, as far as a composite action sees it: its files, its environment, and its expressions."""

    def __init__(self, folder: Path, **inputs: str) -> None:
        self.folder = folder
        defaults = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()}
        self.inputs = defaults | {name.replace("_", "-"): value for name, value in inputs.items()}
        assert self.inputs.keys() == defaults.keys()
        self.said = ""
        (folder / "temp").mkdir()
        # The installation is that of the tests: a Python that makes an environment with the same commands in it.
        write_program(
            folder / "bin/python",
            f'test "$1 $2" = "-m venv" || exec {sys.executable} "$@"\n'
            f'mkdir -p "$3/bin"\nln -sf {Path(sys.executable).parent}/pytest "$3/bin/pytest"\n'
            f'printf "#!/bin/sh\\nexec {sys.executable} \\"\\$@\\"\\n" > "$3/bin/python"\n'
            f'printf "#!/bin/sh\\necho pip \\"\\$@\\"\\n" > "$3/bin/pip"\nchmod +x "$3/bin/python" "$3/bin/pip"',
        )

    def filled_in(self, text: str) -> str:
        """Return text with its expressions replaced."""
        return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: self.inputs[found[1]], text)

    def runs(self, step: dict[str, Any], *, failed: bool) -> bool:
        """Say whether the runner takes a step; the conditions are conjunctions of these two."""
        parts = str(step.get("if", "")).split(" && ") if "if" in step else []
        given = [re.fullmatch(r"inputs\.([\w-]+) != ''", part) for part in parts if part != "always()"]
        return all(one and self.inputs[one[1]] for one in given) and (not failed or "always()" in parts)

    def run(self, **environment: Any) -> int:
        """Run every step that is a script; return the status of the first that failed."""
        status = 0
        for step in ACTION["runs"]["steps"]:
            if "run" in step and self.runs(step, failed=bool(status)):
                assert step["shell"] == "bash"
                assert "${{" not in step["run"], "an expression in a script runs what it says"
                own: dict[str, Any] = {name: self.filled_in(value) for name, value in step.get("env", {}).items()}
                done = run(self.folder, step["run"], **self.environment(), **own, **environment)
                self.said += done.stdout
                status = status or done.returncode
        return status

    def environment(self) -> dict[str, Any]:
        files = {name: str(self.folder / name.lower()) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        place = {"GITHUB_ACTIONS": "true", "GITHUB_ACTION_PATH": "/the/action", "RUNNER_TEMP": f"{self.folder}/temp"}
        return files | place

    def outputs(self) -> dict[str, str]:
        text = (self.folder / "github_output").read_text()
        return dict(line.split("=", 1) for line in text.splitlines())


def test_the_action_judges_a_server_that_it_starts_and_stops(tmp_path: Path) -> None:
    port = find_free_port()
    (tmp_path / "baseline.toml").touch()
    url = f"http://127.0.0.1:{port}"
    runner = Runner(tmp_path, url=url, command="echo up; exec ./serve", baseline="baseline.toml", arguments=QUICK)
    assert runner.run(PORT=port) == 0, runner.said
    assert "pip install -q /the/action\n" in runner.said
    assert runner.outputs() == {"verdict": "partial", "status": "0", "report": "conformance/report.json"}
    report = json.loads((tmp_path / "conformance/report.json").read_text())
    assert (report["verdict"], report["gate"]["passed"]) == ("partial", True)
    assert {path.name for path in (tmp_path / "conformance").iterdir()} >= {"report.html", "report.md", "evidence"}
    assert " is partial\n" in (tmp_path / "github_step_summary").read_text()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)))


def test_the_action_fails_as_the_suite_does(tmp_path: Path, small: str) -> None:
    runner = Runner(tmp_path, url=small, arguments="--target-extension=classification\n-k\nmetadata\n")
    (tmp_path / "baseline.toml").write_text('[[known]]\ncheck = "metadata.*"\nreason = "r"\nexpires = 2020-01-01\n')
    runner.inputs["baseline"] = "baseline.toml"
    assert runner.run() == 1, runner.said
    assert runner.outputs()["status"] == "1"
    assert "::error title=oip-conformance baseline::stale entry" in runner.said


def test_a_run_without_a_report_is_incomplete(tmp_path: Path) -> None:
    runner = Runner(tmp_path, arguments="--no-such-option", version="1.2.3", grpc="127.0.0.1:9")
    assert runner.run() == 4
    assert "pip install -q oip-conformance[grpc]==1.2.3\n" in runner.said
    assert runner.outputs() == {"verdict": "incomplete", "status": "4", "report": "conformance/report.json"}


@pytest.mark.parametrize(
    ("command", "seconds", "why"),
    [("echo no such model; exit 3", "60", "ended"), ("echo no such model; sleep 60", "0", "was not ready at http://")],
)
def test_a_server_that_does_not_start_is_shown_with_its_last_lines(
    tmp_path: Path, command: str, seconds: str, why: str
) -> None:
    with reserve_closed_port() as port:
        runner = Runner(tmp_path, url=f"http://127.0.0.1:{port}", command=command, ready_timeout=seconds)
        assert runner.run() == 1
    assert "no such model" in runner.said
    assert f"::error title=oip-conformance::the server that the input command starts {why}" in runner.said
    assert not (tmp_path / "github_output").exists()


def test_every_input_and_output_is_explained() -> None:
    page = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
    for kind in ("inputs", "outputs"):
        assert all(one["description"] for one in ACTION[kind].values())
        assert [name for name in ACTION[kind] if f"`{name}`" not in page] == []
    used = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text(encoding="utf-8")))
    assert used == set(ACTION["inputs"])


def gitlab(folder: Path, **variables: str) -> Any:
    """Run the job of GitLab with variables of a project."""
    return run(folder, "\n".join(GITLAB["script"]), background=True, **(GITLAB["variables"] | variables))


def test_the_job_of_gitlab(tmp_path: Path) -> None:
    port = find_free_port()
    (tmp_path / "b.toml").touch()
    started = {"OIP_TARGET_URL": f"http://127.0.0.1:{port}", "CONFORMANCE_SERVER": "exec ./serve", "PORT": port}
    asked = {"CONFORMANCE_ARGUMENTS": QUICK.replace("\n", " "), "CONFORMANCE_BASELINE": "b.toml"}
    done = gitlab(tmp_path, **started, **asked)
    assert done.returncode == 0, done.stdout
    assert json.loads((tmp_path / "conformance.json").read_text())["gate"]["passed"]
    kept = [*GITLAB["artifacts"]["paths"], GITLAB["artifacts"]["reports"]["junit"]]
    assert [name for name in kept if not (tmp_path / name).exists()] == []


def test_the_job_of_gitlab_shows_why_a_server_does_not_start(tmp_path: Path) -> None:
    started = {"CONFORMANCE_SERVER": "echo no such model"}  # it ends, so the job does not wait for it
    with reserve_closed_port() as port:
        done = gitlab(tmp_path, OIP_TARGET_URL=f"http://127.0.0.1:{port}", **started)
    assert done.returncode == 1
    assert "no such model" in done.stdout


def test_every_variable_of_the_job_is_explained() -> None:
    head = (ROOT / "docs/ci/gitlab.yml").read_text(encoding="utf-8").partition(".oip-conformance:")[0]
    assert [name for name in GITLAB["variables"] if f"#   {name} " not in head] == []


# --- the cookbook ----------------------------------------------------------------------------------------------------


def test_a_matrix_of_versions_on_github(tmp_path: Path) -> None:
    (job,) = yaml.safe_load(read_recipe("Several versions in GitHub Actions", "yaml"))["jobs"].values()
    asked: dict[str, str] = job["steps"][-1]["with"]
    port, version = find_free_port(), str(job["strategy"]["matrix"]["version"][0])
    inputs = {
        name: text.replace("${{ matrix.version }}", version).replace("8000", port) for name, text in asked.items()
    }
    assert (inputs["baseline"], inputs["artifact"]) == (f"baselines/{version}.toml", f"conformance-{version}")
    (tmp_path / "baselines").mkdir()
    (tmp_path / inputs["baseline"]).touch()
    runner = Runner(tmp_path, **inputs, arguments=QUICK)
    assert runner.run(PORT=port) == 0, runner.said
    assert (tmp_path / "serve.arguments").read_text() == f"--port {port} --version {version}\n"


def test_a_matrix_of_versions_on_gitlab(tmp_path: Path) -> None:
    job = yaml.safe_load(read_recipe("Several versions in GitLab", "yaml"))["conformance"]
    assert job["extends"] == ".oip-conformance"
    port, version = find_free_port(), str(job["parallel"]["matrix"][0]["VERSION"][0])
    variables = {name: text.replace("$VERSION", version) for name, text in job["variables"].items()}
    (tmp_path / "baselines").mkdir()
    (tmp_path / variables["CONFORMANCE_BASELINE"]).touch()
    server = f"exec {variables.pop('CONFORMANCE_SERVER').replace('8000', port)}"
    started = {"OIP_TARGET_URL": f"http://127.0.0.1:{port}", "CONFORMANCE_SERVER": server, "PORT": port}
    done = gitlab(tmp_path, **variables, **started, CONFORMANCE_ARGUMENTS=QUICK.replace("\n", " "))
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "serve.arguments").read_text() == f"--port {port} --version {version}\n"
