"""Signal handling: SIGTERM ends a run like Ctrl-C, and neither signal interrupts the writing of output files."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

END_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def interrupt_on_sigterm() -> Any:
    """Make SIGTERM raise KeyboardInterrupt; return the previous handler for `restore_handler`."""
    if threading.current_thread() is not threading.main_thread():
        return None  # handlers can only be set in the main thread
    return signal.signal(signal.SIGTERM, _raise_interrupt)


def restore_handler(before: Any) -> None:
    """Restore the handler of SIGTERM that `interrupt_on_sigterm` returned."""
    if before is not None:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def defer_signals() -> Iterator[None]:
    """Ignore SIGINT and SIGTERM inside the block, so that reports are written completely."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in END_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _raise_interrupt(_number: int, _frame: FrameType | None) -> None:
    # `timeout` signals the process and then its group: a second interrupt would end pytest while it handles the first.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt("terminated")
