"""Starts the process of one run and waits for its end, for the end of its time, or until nobody wants it any more."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.plugin.options import SETTING_OPTIONS

# Seconds between two looks at the process, and that a run has for its reports once its time is over.
POLL_INTERVAL_S: Final = 0.1
GRACE_PERIOD_S: Final = 60.0
LOG: Final = "run.log"  # what pytest prints
# What shapes a run from the environment, or writes what a single run is to write.
_NOT_PASSED_ON: Final = frozenset(
    {*(f"OIP_{name.upper()}" for name in SETTING_OPTIONS), "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"}
)


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """How a process came to its end.

    Attributes:
        status: its exit status; negative where a signal ended it.
        was_late: it took longer than it may.
        was_unwanted: it was ended because nobody wanted it any more.
    """

    status: int
    was_late: bool = False
    was_unwanted: bool = False


def run(
    arguments: Sequence[str],
    folder: Path,
    seconds: float,
    is_wanted: Callable[[], bool],
    *,
    grace: float = GRACE_PERIOD_S,
) -> ProcessExit:
    """Run pytest with arguments, in a folder; nothing that it started is left afterwards.

    Args:
        arguments: of pytest; they may hold secrets.
        folder: to run in; what pytest prints goes to `LOG` there.
        seconds: after which it is asked to end, and to leave what it has.
        is_wanted: asked all the time; the process is ended at once when it says no.
        grace: seconds after which it is ended when it was asked to.

    Raises:
        OSError: it cannot be started.
    """
    with (folder / LOG).open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "conformance.fleet.child"],
            cwd=folder,
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the fleet; and the group is ended as one
        )
    try:
        assert process.stdin is not None  # noqa: S101 - for the type checker
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(list(arguments)).encode() + b"\n")
            process.stdin.flush()
        return _waited(process, seconds, is_wanted, grace)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        with suppress(BrokenPipeError):
            process.stdin and process.stdin.close()


def _waited(
    process: subprocess.Popen[bytes], seconds: float, is_wanted: Callable[[], bool], grace: float
) -> ProcessExit:
    end, was_late = time.monotonic() + seconds, False
    while True:
        with suppress(subprocess.TimeoutExpired):
            return ProcessExit(process.wait(POLL_INTERVAL_S), was_late)
        if not is_wanted():
            return ProcessExit(-signal.SIGKILL, was_unwanted=True)
        if time.monotonic() >= end:
            if was_late:
                return ProcessExit(-signal.SIGKILL, was_late=True)
            process.terminate()
            end, was_late = time.monotonic() + grace, True


def _environment() -> dict[str, str]:
    """Return the environment of a run: that of the fleet, but for what would shape it."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in _NOT_PASSED_ON and not name.startswith("PYTEST")
    }
    return {**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
