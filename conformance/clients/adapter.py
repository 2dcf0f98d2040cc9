"""The adapter of a client under test: a program that receives its tasks (inferences) as JSON lines.

`AdapterProcess` starts the adapter on first use, validates each line that it answers against
`schemas/adapter.schema.json`, limits each wait, and keeps the end of its standard error. Credentials of the command are
masked in everything that the adapter writes. An adapter that breaks is killed together with its child processes, and
the next inference starts it again.
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
from conformance.clients.peer.peer import Peer
from conformance.clients.peer.scenario import ReceivedRequest
from conformance.clients.recording.masking import find_command_secrets
from conformance.transport import credentials

__all__ = ["Adapter", "AdapterError", "AdapterHangsError", "AdapterLostError", "AdapterProcess"]

MAX_INTRODUCTION_S = 10.0  # seconds for the answer to `hello`
MARGIN_S = 5.0  # seconds for the adapter itself, added to the timeouts of its inferences
MAX_SUCCESSIVE_BREAKS = 10  # breaks in a row after which the adapter is not restarted


class Adapter(Protocol):
    """A client that makes inferences on request."""

    @property
    def introduction(self) -> Introduction:
        """The name, version, language and transports of the client library behind this adapter.

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
            AdapterLostError: the adapter broke too often in a row and is not restarted.
            AdapterError: the adapter broke in any other way.
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
        self._secrets = find_command_secrets(command)  # masked in all that the adapter writes
        self._process: LineProcess | None = None
        self._introduction: Introduction | None = None
        self._seq = 0
        self._breaks: list[AdapterError] = []  # in a row

    @property
    def introduction(self) -> Introduction:
        """The description of the client library; see `Adapter`."""
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
        return credentials.hide_bytes(self._process.ask(line, seconds), self._secrets)

    def _end(self, grace: float) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end(grace=grace)

    @contextmanager
    def _handle_breaks(self) -> Iterator[None]:
        """Stop an adapter that breaks within the block, and keep the end of its standard error.

        Raises:
            AdapterLostError: the adapter has already broken too often.
            AdapterError: the adapter broke within the block.
        """
        if len(self._breaks) >= MAX_SUCCESSIVE_BREAKS:
            last = self._breaks[-1]
            raise AdapterLostError(f"the adapter broke {len(self._breaks)} times in a row: {last}", last.stderr)
        try:
            yield
        except BaseException as error:  # also Ctrl-C: the pending answer has no reader any more
            if isinstance(error, AdapterError):
                lines = self._process.tail if self._process else ()
                error.stderr = tuple(credentials.hide(line, self._secrets) for line in lines)
                self._breaks.append(error)
            self._end(0)
            raise


@dataclass(slots=True)
class AdapterCall:
    """One call of `Adapter.infer`: its results, and the requests of the client.

    Attributes:
        at_once: whether the inferences were to be in flight at the same time.
        timeout: seconds for each inference.
        results: None if the adapter broke.
        error: why the adapter broke, or None.
        requests: in order, each with the index of its inference.
        is_together: whether all requests were in flight at once; None if the script did not wait for all of them.
    """

    transport: str
    address: str
    inferences: tuple[Inference, ...]
    at_once: bool
    timeout: float
    results: tuple[Result, ...] | None = None
    error: AdapterError | None = None
    requests: tuple[tuple[int, ReceivedRequest], ...] = ()
    is_together: bool | None = None


@dataclass(slots=True)
class LoggingAdapter:
    """Logs every call and passes it on to an adapter.

    Attributes:
        peer: the peer that answers the requests of the calls.
        asked: the calls so far, in order.
        hung: the error of an adapter that did not answer in time, or None.
    """

    adapter: Adapter
    peer: Peer
    asked: list[AdapterCall] = field(default_factory=list)
    hung: AdapterHangsError | None = None

    @property
    def introduction(self) -> Introduction:
        """The adapter's description of the client library."""
        return self.adapter.introduction

    def infer(
        self, transport: str, address: str, inferences: Sequence[Inference], *, at_once: bool, timeout: float
    ) -> list[Result]:
        """Have the client make inferences; see `Adapter`."""
        call = AdapterCall(transport, address, tuple(inferences), at_once, timeout)
        self.asked.append(call)
        try:
            results = self.adapter.infer(transport, address, inferences, at_once=at_once, timeout=timeout)
        except AdapterError as error:
            call.error = error
            self.hung = error if isinstance(error, AdapterHangsError) else self.hung
            raise
        finally:
            self._log_requests(call)
        call.results = tuple(results)
        return results

    def close(self) -> None:
        """Do nothing: the creator of the adapter closes it."""

    def _log_requests(self, call: AdapterCall) -> None:
        """Log the requests that came until now: later requests say nothing about this call."""
        if (scenario := self.peer.scenario) is not None:
            call.requests = tuple(scenario.end())
            barrier = scenario.script.barrier
            call.is_together = None if barrier is None else barrier.is_met
