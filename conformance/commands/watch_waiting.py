"""How long a watch goes on: for a command, for a time, until nothing comes any more, or until somebody ends it."""

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

from conformance.spec.environment import WATCHED_VARIABLE
from conformance.spec.user_error import UserError

ADDRESS_VARIABLES: Final = ("OIP_TARGET_URL", "OIP_TARGET_GRPC")
MIN_ANSWER_WAIT_S: Final = 60.0  # seconds that an answer may take before nothing counts as coming
_TICK: Final = 0.1  # seconds between two looks at a command, and at whether a signal came
# Seconds that a command has to end by itself, as after Ctrl-C, which reaches it, too; and then to end when asked to.
_OWN_END, _ASKED_END = 2.0, 5.0
_BY_SIGNAL: Final = 128  # what a shell adds to the number of the signal that ended a command


@dataclass(frozen=True, slots=True)
class WatchEnd:
    """How a watch ended.

    Attributes:
        status: the exit status of the command; 0 without one.
        stopped: why it was cut short; empty where it was not.
    """

    status: int = 0
    stopped: str = ""


class Interruption:
    """Whether somebody ended the watch; safe to be set by the handler of a signal.

    A `threading.Event` is not: its lock may be held by the very wait that the handler interrupts. And a wait without
    end might never hear of a signal that the system gave to another thread: only the main one runs handlers.
    """

    def __init__(self) -> None:
        self._has_happened = False

    def set(self) -> None:
        """Say that it has happened."""
        self._has_happened = True

    def wait(self, seconds: float = math.inf) -> bool:
        """Wait for it, for so many seconds; return whether it has happened."""
        until = time.monotonic() + seconds
        while not self._has_happened and (left := until - time.monotonic()) > 0:
            time.sleep(min(_TICK, left))
        return self._has_happened


@contextmanager
def catch_interrupts() -> Iterator[Interruption]:
    """Yield what is set by SIGINT and SIGTERM meanwhile."""
    happened = Interruption()
    before = {number: signal.signal(number, lambda *_: happened.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield happened
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def wait_seconds(seconds: float, interrupted: Interruption) -> WatchEnd:
    """Wait for a time."""
    return WatchEnd(stopped="interrupted") if interrupted.wait(seconds) else WatchEnd()


def wait_until_idle(
    seconds: float, last: Callable[[], float], is_waiting: Callable[[], bool], interrupted: Interruption
) -> WatchEnd:
    """Wait until nothing has come for a time.

    Args:
        seconds: so long; where a request has no answer yet, at least `MIN_ANSWER_WAIT_S`.
        last: says when the last request or answer came, by the monotonic clock.
        is_waiting: whether a request has no answer yet.
        interrupted: ends it, too.
    """
    while (left := last() + (max(seconds, MIN_ANSWER_WAIT_S) if is_waiting() else seconds) - time.monotonic()) > 0:
        if interrupted.wait(min(left, seconds)):
            return WatchEnd(stopped="interrupted")
    return WatchEnd()


def wait_for_interrupt(interrupted: Interruption) -> WatchEnd:
    """Wait for the signal that is the end where nothing else is."""
    interrupted.wait()
    return WatchEnd()


def wait_for_command(command: Sequence[str], addresses: Mapping[str, str], interrupted: Interruption) -> WatchEnd:
    """Run a command and wait for its end.

    Args:
        command: a program and its arguments.
        addresses: variables of its environment, of those in `ADDRESS_VARIABLES`.
        interrupted: ends it.

    Raises:
        UserError: it cannot be started.
    """
    own = {name: value for name, value in os.environ.items() if name not in ADDRESS_VARIABLES}
    try:
        child = subprocess.Popen(list(command), env={**own, **addresses, WATCHED_VARIABLE: "1"})
    except OSError as error:
        raise UserError(f"cannot run {command[0]}: {error.strerror}") from error
    while child.poll() is None:
        if interrupted.wait(_TICK):
            _end(child)
            return WatchEnd(_status(child), "interrupted")
    return WatchEnd(_status(child))


def _end(child: subprocess.Popen[bytes]) -> None:
    for limit, ask in ((_OWN_END, child.terminate), (_ASKED_END, child.kill)):
        try:
            child.wait(limit)
        except subprocess.TimeoutExpired:
            ask()
    child.wait()


def _status(child: subprocess.Popen[bytes]) -> int:
    """Return the exit status as a shell has it."""
    return _BY_SIGNAL - child.returncode if child.returncode < 0 else child.returncode
