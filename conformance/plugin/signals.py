"""The end that a signal makes of a run: SIGTERM ends it as Ctrl-C does, and neither cuts what is written short."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

END_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def take_as_interrupt() -> Any:
    """Have SIGTERM interrupt this process as SIGINT does; return what it did before, for `restore_handler`."""
    if threading.current_thread() is not threading.main_thread():
        return None  # signals are for the main thread, and this run is somebody else's
    return signal.signal(signal.SIGTERM, _interrupt)


def restore_handler(before: Any) -> None:
    """Have SIGTERM do what it did before."""
    if before is not None:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def defer_signals() -> Iterator[None]:
    """Let no signal end what stands inside, which takes a moment: reports that are half written help nobody."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in END_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt("terminated")
