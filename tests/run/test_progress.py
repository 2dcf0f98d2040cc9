"""The line that a terminal shows while a run lasts, and that nothing else shows."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from contextlib import suppress
from pathlib import Path

import pytest

from conformance.plugin.printing import format_progress_line
from tests.support.servers import PYTEST, judge


@pytest.mark.parametrize(
    ("counts", "seconds", "shown"),
    [
        ((5, 100, 0), 60.0, "raw             5 of 100 rows"),
        ((50, 100, 0), 1.0, "raw             50 of 100 rows"),
        ((50, 100, 0), 65.0, "raw             50 of 100 rows, about 1:05 left"),
        ((50, 100, 7), 65.0, "raw             50 of 100 rows, 7 failed, about 1:05 left"),
        ((100, 100, 0), 65.0, "raw             100 of 100 rows"),
        ((50, 0, 0), 65.0, "raw             50 rows"),
    ],
)
def test_the_line(counts: tuple[int, int, int], seconds: float, shown: str) -> None:
    done, total, failed = counts
    assert format_progress_line("raw", done, total, failed, seconds) == shown


def on_a_terminal(folder: Path, *arguments: str) -> str:
    """Run pytest on a terminal of 100 columns, and return what it shows."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    shown = b""
    with subprocess.Popen([*PYTEST, *arguments], cwd=folder, stdout=its, stderr=its) as process:
        os.close(its)
        with suppress(OSError):  # how the terminal says that it is closed
            while piece := os.read(ours, 65536):
                shown += piece
        process.wait()
    os.close(ours)
    return shown.decode()


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["one process", "two"])
def test_a_terminal_shows_area_and_count(tmp_path: Path, small: str, options: tuple[str, ...]) -> None:
    shown = on_a_terminal(tmp_path, f"--target-url={small}", "-k", "ordering", *options)
    assert "\rordering        1 of 161 rows " in shown
    assert "\rordering        161 of 161 rows" in shown
    assert "....." not in shown
    assert max(len(text) for text in shown.replace("\r", "\n").split("\n") if " of 161 rows" in text) < 100


@pytest.mark.parametrize("options", [("-q",), ("-v",), ("-o", "console_output_style=classic")], ids=" ".join)
def test_who_asks_for_more_or_less_has_it_from_pytest(tmp_path: Path, small: str, options: tuple[str, ...]) -> None:
    shown = on_a_terminal(tmp_path, f"--target-url={small}", "-k", "ordering", *options)
    assert " of 161 rows" not in shown
    assert "....." in shown or "PASS" in shown


def test_a_log_has_dots(tmp_path: Path, small: str) -> None:
    run = judge(tmp_path, f"--target-url={small}", "-k", "ordering")
    assert " of 161 rows" not in run.stdout
    assert "\r" not in run.stdout
    assert "....." in run.stdout
