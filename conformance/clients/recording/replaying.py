"""Replays a recording in place of a client: the peer receives the recorded requests, the suite the recorded results.

In `certify` runs, the inferences and scripts of a row depend only on the suite's version and on the client's earlier
requests and results. So the scripts must return the recorded answers again. The replay compares each answer with the
recorded one.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Final

from conformance.clients.answers.script import HttpAnswer
from conformance.clients.inference import Inference, Introduction, Result
from conformance.clients.line_process import AdapterError
from conformance.clients.peer.peer import Peer
from conformance.clients.peer.scenario import ReceivedRequest, Scenario
from conformance.clients.recording.calls import ClientRecording, RecordedCall, RecordedRequest
from conformance.transport.exchange import Exchange
from conformance.transport.har_bodies import Excerpt

_WINDOWS: Final[Mapping[str, int]] = {"gzip": 31, "deflate": 15}
_MAX_DECODED_BYTES: Final = 16 * 1024 * 1024  # of a compressed body


class ReplayPeer(Peer):
    """A peer without ports, for replays: `ReplayAdapter` passes the recorded requests to its scenarios."""

    def get_address(self, transport: str) -> str:
        """Return an empty address: a replay opens no connections."""
        del transport
        return ""


class ReplayAdapter:
    """An adapter that returns recorded results, and passes the recorded requests to the peer.

    Attributes:
        used: (row, index) of each call replayed so far.
        differences: one line for each request that cannot be judged again or whose scripted answer has changed.
    """

    def __init__(self, recording: ClientRecording, peer: ReplayPeer) -> None:
        self.scope = ""
        self.used: set[tuple[str, int]] = set()
        self.differences: list[str] = []
        self._recording = recording
        self._peer = peer
        self._count = 0

    @property
    def introduction(self) -> Introduction:
        """The recorded introduction of the client."""
        return self._recording.client

    def start_row(self, scope: str) -> None:
        """Replay the calls of this row from now on."""
        self.scope, self._count = scope, 0

    def infer(
        self, transport: str, address: str, inferences: Sequence[Inference], *, at_once: bool, timeout: float
    ) -> list[Result]:
        """Pass the recorded requests to the peer, and return the recorded results; see `Adapter`.

        Raises AdapterError: the adapter failed in the recorded run, or the recording lacks this call.
        """
        del transport, address, at_once, timeout
        index, self._count = self._count, self._count + 1
        call, scenario = self._recording.calls.get((self.scope, index)), self._peer.scenario
        if call is None or scenario is None:
            raise AdapterError(f"the recording has no call {index} of {self.scope}")
        self.used.add((self.scope, index))
        self._pass_requests(call, scenario, index)
        if call.error is not None:
            raise call.error
        results = call.results or ()
        if len(results) != len(inferences):
            raise AdapterError(
                f"call {index} of {self.scope} has {len(results)} results for {len(inferences)} inferences"
            )
        return list(results)

    def close(self) -> None:
        """Do nothing: a replay has no process."""

    def _pass_requests(self, call: RecordedCall, scenario: Scenario, index: int) -> None:
        if scenario.script.barrier is not None:
            scenario.script.barrier.release(is_met=call.is_concurrent is True)
        for number, recorded in enumerate(call.requests):
            if difference := self._find_replay_obstacle(recorded, scenario) or _pass_request(recorded, scenario):
                self.differences.append(f"{self.scope}: call {index}, request {number}: {difference}")

    def _find_replay_obstacle(self, recorded: RecordedRequest, scenario: Scenario) -> str | None:
        """Return why a recorded request cannot be judged again, or None."""
        if isinstance(recorded.received.body, Excerpt):
            return "the recording has only a part of the request's body"
        if not 0 <= recorded.inference < len(scenario.inferences):
            return "the recorded call has an inference that the suite does not make"
        return None


def _pass_request(recorded: RecordedRequest, scenario: Scenario) -> str | None:
    """Have the scenario answer a recorded request; return a message if the recorded answer differs, or None."""
    received = recorded.received
    answer = scenario.answer(received, recorded.inference)
    if isinstance(answer, HttpAnswer):
        answer.closed.set()
    made = ReceivedRequest(received, answer, recorded.exchange.url.removesuffix(received.path))
    scenario.store_request(recorded.inference, made)
    return (
        None
        if _is_same_answer(made.to_exchange(), recorded.exchange)
        else "the recorded answer differs from that of the script"
    )


def _is_same_answer(made: Exchange, recorded: Exchange) -> bool:
    """Whether two answers are equal. Compressed bodies are decompressed first: libraries compress differently."""
    bare = [(one.status, one.code, one.details, one.failure) for one in (made, recorded)]
    return bare[0] == bare[1] and _read_content(made, recorded.body) == _read_content(recorded, made.body)


def _read_content(exchange: Exchange, other: bytes) -> tuple[object, ...]:
    """Return the headers and the body of an answer, for a comparison with another answer.

    A compressed body that differs from the body `other` is decompressed, and Content-Length is dropped.
    """
    coding = next((value for name, value in exchange.headers if name.lower() == "content-encoding"), "")
    body = exchange.body.digest if isinstance(exchange.body, Excerpt) else exchange.body
    if coding not in _WINDOWS or other == exchange.body:
        return exchange.headers, body
    rest = tuple(pair for pair in exchange.headers if pair[0].lower() != "content-length")
    try:
        return rest, zlib.decompressobj(_WINDOWS[coding]).decompress(exchange.body, _MAX_DECODED_BYTES)
    except zlib.error:
        return rest, exchange.body
