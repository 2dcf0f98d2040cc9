"""A corpus as small as can be: inputs that reach a line, or a step from line to line, that no smaller one reaches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

from tests.fuzz.target import Target, make_file_name

ROOT = Path(__file__).parents[2]
OURS = (str(ROOT / "conformance"), str(ROOT / "reference_server"))
Step = tuple[str, int, int]  # file, and the lines between which it goes


def keep_smallest(target: Target, found: Iterable[bytes]) -> int:
    """Make the folder of a target's corpus anew of what it holds and was found; return how many inputs it has now.

    What the seeds reach by themselves needs no file.
    """
    kept = [path.read_bytes() for path in target.folder.glob("*")] if target.folder.is_dir() else []
    reached: set[Step] = set()
    for data in target.seeds():
        reached |= trace_steps(target.holds, data)
    chosen: list[bytes] = []
    for data in sorted({*kept, *found}, key=lambda data: (len(data), data)):
        new = trace_steps(target.holds, data)
        if not new <= reached:
            reached |= new
            chosen.append(data)
    target.folder.mkdir(parents=True, exist_ok=True)
    for path in target.folder.glob("*"):
        path.unlink()
    for data in chosen:
        (target.folder / make_file_name(data)).write_bytes(data)
    return len(chosen)


def trace_steps(holds: Callable[[bytes], None], data: bytes) -> set[Step]:
    """Return the steps between lines of ours that an input makes; of one that breaks the property, up to there."""
    found: set[Step] = set()

    def of_frame(frame: FrameType, event: str, _: Any) -> Any:
        if event != "call" or not frame.f_code.co_filename.startswith(OURS):
            return None
        name, last = frame.f_code.co_filename, 0

        def of_line(inner: FrameType, what: str, _: Any) -> Any:
            nonlocal last
            if what == "line":
                found.add((name, last, inner.f_lineno))
                last = inner.f_lineno
            return of_line

        return of_line

    before = sys.gettrace()
    sys.settrace(of_frame)
    try:
        holds(data)
    except Exception:  # a finding: it is kept for where it gets to
        found.add(("", 0, 0))
    finally:
        sys.settrace(before)
    return found
