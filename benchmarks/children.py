"""Commands run as children, in folders of their own, with what they cost."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance.transport.reference import ReferenceServer

PYTEST = (sys.executable, "-m", "pytest")
SUITE = (sys.executable, "-c", "import sys; from conformance.commands.main import main; sys.exit(main())")


def run(*command: str, folder: Path, succeeds: bool = True) -> tuple[float, str]:
    """Run a command and return how long it took, and what it printed.

    Raises:
        RuntimeError: it ended with another status than 0, where it has to succeed.
    """
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    elapsed = time.perf_counter() - started
    if succeeds and done.returncode:
        raise RuntimeError(
            f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return elapsed, done.stdout


def most_memory() -> float:
    """Return the most memory that this process has taken, in MB.

    `getrusage` has that, too, but with what the process that started this one had taken by then.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return usage / (1024 if sys.platform != "darwin" else 1024 * 1024)
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024


@contextmanager
def folder() -> Iterator[Path]:
    """Make a folder of its own for a run, and take it away."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@contextmanager
def bundled(*options: str, grpc: bool = False) -> Iterator[ReferenceServer]:
    """Start the bundled server in a process of its own, with these options of its command line."""
    server = ReferenceServer(*options, grpc=grpc)
    try:
        yield server
    finally:
        server.stop()
