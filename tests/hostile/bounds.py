"""A run of the suite within bounds of time and memory, and what it leaves behind; what this process holds."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.servers import PYTEST

# What a run against a hostile peer may take at the default options.
SECONDS, MEGABYTES = 60.0, 500
Beside = Callable[[int], None]
# Where the system itself ends it: a mistake must not take the machine with it.
_CEILING = 4 * 1024**3
# Settings of this process, which is a run of pytest itself, are none of the child's.
_OF_THIS_RUN = ("PYTEST", "OIP_", "GITHUB_", "PYTHONDONTWRITEBYTECODE")
_LOOK = 0.05  # seconds from one look at memory to the next
_REPORT, _TEMPORARY = "report.json", "temporary"


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run has ended.

    Attributes:
        status: its exit status; negative where a signal ended it, such as that for a run that took too long.
        verdict: of its report; empty where it wrote none.
        seconds: by the clock.
        most_memory: megabytes that its largest process held at once.
        output: what it printed.
        left_behind: processes that still run, and files in its temporary folder.
        report: the whole report.
        cpu: seconds of all its processes.
    """

    status: int
    verdict: str
    seconds: float
    most_memory: float
    output: str
    left_behind: tuple[str, ...]
    report: Mapping[str, Any] = field(default_factory=dict, repr=False)
    cpu: float = 0.0

    @property
    def why(self) -> str:
        """The reasons of the verdict, on one line."""
        return "; ".join(self.report.get("why", ()))

    def failed(self) -> dict[str, tuple[str, ...]]:
        """Return check and row -> requirements of each failure of the report."""
        checks = self.report.get("rows", ())
        return {f"{c['check']}[{c['row']}]": tuple(c["requirements"]) for c in checks if c["outcome"] == "fail"}


def run(folder: Path, *arguments: str, seconds: float = SECONDS, beside: Beside | None = None) -> RunResult:
    """Judge with the suite, in a process of its own; see `run_command`.

    Args:
        folder: an empty one, in which it runs and leaves its report.
        arguments: of pytest: `--target-url=...`.
        seconds: after which it is killed.
        beside: is called with the number of its process once it has started: to send it a signal, say.
    """
    words = (*PYTEST, "-q", f"--conformance-report={_REPORT}", *arguments)
    return run_command(folder, words, seconds=seconds, beside=beside)


def run_command(
    folder: Path, words: Sequence[str], *, seconds: float = SECONDS, beside: Beside | None = None
) -> RunResult:
    """Run a command in a session of its own, so that all that it starts can be found and ended."""
    (temporary := folder / _TEMPORARY).mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OF_THIS_RUN)}
    environment = {**kept, "TMPDIR": str(temporary), "PYTHONUNBUFFERED": "1"}
    # A shell that runs the tests in the background has them ignore SIGINT, and all that they start.
    heeding = ("env", "--default-signal=INT,TERM", *words)
    started = time.monotonic()
    with (folder / "output").open("wb") as output:
        child = subprocess.Popen(
            heeding, cwd=folder, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    resource.prlimit(child.pid, resource.RLIMIT_DATA, (_CEILING, _CEILING))
    try:
        used, most = _waited(child, seconds, beside)
        took = time.monotonic() - started
        left = (*_running(child.pid), *_files(temporary))
    finally:
        for pid in _session(child.pid):
            _send(pid, signal.SIGKILL)
    report = _read(folder / _REPORT)
    text = (folder / "output").read_text(encoding="utf-8", errors="replace")
    cpu = used.ru_utime + used.ru_stime
    verdict = str(report.get("verdict", ""))
    return RunResult(child.returncode, verdict, took, most, text, left, report, cpu)


def _waited(
    child: subprocess.Popen[bytes], seconds: float, beside: Beside | None
) -> tuple[resource.struct_rusage, float]:
    """Wait for a child, and end it when it takes too long; return what it and its children used, and most megabytes.

    What the system says of a child's memory afterwards begins with that of the process which started it, and a worker
    of these tests is large. So the high water of each process is looked at while it runs.
    """
    most, status = 0.0, 0
    timer = threading.Timer(seconds, _send, (child.pid, signal.SIGKILL))
    timer.start()
    try:
        if beside is not None:
            beside(child.pid)
        ended = 0
        while not ended:
            most = max(most, *map(_high_water, _session(child.pid)), 0.0)
            time.sleep(_LOOK)
            ended, status, used = os.wait4(child.pid, os.WNOHANG)
    finally:
        timer.cancel()
    child.returncode = os.waitstatus_to_exitcode(status)
    return used, most


def _high_water(pid: int) -> float:
    """Return the most megabytes that a process has held since its program began; 0 where it is gone."""
    lines = (line.split() for line in _lines(Path(f"/proc/{pid}/status")))
    return next((int(words[1]) / 1024 for words in lines if words[0] == "VmHWM:"), 0.0)


def expect_within(ended: RunResult, *, seconds: float = SECONDS, megabytes: float = MEGABYTES) -> None:
    """Expect that a run kept its bounds, left nothing behind, and showed no traceback.

    Raises:
        AssertionError: it did not.
    """
    assert ended.seconds < seconds, f"{ended.seconds:.1f} s\n{ended.output}"
    assert ended.most_memory < megabytes, f"{ended.most_memory:.0f} MB\n{ended.output}"
    assert not ended.left_behind, f"{ended.left_behind}\n{ended.output}"
    assert "Traceback" not in ended.output, ended.output
    assert "INTERNALERROR" not in ended.output, ended.output


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """How many threads, descriptors and child processes this process has, and files the temporary folder."""

    threads: int
    descriptors: int
    processes: int
    files: int


def measure_resources() -> ResourceUse:
    """Return what this process holds now. Others may use the temporary folder: a test takes one of its own."""
    own = Path("/proc/self")
    children = [child for task in (own / "task").iterdir() for child in _words(task / "children")]
    files = sum(1 for _ in Path(tempfile.gettempdir()).iterdir())
    return ResourceUse(threading.active_count(), len(list((own / "fd").iterdir())), len(children), files)


def _words(path: Path) -> list[str]:
    return [word for line in _lines(path) for word in line.split()]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []  # the thread or process has ended meanwhile


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _session(leader: int) -> list[int]:
    """Return the processes of a session that still run."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and _is_of(entry, leader)]


def _is_of(process: Path, leader: int) -> bool:
    try:
        # proc(5): pid (comm) state ppid pgrp session; a name may hold blanks and brackets.
        state, _, _, session = (process / "stat").read_text().rpartition(")")[2].split()[:4]
    except (OSError, ValueError):
        return False
    return session == str(leader) and state != "Z"


def _running(leader: int) -> tuple[str, ...]:
    return tuple((Path("/proc") / str(pid) / "comm").read_text().strip() for pid in _session(leader))


def _files(folder: Path) -> tuple[str, ...]:
    return tuple(str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file())


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
