"""How each stranger's client is built, and judged by way of its adapter."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import DEVNULL, run
from typing import Any

from conformance.report import report_file
from tests.strangers.servers import HERE, Stranger

CLIENTS: Mapping[str, Stranger] = {
    "clients/go": Stranger(("./adapter",), ("go", "build", "-o", "adapter", "."), ("golang-go",)),
    "clients/java": Stranger(
        ("java", "-cp", "build", "Adapter"), ("sh", "-c", "javac -d build *.java"), ("default-jdk-headless",)
    ),
    "clients/node": Stranger(("node", "adapter.mjs")),
}
LIMIT_S = 600


def judge_client(name: str, folder: Path, change: Callable[[Path], None] = lambda _: None) -> Mapping[str, Any]:
    """Build a stranger's client in a copy below a folder, changed or not, judge it, and return the report."""
    stranger, own, report = CLIENTS[name], folder / name, folder / "report.json"
    shutil.copytree(HERE / name, own)
    change(own)
    if stranger.build:
        run(stranger.build, cwd=own, check=True, stdout=DEVNULL)
    judged = ("-m", "pytest", f"--client-adapter={shlex.join(stranger.start)}", f"--conformance-report={report}")
    run([sys.executable, *judged], cwd=own, check=False, stdout=DEVNULL, stderr=DEVNULL, timeout=LIMIT_S)
    return report_file.read(report)
