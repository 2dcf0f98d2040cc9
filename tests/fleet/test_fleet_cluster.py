"""The same work on a Dask cluster: a scheduler and a worker, each a process of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conformance.fleet.fleet_file import FleetError
from conformance.fleet.pools import Cluster
from tests.support.servers import run_bundled, run_command
from tests.support.small_fleets import BRIEF, read_index, write_fleet

TOKEN = "s3cret-of-the-worker"  # noqa: S105
LITERAL = "s3cret-of-the-file"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@contextmanager
def process(logs: Path, name: str, *arguments: str, **environment: str) -> Iterator[None]:
    with (logs / f"{name}.log").open("wb") as log:
        command = [sys.executable, "-m", f"distributed.cli.dask_{name}", *arguments, "--no-dashboard"]
        running = subprocess.Popen(command, env=os.environ | environment, stdout=log, stderr=log, cwd=logs)
    try:
        yield
    finally:
        running.kill()
        running.wait()


@pytest.fixture(scope="module")
def cluster(logs: Path) -> Iterator[str]:
    """Start a cluster whose worker alone has the token; yields the address of its scheduler."""
    file = logs / "scheduler.json"
    with process(logs, "scheduler", "--host=127.0.0.1", "--port=0", f"--scheduler-file={file}"):
        until(lambda: file.exists() and file.stat().st_size > 0)
        address = json.loads(file.read_text())["address"]
        options = ("--host=127.0.0.1", "--nthreads=2", "--no-nanny")
        with process(logs, "worker", address, *options, OIP_FLEET_TEST_TOKEN=TOKEN):
            yield address


def until(happens: Callable[[], bool]) -> None:
    while not happens():
        time.sleep(0.02)


def test_a_cluster_does_the_same_and_secrets_are_looked_up_there(tmp_path: Path, cluster: str, logs: Path) -> None:
    headers = f'headers = {{ Authorization = "Bearer ${{OIP_FLEET_TEST_TOKEN}}", X-Plain = "{LITERAL}" }}\n'
    with run_bundled("--model=identity_int32") as url:
        dead = '[targets.dead]\nurl = "http://127.0.0.1:9"\ntimeout = 0.2\nlimits.retries = 0\n'
        lost = f'[targets.lost]\nurl = "{url}"\nheaders.X-Lost = "${{OIP_FLEET_NO_SUCH}}"\n'
        write_fleet(tmp_path, f'{BRIEF}{headers}[targets.a]\nurl = "{url}"\n{dead}{lost}')
        done = run_command(tmp_path, "fleet", "fleet.toml", "-o", "out", "--scheduler", cluster)
    assert done.returncode == 6, done.stdout + done.stderr
    by_name = {target["name"]: target for target in read_index(tmp_path)["targets"]}
    assert [by_name[name]["verdict"] for name in ("a", "dead", "lost")] == ["incomplete"] * 3
    assert by_name["lost"]["trouble"] == "usage"
    assert by_name["lost"]["why"][0].endswith("the environment has no variable OIP_FLEET_NO_SUCH")
    assert (tmp_path / "out" / by_name["a"]["folder"] / "evidence" / "run.har.xz").is_file()
    said = [done.stdout.encode(), done.stderr.encode()]
    said += [path.read_bytes() for folder in (tmp_path / "out", logs) for path in folder.rglob("*") if path.is_file()]
    assert not any(TOKEN.encode() in each or LITERAL.encode() in each for each in said)


def test_nobody_goes_on_with_what_a_fleet_has_given_up(tmp_path: Path, cluster: str) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        port = silent.getsockname()[1]
        write_fleet(tmp_path, f'{BRIEF}timeout = 600\n[targets.a]\nurl = "http://127.0.0.1:{port}"\n')
        program = "import sys; from conformance.commands.main import main; sys.exit(main())"
        arguments = ["fleet", "fleet.toml", "-o", "out", "--scheduler", cluster]
        fleet = subprocess.Popen([sys.executable, "-c", program, *arguments], cwd=tmp_path)
        with silent.accept()[0]:  # the run is under way
            fleet.terminate()
            assert fleet.wait() == 2
            until(lambda: not under_way(port))
    assert read_index(tmp_path)["counts"]["not_run"] == 1


def under_way(port: int) -> bool:
    """Say whether a run of the suite is there that was told of a port, by the target file in its folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"conformance.fleet.child" in (process / "cmdline").read_bytes():
                found.append((process / "cwd" / "target.toml").read_text())
        except OSError:
            continue
    return any(f":{port}" in text for text in found)


def test_a_cluster_that_is_not_there_is_one_line() -> None:
    with pytest.raises(FleetError, match=r"--scheduler tcp://127\.0\.0\.1:9: no answer; give tcp://HOST:8786"):
        Cluster("tcp://127.0.0.1:9", "run", connect_wait_s=0.2)
    with pytest.raises(FleetError, match="not the address of a scheduler"):
        Cluster("nonsense://x", "run", connect_wait_s=0.2)
