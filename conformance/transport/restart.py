"""Runs the user's restart command, which starts a target again that has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass, field

MAX_RUNS = 100  # in one run of the suite: each row that ends the target needs about three
MAX_COMMAND_S = 60.0
MAX_OUTPUT_BYTES = 2000


@dataclass(slots=True)
class Restart:
    """The restart command of one target; all threads that send requests share it.

    Attributes:
        command: the command from the user's own target file, for the shell; empty if there is none. It is in no report.
        failure: why the command cannot help any more, to append to a message; empty if it can.
        output: the end of the output of the command that failed, to show on the terminal only.
    """

    command: str = field(default="", repr=False)
    runs: int = 0
    failure: str = ""
    output: str = field(default="", repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def run(self, seen_runs: int) -> bool:
        """Run the command, unless another thread has run it since `seen_runs`; return whether it ended with 0."""
        with self._lock:
            if self.runs > seen_runs or not self.command or self.failure:
                return self.runs > seen_runs and not self.failure
            self.runs += 1
            self.failure = "; the restart command has run too often" if self.runs > MAX_RUNS else self._run_once()
            return not self.failure

    def _run_once(self) -> str:
        """Run the command, and return why it failed; a server that it leaves in the background keeps running."""
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(  # noqa: S602 - the user's own words, from the user's own file
                self.command,
                shell=True,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                status = process.wait(MAX_COMMAND_S)
                failure = f"; the restart command ended with exit status {status}" if status else ""
            except subprocess.TimeoutExpired:
                with suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                failure = f"; the restart command did not end in {MAX_COMMAND_S:g} s"
            if failure:
                output.seek(max(0, output.seek(0, os.SEEK_END) - MAX_OUTPUT_BYTES))
                self.output = output.read().decode("utf-8", "replace")
            return failure
