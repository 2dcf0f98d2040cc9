"""Waits for the end of a watch: the exit of a command, the end of a time, the end of all traffic, or an interrupt."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from conformance.spec.options import WATCHED_VARIABLE
from conformance.spec.user_error import UserError

ADDRESS_VARIABLES: Final = ("OIP_TARGET_URL", "OIP_TARGET_GRPC")
MIN_ANSWER_WAIT_S: Final = 60.0  # seconds to wait for a pending answer before the watch counts as idle
_TICK: Final = 0.1  # seconds between two polls of the command and of the interrupt flag
# Seconds for a command to exit by itself (Ctrl-C reaches it as well), and then after SIGTERM.
_OWN_EXIT_WAIT_S, _SIGTERM_WAIT_S = 2.0, 5.0
_BY_SIGNAL: Final = 128  # added to a signal number to form the exit status, as shells do


@dataclass(frozen=True, slots=True)
class WatchEnd:
    """The end of a watch.

    Attributes:
        status: the exit status of the command; 0 without one.
        stopped: why the watch was cut short; empty if it was not.
    """

    status: int = 0
    stopped: str = ""


class Interruption:
    """A flag for interrupts that a signal handler can set safely.

    A `threading.Event` is not safe: the wait that the handler interrupts may hold its lock. An unlimited wait may also
    miss a signal that the system delivers to another thread, since only the main thread runs handlers.
    """

    def __init__(self) -> None:
        self._has_happened = False

    def set(self) -> None:
        """Set the flag."""
        self._has_happened = True

    def wait(self, seconds: float = math.inf) -> bool:
        """Wait for the flag up to `seconds`; return whether it is set."""
        until = time.monotonic() + seconds
        while not self._has_happened and (left := until - time.monotonic()) > 0:
            time.sleep(min(_TICK, left))
        return self._has_happened


@contextmanager
def catch_interrupts() -> Iterator[Interruption]:
    """Yield a flag that SIGINT and SIGTERM set within the block."""
    happened = Interruption()
    before = {number: signal.signal(number, lambda *_: happened.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield happened
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def wait_seconds(seconds: float, interrupted: Interruption) -> WatchEnd:
    """Wait for a number of seconds, or until an interrupt."""
    return WatchEnd(stopped="interrupted") if interrupted.wait(seconds) else WatchEnd()


def wait_until_idle(
    seconds: float, last: Callable[[], float], is_waiting: Callable[[], bool], interrupted: Interruption
) -> WatchEnd:
    """Wait until there has been no traffic for a given number of seconds.

    `seconds`: the time; at least `MIN_ANSWER_WAIT_S` while a request has no answer.
    `last`: returns the time of the last request or answer, by the monotonic clock.
    `is_waiting`: returns whether a request has no answer yet.
    """
    while (left := last() + (max(seconds, MIN_ANSWER_WAIT_S) if is_waiting() else seconds) - time.monotonic()) > 0:
        if interrupted.wait(min(left, seconds)):
            return WatchEnd(stopped="interrupted")
    return WatchEnd()


def wait_for_interrupt(interrupted: Interruption) -> WatchEnd:
    """Wait for a signal, which is the regular end of a watch without another limit."""
    interrupted.wait()
    return WatchEnd()


def wait_for_command(command: Sequence[str], addresses: Mapping[str, str], interrupted: Interruption) -> WatchEnd:
    """Run a command and wait for its end.

    `addresses`: environment variables for the command, with the watched addresses; the names are in
    `ADDRESS_VARIABLES`.

    Raises UserError: the command cannot be started.
    """
    own = {name: value for name, value in os.environ.items() if name not in ADDRESS_VARIABLES}
    try:
        child = subprocess.Popen(list(command), env={**own, **addresses, WATCHED_VARIABLE: "1"})
    except OSError as error:
        raise UserError(f"cannot run {command[0]}: {error.strerror}") from error
    while child.poll() is None:
        if interrupted.wait(_TICK):
            _end_command(child)
            return WatchEnd(_find_exit_status(child), "interrupted")
    return WatchEnd(_find_exit_status(child))


def _end_command(child: subprocess.Popen[bytes]) -> None:
    for limit, ask in ((_OWN_EXIT_WAIT_S, child.terminate), (_SIGTERM_WAIT_S, child.kill)):
        try:
            child.wait(limit)
        except subprocess.TimeoutExpired:
            ask()
    child.wait()


def _find_exit_status(child: subprocess.Popen[bytes]) -> int:
    """Return the exit status in the convention of shells."""
    return _BY_SIGNAL - child.returncode if child.returncode < 0 else child.returncode
