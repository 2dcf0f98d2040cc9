"""The process that one run is: `python -m conformance.fleet.child`, with pytest's arguments as JSON on stdin.

It is pytest as ever, with two differences. Its arguments are on no command line, where every process of the machine
could read what secrets stand among them. And it lives no longer than whoever started it: stdin ends when that is gone,
however it came to its end, and with it ends this process with all that it started.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading

import pytest


def main() -> int:
    """Run pytest and return its exit status."""
    lifeline = os.dup(0)  # pytest puts something else in the place of stdin
    arguments: list[str] = json.loads(_line(lifeline))
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    return int(pytest.main(arguments))


def _line(descriptor: int) -> bytes:
    octets = b""
    while not octets.endswith(b"\n") and (more := os.read(descriptor, 65536)):
        octets += more
    return octets


def _end_with(lifeline: int) -> None:
    """Wait for the end of the lifeline, then end everything here, without a word: nobody is there to listen."""
    while os.read(lifeline, 65536):
        pass
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
