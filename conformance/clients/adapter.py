"""The adapter of a client under test: a program that receives its tasks (inferences) as JSON lines.

`AdapterProcess` starts the adapter on first use, validates each line that it answers against
`schemas/adapter.schema.json`, limits each wait, and keeps the end of its standard error. An adapter that breaks is
killed together with its child processes. The next inference starts it again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from conformance.clients import adapter_lines
from conformance.clients.inference import Inference, Introduction, Result
from conformance.clients.line_process import GRACE_S, AdapterError, AdapterHangsError, AdapterLostError, LineProcess

__all__ = ["Adapter", "AdapterError", "AdapterHangsError", "AdapterLostError", "AdapterProcess"]

MAX_INTRODUCTION_S = 10.0  # seconds for the answer to `hello`
MARGIN_S = 5.0  # seconds for the adapter itself, added to the timeouts of its inferences
MAX_SUCCESSIVE_BREAKS = 10  # breaks in a row after which the adapter is not restarted


class Adapter(Protocol):
    """A client that makes inferences on request."""

    @property
    def introduction(self) -> Introduction:
        """The name, version, language and transports of its client.

        Raises:
            AdapterError: the adapter gave no valid answer.
        """

    def infer(
        self, transport: str, address: str, inferences: Sequence[Inference], *, at_once: bool, timeout: float
    ) -> list[Result]:
        """Have the client make inferences; return a result for each, in the same order.

        Args:
            transport: `http` or `grpc`.
            address: `http://HOST:PORT` or `HOST:PORT`.
            inferences: at least one.
            at_once: whether all are in flight at the same time, rather than one after the other.
            timeout: seconds for each inference.

        Raises:
            AdapterHangsError: no answer within the time of the inferences plus a margin.
            AdapterLostError: it broke too often in a row and is not restarted.
            AdapterError: it broke in any other way.
        """

    def close(self) -> None:
        """Stop the adapter and its child processes."""


class AdapterProcess:
    """An adapter that runs as a separate process, started on first use."""

    def __init__(self, command: Sequence[str], *, patience: float = MAX_INTRODUCTION_S) -> None:
        """Store the command, which runs without a shell.

        Args:
            command: the program and its arguments.
            patience: seconds for the answer to `hello`.
        """
        self.command = tuple(command)
        self.patience = patience
        self._process: LineProcess | None = None
        self._introduction: Introduction | None = None
        self._seq = 0
        self._breaks: list[AdapterError] = []  # in a row

    @property
    def introduction(self) -> Introduction:
        """The description of its client; see `Adapter`."""
        if self._introduction is None:
            with self._handle_breaks():
                return self._ensure_started()
        return self._introduction

    def infer(
        self, transport: str, address: str, inferences: Sequence[Inference], *, at_once: bool, timeout: float
    ) -> list[Result]:
        """Have the client make inferences; see `Adapter`."""
        seconds = timeout * (1 if at_once else len(inferences)) + MARGIN_S
        with self._handle_breaks():
            self._ensure_started()
            line = adapter_lines.make_infer(
                self._seq + 1, transport, address, inferences, at_once=at_once, timeout=timeout
            )
            began = time.monotonic()
            answer = self._ask(line, seconds)
            found = adapter_lines.parse_results(answer, self._seq, len(inferences), time.monotonic() - began)
        self._breaks.clear()
        return found

    def close(self) -> None:
        """Stop the adapter; see `Adapter`."""
        self._end(GRACE_S)

    def _ensure_started(self) -> Introduction:
        """Start the adapter and send `hello` unless it runs already; return its introduction."""
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
    def _handle_breaks(self) -> Iterator[None]:
        """Stop an adapter that breaks within the block, and keep the end of its standard error.

        Raises:
            AdapterLostError: it has already broken too often.
            AdapterError: it broke within the block.
        """
        if len(self._breaks) >= MAX_SUCCESSIVE_BREAKS:
            last = self._breaks[-1]
            raise AdapterLostError(f"the adapter broke {len(self._breaks)} times in a row: {last}", last.stderr)
        try:
            yield
        except BaseException as error:  # also Ctrl-C: the pending answer has no reader any more
            if isinstance(error, AdapterError):
                error.stderr = tuple(self._process.tail) if self._process else ()
                self._breaks.append(error)
            self._end(0)
            raise


@dataclass(slots=True)
class AdapterCall:
    """One call of `Adapter.infer` and its results.

    Attributes:
        at_once: whether the inferences were to be in flight at the same time.
        timeout: seconds for each inference.
        results: None if the adapter broke.
    """

    transport: str
    address: str
    inferences: tuple[Inference, ...]
    at_once: bool
    timeout: float
    results: tuple[Result, ...] | None = None


@dataclass(slots=True)
class LoggingAdapter:
    """Logs every call and passes it on to an adapter.

    Attributes:
        asked: the calls so far, in order.
        hung: the error of an adapter that did not answer in time, or None.
    """

    adapter: Adapter
    asked: list[AdapterCall] = field(default_factory=list)
    hung: AdapterHangsError | None = None

    @property
    def introduction(self) -> Introduction:
        """The adapter's description of its client."""
        return self.adapter.introduction

    def infer(
        self, transport: str, address: str, inferences: Sequence[Inference], *, at_once: bool, timeout: float
    ) -> list[Result]:
        """Have the client make inferences; see `Adapter`."""
        call = AdapterCall(transport, address, tuple(inferences), at_once, timeout)
        self.asked.append(call)
        try:
            results = self.adapter.infer(transport, address, inferences, at_once=at_once, timeout=timeout)
        except AdapterHangsError as error:
            self.hung = error
            raise
        call.results = tuple(results)
        return results

    def close(self) -> None:
        """Do nothing: the creator of the adapter closes it."""
