"""The one exception with which a request is refused, and how messages show what the client sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

SHOWN_CHARACTERS = 60


class InferenceError(Exception):
    """A request is refused; the message goes to the client.

    The default status is the one that the protocol calls typical (Open Inference Protocol, REST, "Inference").
    """

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


@contextmanager
def located(where: str) -> Iterator[None]:
    """Put `where` in front of the message of an InferenceError raised inside."""
    try:
        yield
    except InferenceError as error:
        raise InferenceError(f"{where}: {error.message}", error.status) from None


def shown(value: object) -> str:
    """Return a JSON value as a message shows it: short, on one line, ASCII."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = json.dumps(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "..."
