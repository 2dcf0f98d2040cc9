"""The properties, a module for each kind of reader."""

from __future__ import annotations

from collections.abc import Callable

MAX_REFUSAL_CHARS = 2000


def expect_read_or_refused(read: Callable[[], object], honest: type[Exception]) -> None:
    """Read; whatever is raised but the honest exception is a finding.

    Raises:
        AssertionError: the refusal is no single short line of printable characters.
    """
    said = ""
    try:
        read()
    except honest as error:
        said = str(error)
    assert not said or said.isprintable(), said
    assert len(said) < MAX_REFUSAL_CHARS
