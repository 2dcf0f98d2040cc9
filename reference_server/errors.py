"""The exception that refuses a request, and the formatting of client data in messages."""

from __future__ import annotations

import json

MAX_SHOWN_CHARS = 60


class InferenceError(Exception):
    """A request is refused; the message goes to the client.

    The default status is the one that the protocol calls typical (Open Inference Protocol, REST, "Inference").
    """

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


class error_context:  # noqa: N801 - used like a context manager that is a function
    """Prefix the message of an InferenceError from the `with` block with the location of the error.

    Every tensor of every request passes here and few are refused, so the prefix is formatted only on an error.
    """

    __slots__ = ("index", "location", "name")

    def __init__(self, location: str, index: int | None = None, name: str | None = None) -> None:
        """Name the location: `location`, or `location[index]`, optionally followed by a name that the client sent."""
        self.location, self.index, self.name = location, index, name

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        """Raise the error again with its location."""
        if isinstance(error, InferenceError):
            where = self.location if self.index is None else f"{self.location}[{self.index}]"
            where = where if self.name is None else f"{where} {quote_name(self.name)}"
            raise InferenceError(f"{where}: {error.message}", error.status) from None


def format_value(value: object) -> str:
    """Format a JSON value for a message: short, on one line, ASCII."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = json.dumps(value)
    return text if len(text) <= MAX_SHOWN_CHARS else text[:MAX_SHOWN_CHARS] + "..."


def quote_name(name: str) -> str:
    """Quote a name for a message."""
    return f"'{format_value(name)[1:-1]}'"
