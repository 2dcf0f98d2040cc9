"""The adapter of a client under judgement: a program that is told, in JSON lines, which inferences to make.

`AdapterProcess` starts it when it is first needed, holds every line of its answers against
`schemas/adapter.schema.json`, waits for none longer than it says, and keeps what it writes to standard error. One that
breaks is ended with everything that it has started, and started anew for the next inference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from conformance.clients.inference import Inference, Introduction, Result

PATIENCE = 10.0  # seconds for an adapter to introduce itself
MARGIN = 5.0  # seconds that an adapter has for itself, beside those of its inferences
MOST_STARTS = 3  # times that an adapter may break in a row


class AdapterError(Exception):
    """An adapter broke: it died, hung, or said what it must not. The message is one line.

    Attributes:
        stderr: the last lines that it wrote there.
    """

    def __init__(self, message: str, stderr: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.stderr = tuple(stderr)


class AdapterHangsError(AdapterError):
    """It runs, and has not answered in the time that it had."""


class AdapterLostError(AdapterError):
    """It broke so often in a row that it is not started again."""


class Adapter(Protocol):
    """A client that can be asked for inferences."""

    @property
    def introduction(self) -> Introduction:
        """What it says of its client.

        Raises:
            AdapterError: it could not be asked.
        """

    def infer(
        self, transport: str, address: str, inferences: Sequence[Inference], *, at_once: bool, timeout: float
    ) -> list[Result]:
        """Have the client make inferences; return a result for each, in the same order.

        Args:
            transport: `http` or `grpc`.
            address: `http://HOST:PORT` or `HOST:PORT`.
            inferences: at least one.
            at_once: whether all are in flight at the same time; else one after the other.
            timeout: seconds that the caller gives each.

        Raises:
            AdapterHangsError: there is no answer in the time of the inferences and a margin.
            AdapterLostError: it broke too often in a row to be started again.
            AdapterError: it broke in any other way.
        """

    def close(self) -> None:
        """End it, and everything that it has started."""


class AdapterProcess:
    """An adapter that is a program of its own; it is started when it is first needed."""

    def __init__(self, command: Sequence[str], *, patience: float = PATIENCE) -> None:
        """Take the command, which is run without a shell.

        Args:
            command: the program and its arguments.
            patience: seconds that it has to introduce itself.
        """
        self.command = tuple(command)
        self.patience = patience

    @property
    def introduction(self) -> Introduction:
        """What it says of its client; see `Adapter`."""
        raise NotImplementedError

    def infer(
        self, transport: str, address: str, inferences: Sequence[Inference], *, at_once: bool, timeout: float
    ) -> list[Result]:
        """Have the client make inferences; see `Adapter`."""
        raise NotImplementedError

    def close(self) -> None:
        """End it; see `Adapter`."""
        raise NotImplementedError
