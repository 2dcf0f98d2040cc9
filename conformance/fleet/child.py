"""The child process of one run: `python -m conformance.fleet.child`, with pytest's arguments as JSON on stdin.

The process runs pytest, with two differences. The arguments may hold secrets, so they are not on the command line,
where every process of the machine could read them. And the process does not outlive its parent: when the parent ends
in any way, stdin closes, and this process ends with all its children.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading

import pytest

from conformance.judging.scheduling import FLEET_VARIABLE


def main() -> int:
    """Run pytest and return its exit status."""
    lifeline = os.dup(0)  # pytest replaces stdin
    arguments: list[str] = json.loads(_read_line(lifeline))
    os.environ[FLEET_VARIABLE] = "1"
    threading.Thread(target=_kill_group_when_closed, args=(lifeline,), daemon=True).start()
    return int(pytest.main(arguments))


def _read_line(descriptor: int) -> bytes:
    octets = b""
    while not octets.endswith(b"\n") and (more := os.read(descriptor, 65536)):
        octets += more
    return octets


def _kill_group_when_closed(lifeline: int) -> None:
    """Wait until the pipe from the parent (`lifeline`) is closed, then kill this process group silently."""
    while os.read(lifeline, 65536):
        pass
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
