"""Adapters that tests start, and runs of pytest that judge them: the small one with a trouble, and short programs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.report.report_file import read
from conformance.spec.report import Report
from tests.support.servers import judge

SMALL = Path(__file__).with_name("small_adapter.py")
HELLO = '{"seq": 1, "client": {"name": "odd", "transports": ["http"]}}'


def make_small_command(trouble: str = "") -> tuple[str, ...]:
    return (sys.executable, str(SMALL), *([trouble] if trouble else []))


def make_option(command: Sequence[str]) -> str:
    return f"--client-adapter={shlex.join(command)}"


def make_answering_command(*lines: str, then: str = "") -> tuple[str, ...]:
    """Return the command of a program that answers each line with the next of these, and then does something else."""
    program = (
        f"import sys, os, time\nfor said in {list(lines)!r}:\n    sys.stdin.readline(); print(said, flush=True)\n{then}"
    )
    return (sys.executable, "-c", program)


# --- runs of pytest ---------------------------------------------------------------------------------------------------


FEW = ("-k", "client.sends-every-datatype")  # 13 rows that send binary data, and 12 that send JSON


@dataclass(frozen=True)
class RunResult:
    """A run that has ended, and the folder that it was in."""

    folder: Path
    status: int
    lines: list[str]

    @property
    def last(self) -> str:
        return self.lines[-1]

    @property
    def report(self) -> Report:
        """The JSON report, held against its schema."""
        return read(self.folder / "r.json")

    def text(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")


def run_pytest(folder: Path, *arguments: str, **environment: str) -> RunResult:
    done = judge(folder, *arguments, **environment)
    return RunResult(folder, done.returncode, (done.stdout.strip() or done.stderr.strip()).splitlines())


def list_report_options(*names: str) -> list[str]:
    return [f"--conformance-report={name}" for name in names]
