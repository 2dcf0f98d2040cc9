"""Runs of pytest that judge a client, and what they leave."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.report.report_file import read
from tests.support.servers import judge

FEW = ("-k", "client.sends-every-datatype")  # 13 rows that send binary data, and 12 that send JSON


@dataclass(frozen=True)
class RunResult:
    """A run that has ended, and the folder that it was in."""

    folder: Path
    status: int
    lines: list[str]

    @property
    def last(self) -> str:
        """The verdict."""
        return self.lines[-1]

    @property
    def report(self) -> dict[str, Any]:
        """The JSON report, held against its schema."""
        return read(self.folder / "r.json")

    def text(self, name: str) -> str:
        """Return what a file says."""
        return (self.folder / name).read_text(encoding="utf-8")


def run_pytest(folder: Path, *arguments: str, **environment: str) -> RunResult:
    done = judge(folder, *arguments, **environment)
    return RunResult(folder, done.returncode, (done.stdout.strip() or done.stderr.strip()).splitlines())


def list_report_options(*names: str) -> list[str]:
    return [f"--conformance-report={name}" for name in names]
