"""What can become of an adapter other than an answer."""

from __future__ import annotations

from collections.abc import Sequence


class AdapterError(Exception):
    """An adapter broke: it died, hung, or said what it must not. The message is one line of safe text.

    Attributes:
        stderr: the last lines that it wrote there, safe as well.
    """

    def __init__(self, message: str, stderr: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.stderr = tuple(stderr)


class AdapterHangsError(AdapterError):
    """It runs, and has not answered in the time that it had."""


class AdapterLostError(AdapterError):
    """It broke so often in a row that it is not started again."""
