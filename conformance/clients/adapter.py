"""The adapter of a client under judgement: a program that is told, in JSON lines, which inferences to make.

`AdapterProcess` starts it when it is first needed, holds every line of its answers against
`schemas/adapter.schema.json`, waits for none longer than it says, and keeps what it writes to standard error. One that
breaks is ended with everything that it has started, and started anew for the next inference.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from conformance.clients import adapter_lines
from conformance.clients.inference import Inference, Introduction, Result
from conformance.clients.line_process import GRACE, AdapterError, AdapterHangsError, AdapterLostError, LineProcess

__all__ = ["Adapter", "AdapterError", "AdapterHangsError", "AdapterLostError", "AdapterProcess"]

MAX_INTRODUCTION_S = 10.0  # seconds for an adapter to introduce itself
MARGIN = 5.0  # seconds that an adapter has for itself, beside those of its inferences
MAX_SUCCESSIVE_BREAKS = 10  # times that an adapter breaks before it is not started again


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

    def __init__(self, command: Sequence[str], *, patience: float = MAX_INTRODUCTION_S) -> None:
        """Take the command, which is run without a shell.

        Args:
            command: the program and its arguments.
            patience: seconds that it has to introduce itself.
        """
        self.command = tuple(command)
        self.patience = patience
        self._process: LineProcess | None = None
        self._introduction: Introduction | None = None
        self._seq = 0
        self._breaks: list[AdapterError] = []  # in a row

    @property
    def introduction(self) -> Introduction:
        """What it says of its client; see `Adapter`."""
        if self._introduction is None:
            with self._noting_breaks():
                return self._started()
        return self._introduction

    def infer(
        self, transport: str, address: str, inferences: Sequence[Inference], *, at_once: bool, timeout: float
    ) -> list[Result]:
        """Have the client make inferences; see `Adapter`."""
        seconds = timeout * (1 if at_once else len(inferences)) + MARGIN
        with self._noting_breaks():
            self._started()
            line = adapter_lines.make_infer(
                self._seq + 1, transport, address, inferences, at_once=at_once, timeout=timeout
            )
            began = time.monotonic()
            answer = self._ask(line, seconds)
            found = adapter_lines.parse_results(answer, self._seq, len(inferences), time.monotonic() - began)
        self._breaks.clear()
        return found

    def close(self) -> None:
        """End it; see `Adapter`."""
        self._end(GRACE)

    def _started(self) -> Introduction:
        """Start it where it does not run, and have it introduce itself."""
        if self._process is None or self._introduction is None:
            self._process, self._seq = LineProcess(self.command), 0
            answer = self._ask(adapter_lines.make_hello(1), self.patience)
            self._introduction = adapter_lines.parse_introduction(answer, 1)
        return self._introduction

    def _ask(self, line: bytes, seconds: float) -> bytes:
        if self._process is None:
            raise AdapterError("the adapter does not run")
        self._seq += 1
        return self._process.ask(line, seconds)

    def _end(self, grace: float) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end(grace=grace)

    @contextmanager
    def _noting_breaks(self) -> Iterator[None]:
        """End the adapter where it breaks, and keep what it wrote to standard error.

        Raises:
            AdapterLostError: it has broken too often.
            AdapterError: it breaks.
        """
        if len(self._breaks) >= MAX_SUCCESSIVE_BREAKS:
            last = self._breaks[-1]
            raise AdapterLostError(f"the adapter broke {len(self._breaks)} times in a row: {last}", last.stderr)
        try:
            yield
        except BaseException as error:  # after Ctrl-C, too, an answer is on its way that nobody waits for
            if isinstance(error, AdapterError):
                error.stderr = tuple(self._process.tail) if self._process else ()
                self._breaks.append(error)
            self._end(0)
            raise


@dataclass(slots=True)
class AdapterCall:
    """What was asked of an adapter at once, and what it said; None where it broke.

    Attributes:
        at_once: whether the inferences were to be in flight at the same time.
        timeout: seconds that each of them was given.
    """

    transport: str
    address: str
    inferences: tuple[Inference, ...]
    at_once: bool
    timeout: float
    results: tuple[Result, ...] | None = None


@dataclass(slots=True)
class LoggingAdapter:
    """Passes everything on to an adapter.

    Attributes:
        asked: so far, in order.
        hung: that the adapter did not answer in its time, where it did not.
    """

    adapter: Adapter
    asked: list[AdapterCall] = field(default_factory=list)
    hung: AdapterHangsError | None = None

    @property
    def introduction(self) -> Introduction:
        """What the adapter says of its client."""
        return self.adapter.introduction

    def infer(
        self, transport: str, address: str, inferences: Sequence[Inference], *, at_once: bool, timeout: float
    ) -> list[Result]:
        """Have the client make inferences; see `Adapter`."""
        noted = AdapterCall(transport, address, tuple(inferences), at_once, timeout)
        self.asked.append(noted)
        try:
            results = self.adapter.infer(transport, address, inferences, at_once=at_once, timeout=timeout)
        except AdapterHangsError as error:
            self.hung = error
            raise
        noted.results = tuple(results)
        return results

    def close(self) -> None:
        """Leave the adapter to who has made it."""
