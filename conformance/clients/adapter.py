"""The adapter of a client under test: a program that receives the suite's requests for inferences as JSON lines.

`AdapterProcess` starts the adapter on first use, validates each answer line against `schemas/adapter.schema.json`, and
limits the time for each answer. Error messages include the last lines of standard error. Credentials in the command are
masked in everything that the adapter writes. An adapter that fails is killed together with its child processes, and the
next inference starts the adapter again.
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
    """Makes the client under test send inferences."""

    @property
    def introduction(self) -> Introduction:
        """The name, version, language and transports of the client library behind this adapter.

        Raises AdapterError: the adapter gave no valid answer.
        """

    def infer(
        self, transport: str, address: str, inferences: Sequence[Inference], *, at_once: bool, timeout: float
    ) -> list[Result]:
        """Have the client make inferences; return one result for each, in the same order.

        Args:
            transport: `http` or `grpc`.
            address: of the server: `http://HOST:PORT` over HTTP, `HOST:PORT` over gRPC.
            inferences: at least one.
            at_once: whether to make all inferences concurrently, rather than one after the other.
            timeout: seconds for each inference.

        Raises:
            AdapterHangsError: no answer within the timeouts of the inferences plus a margin.
            AdapterLostError: the adapter failed too often in a row and is not restarted.
            AdapterError: the adapter failed in any other way.
        """

    def close(self) -> None:
        """Stop the adapter and its child processes."""


class AdapterProcess:
    """An adapter that runs as a separate process, started on first use."""

    def __init__(self, command: Sequence[str], *, introduction_timeout: float = MAX_INTRODUCTION_S) -> None:
        """Store the command, which runs without a shell.

        `introduction_timeout`: seconds for the answer to `hello`.
        """
        self.command = tuple(command)
        self.introduction_timeout = introduction_timeout
        self._secrets = find_command_secrets(command)  # masked in all that the adapter writes
        self._process: LineProcess | None = None
        self._introduction: Introduction | None = None
        self._seq = 0
        self._breaks: list[AdapterError] = []  # in a row

    @property
    def introduction(self) -> Introduction:
        """The adapter's description of the client library; see `Adapter`."""
        if self._introduction is None:
            with self._stop_on_error():
                return self._ensure_started()
        return self._introduction

    def infer(
        self, transport: str, address: str, inferences: Sequence[Inference], *, at_once: bool, timeout: float
    ) -> list[Result]:
        """Have the client make inferences; see `Adapter`."""
        seconds = timeout * (1 if at_once else len(inferences)) + MARGIN_S
        with self._stop_on_error():
            self._ensure_started()
            line = adapter_lines.make_infer(
                self._seq + 1, transport, address, inferences, at_once=at_once, timeout=timeout
            )
            began = time.monotonic()
            answer = self._exchange_line(line, seconds)
            found = adapter_lines.parse_results(answer, self._seq, len(inferences), time.monotonic() - began)
        self._breaks.clear()
        return found

    def close(self) -> None:
        """Stop the adapter; see `Adapter`."""
        self._stop_process(GRACE_S)

    def _ensure_started(self) -> Introduction:
        """Start the adapter and send `hello`, unless the adapter runs already; return its introduction."""
        if self._process is None or self._introduction is None:
            self._process, self._seq = LineProcess(self.command), 0
            answer = self._exchange_line(adapter_lines.make_hello(1), self.introduction_timeout)
            self._introduction = adapter_lines.parse_introduction(answer, 1)
        return self._introduction

    def _exchange_line(self, line: bytes, seconds: float) -> bytes:
        if self._process is None:
            raise AdapterError("the adapter is not running")
        self._seq += 1
        return credentials.hide_bytes(self._process.exchange_line(line, seconds), self._secrets)

    def _stop_process(self, grace: float) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.stop(grace=grace)

    @contextmanager
    def _stop_on_error(self) -> Iterator[None]:
        """Stop the adapter if the block fails; add the last lines of standard error to an `AdapterError`.

        Raises:
            AdapterLostError: the adapter has already failed too often.
            AdapterError: the adapter failed within the block.
        """
        if len(self._breaks) >= MAX_SUCCESSIVE_BREAKS:
            last = self._breaks[-1]
            raise AdapterLostError(f"the adapter failed {len(self._breaks)} times in a row: {last}", last.stderr)
        try:
            yield
        except BaseException as error:  # also Ctrl-C: the pending answer has no reader any more
            if isinstance(error, AdapterError):
                lines = self._process.last_error_lines if self._process else ()
                error.stderr = tuple(credentials.hide(line, self._secrets) for line in lines)
                self._breaks.append(error)
            self._stop_process(0)
            raise


@dataclass(slots=True)
class AdapterCall:
    """One call of `Adapter.infer`: arguments, results, and the requests that the client sent.

    Attributes:
        at_once: whether the suite asked for concurrent inferences.
        timeout: seconds for each inference.
        results: one for each inference; None if the adapter failed.
        error: why the adapter failed, or None.
        requests: in order of arrival, each with the index of its inference.
        is_concurrent: whether all requests were in flight at once; None if the script did not wait for all of them.
    """

    transport: str
    address: str
    inferences: tuple[Inference, ...]
    at_once: bool
    timeout: float
    results: tuple[Result, ...] | None = None
    error: AdapterError | None = None
    requests: tuple[tuple[int, ReceivedRequest], ...] = ()
    is_concurrent: bool | None = None


@dataclass(slots=True)
class LoggingAdapter:
    """Forwards every call to another adapter, and logs the call.

    Attributes:
        calls: the calls so far, in order.
        hung: the error of an adapter that did not answer in time, or None.
    """

    adapter: Adapter
    peer: Peer
    calls: list[AdapterCall] = field(default_factory=list)
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
        self.calls.append(call)
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
        """Add the requests received so far to the call; requests that arrive later are not logged."""
        if (scenario := self.peer.scenario) is not None:
            call.requests = tuple(scenario.end())
            barrier = scenario.script.barrier
            call.is_concurrent = None if barrier is None else barrier.is_met
