"""Judges the real clients of targets/clients, and compares what came of it with what is known.

    python targets/runner/clients.py                          all of them
    python targets/runner/clients.py tritonclient-grpc node   these
    python targets/runner/clients.py --reports build/results/clients

targets/clients/clients.toml says which there are, expected.toml beside it what each is known not to meet. The suite is
the one that is installed for this interpreter.

Exit status: 0 the outcome is the known one for all, 1 it is another, 2 a client could not be judged.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import go_client
import java_client
from known_failures import UNMET, KnownFailure, compare

CLIENTS: Final = Path(__file__).resolve().parent.parent / "clients"
WORK: Final = CLIENTS.parent.parent / ".tox" / "targets" / "clients"
MAX_JUDGE_S: Final = 900
BUILDERS: Final = {"go": go_client.build, "java": java_client.build}


class ClientError(Exception):
    """Why a client could not be judged."""


@dataclass(frozen=True, slots=True)
class RealClient:
    """A table of clients.toml, which says what each member means."""

    name: str
    title: str
    adapter: str
    runs_in: str
    watched: bool = False


@dataclass(frozen=True, slots=True)
class KnownClientFailure(KnownFailure):
    """What some clients are known not to meet."""

    clients: tuple[str, ...] = ()


def read_clients() -> dict[str, RealClient]:
    """Return the clients by name."""
    tables = tomllib.loads((CLIENTS / "clients.toml").read_text(encoding="utf-8"))
    return {name: RealClient(name, **table) for name, table in tables.items()}


def read_known() -> list[KnownClientFailure]:
    """Return all that is known of them."""
    entries = tomllib.loads((CLIENTS / "expected.toml").read_text(encoding="utf-8"))["known"]
    return [KnownClientFailure(**{**entry, "clients": tuple(entry["clients"])}) for entry in entries]


def main(argv: Sequence[str] | None = None) -> int:
    """Judge clients and return the exit status."""
    clients = read_clients()
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("client", nargs="*", help=f"of {', '.join(clients)} (default: all)")
    parser.add_argument("--reports", type=Path, default=WORK, help="where to leave the JSON reports (default: .tox)")
    options = parser.parse_args(argv)
    for name in options.client:
        if name not in clients:
            parser.error(f"there is no client {name!r}, only {', '.join(clients)}")
    return max(judge_and_compare(clients[name], options.reports.absolute()) for name in options.client or clients)


def judge_and_compare(client: RealClient, reports: Path) -> int:
    """Judge one client, print how that differs from what is known, and return the exit status."""
    print(f"== {client.title}", flush=True)
    path = reports / f"{client.name}.json"
    try:
        judge(client, path)
    except ClientError as error:
        print(error, file=sys.stderr)
        return 2
    report = json.loads(path.read_text(encoding="utf-8"))
    differences = compare(report, [each for each in read_known() if client.name in each.clients], {}, 0)
    print(*differences, sep="\n", end="\n" if differences else "")
    unmet = Counter(row["outcome"] for row in report["rows"] if row["outcome"] in UNMET)
    counts = "".join(f", {count} rows {name}" for name, count in unmet.items())
    print(f"{client.name}: {'not ' if differences else ''}as known: {report['verdict']}{counts}", flush=True)
    return 1 if differences else 0


def judge(client: RealClient, report: Path) -> None:
    """Have the suite write a report of a client.

    Raises:
        ClientError: there is none.
    """
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "OIP_"))}
    command = [*build_command(client, report)]
    status = subprocess.run(command, cwd=report.parent, env=environment, timeout=MAX_JUDGE_S, check=False).returncode
    if not report.exists():
        raise ClientError(f"{client.name}: the suite wrote no report and ended with exit status {status}")


def build_command(client: RealClient, report: Path) -> list[str]:
    """Return the command that judges a client."""
    program = find_program(client)
    if client.watched:
        tool = Path(sys.executable).parent / "oip-conformance"
        options = ["--port=0", "--grpc-port=0", f"--conformance-report={report}"]
        return [str(tool), "client", "watch", *options, "--", *program]
    judged = ["-q", "-p", "no:cacheprovider", "--conformance-profile=certify", f"--conformance-report={report}"]
    return [sys.executable, "-m", "pytest", *judged, f"--client-adapter={shlex.join(program)}"]


def find_program(client: RealClient) -> list[str]:
    """Return the command that starts an adapter; one in Go or Java is built.

    Raises:
        ClientError: it cannot be started on this machine.
    """
    path = CLIENTS / client.adapter
    build = BUILDERS.get(client.runs_in)
    if build is None:
        return [find_interpreter(client.runs_in), str(path)]
    try:
        return build(path.parent, WORK / client.name)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ClientError(f"{client.name} was not built: {error}") from error


def find_interpreter(runs_in: str) -> str:
    """Return what runs an adapter; an environment of its own is made where it is not there yet.

    Raises:
        ClientError: there is none.
    """
    if runs_in == "here":
        return sys.executable
    if runs_in == "node":
        found = shutil.which("node")
        if found is None:
            raise ClientError("there is no node on this machine")
        return found
    return str(install_environment(CLIENTS / runs_in))


def install_environment(requirements: Path) -> Path:
    """Return the interpreter of an environment with these packages; the file pins all that is needed of them."""
    home = WORK / requirements.stem
    python, stamp, wanted = home / "bin" / "python", home / "installed.txt", requirements.read_text(encoding="utf-8")
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        print(f"== {requirements.name} into {home}", flush=True)
        pip = (sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check")
        run(sys.executable, "-m", "venv", "--clear", "--without-pip", str(home))
        run(*pip, "install", "--quiet", "--no-deps", "-r", str(requirements))
        stamp.write_text(wanted, encoding="utf-8")
    return python


def run(*command: str) -> None:
    """Run a command that has to succeed.

    Raises:
        ClientError: it did not.
    """
    status = subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
    if status:
        raise ClientError(f"exit status {status}: {shlex.join(command)}")


if __name__ == "__main__":
    sys.exit(main())
