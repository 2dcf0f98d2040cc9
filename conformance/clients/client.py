"""The client under test, for checks: the client makes inferences, and a scripted peer answers them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from conformance.clients.adapter import MARGIN_S, Adapter, AdapterError, AdapterHangsError
from conformance.clients.answers import honest, honest_calls
from conformance.clients.answers.script import Script, Tensors
from conformance.clients.inference import Inference, Result
from conformance.clients.liveness import Liveness
from conformance.clients.peer.peer import Peer
from conformance.clients.peer.scenario import ReceivedRequest, Scenario
from conformance.expect.unmet import NotApplicableError, UnmetError
from conformance.spec.extensions import GRPC
from conformance.spec.text import escape_text
from conformance.transport.exchange import Reply

TIMEOUT: Final = 10.0  # seconds for an inference, unless a check sets another limit


@dataclass(frozen=True, slots=True)
class Observation:
    """The requests, answers and result of one inference.

    Attributes:
        result: the outputs or the error that the client returned to its caller.
        requests: the requests that the client sent for this inference, with their answers. There are several if the
            client retried, and none if the client sent nothing.
        outputs: the correct values of the outputs that the caller requested.
        timeout: seconds that the caller allowed.
        others: the tensors of the answers to other inferences, earlier or concurrent.
    """

    inference: Inference
    result: Result
    requests: tuple[ReceivedRequest, ...]
    outputs: Tensors
    timeout: float = TIMEOUT
    others: Tensors = ()


class Client:
    """The client under test over one transport, for one row.

    If a previous row failed, the constructor moves the peer to another address, so that the client opens a new
    connection. A row about recovery after errors makes all inferences with one `Client`, at the same address.

    Attributes:
        requests: every inference request that the peer received for this object, numbered in order.
        waited_s: seconds that the inferences of this object took.
    """

    def __init__(self, adapter: Adapter, peer: Peer, transport: str, liveness: Liveness | None = None) -> None:
        self._adapter = adapter
        self._peer = peer
        self._liveness = liveness or Liveness(TIMEOUT)
        self.transport = transport
        self.requests: list[ReceivedRequest] = []
        self.waited_s = 0.0
        peer.move_after_failure(transport)

    @property
    def is_over_grpc(self) -> bool:
        """Whether the client is tested over gRPC."""
        return self.transport == GRPC

    def reconnect(self) -> Client:
        """Return a client for the same row; after a failure, the peer gets a new address."""
        fresh = Client(self._adapter, self._peer, self.transport, self._liveness)
        fresh.requests = self.requests
        return fresh

    def infer(self, inference: Inference, script: Script, *, timeout: float = TIMEOUT) -> Observation:
        """Have the client make one inference; the peer answers according to the script.

        Raises:
            NotApplicableError: the client reports that it cannot make this inference.
            UnmetError: the client returns neither outputs nor an error.
            AdapterError: see `infer_all`.
        """
        return self.infer_all([inference], script, timeout=timeout)[0]

    def infer_all(
        self, inferences: Sequence[Inference], script: Script, *, at_once: bool = False, timeout: float = TIMEOUT
    ) -> list[Observation]:
        """Have the client make inferences of different models, one after the other or all at once.

        If it cannot make one of them, it makes the alternatives, if there are any.

        Raises:
            NotApplicableError: the client reports that it cannot make one of the inferences.
            UnmetError: the client sends a request, and returns neither outputs nor an error.
            AdapterLostError: earlier inferences timed out, and so did a simple inference that tests the client.
            AdapterError: the adapter failed, or reports "cannot" for an inference although the client sent the request.
            ValueError: two inferences use the same model.
        """
        if len({one.model for one in inferences}) < len(inferences):
            raise ValueError("each inference needs a model of its own")
        self._liveness.expect_responsive_client(self._can_infer)
        earlier = self._peer.list_outputs()
        scenario = self._peer.start_scenario(inferences, script)
        results = self._infer_scenario(scenario, at_once=at_once, timeout=timeout)
        requests = self._store_requests(scenario)
        if scenario.fault:
            raise scenario.fault
        if has_failure(results, [one for _, one in requests]):
            self._peer.note_failure(self.transport)
        if reason := next((result.cannot for result in results if result.cannot), ""):
            _reject_false_cannot(results, requests)
            if any(one.unneeded for one in inferences):
                alternatives = [one.make_alternative() for one in inferences]
                return self.infer_all(alternatives, script, at_once=at_once, timeout=timeout)
            raise NotApplicableError(f"the client cannot make this inference: {escape_text(reason)}")
        observations = []
        for place, (inference, result) in enumerate(zip(inferences, results, strict=True)):
            own = tuple(one for index, one in requests if index == place)
            others = (*earlier, *scenario.list_outputs(except_index=place))
            observations.append(
                Observation(inference, result, own, script.list_requested_outputs(inference), timeout, others)
            )
        return observations

    def _can_infer(self, inference: Inference) -> bool:
        """Have the client make an inference at a new peer address; return whether the client can make it."""
        self._peer.note_failure(self.transport)
        self._peer.move_after_failure(self.transport)
        scenario = self._peer.start_scenario(
            [inference], Script(lambda one: one.inputs, honest.USUAL, honest_calls.USUAL)
        )
        try:
            return not any(
                result.cannot for result in self._infer_and_count_timeouts(scenario, at_once=False, timeout=TIMEOUT)
            )
        except AdapterHangsError:
            return True

    def _infer_and_count_timeouts(self, scenario: Scenario, *, at_once: bool, timeout: float) -> list[Result]:
        """Have the client make the inferences of a scenario, and count whether they timed out."""
        address = self._peer.get_address(self.transport)
        allowed = timeout * (1 if at_once else len(scenario.inferences))
        try:
            results = self._adapter.infer(
                self.transport, address, scenario.inferences, at_once=at_once, timeout=timeout
            )
        except AdapterHangsError:
            self.waited_s += allowed
            self._liveness.count_inferences([], [one for _, one in scenario.list_requests()], allowed + MARGIN_S)
            raise
        self.waited_s += max(result.elapsed for result in results)
        self._liveness.count_inferences(results, [one for _, one in scenario.list_requests()], allowed)
        return results

    def _infer_scenario(self, scenario: Scenario, *, at_once: bool, timeout: float) -> list[Result]:
        """Have the client make the inferences of a scenario; note a failure if the adapter fails."""
        try:
            return self._infer_and_count_timeouts(scenario, at_once=at_once, timeout=timeout)
        except AdapterError as error:
            self._store_requests(scenario)
            self._peer.note_failure(self.transport)
            if self.requests and isinstance(error, AdapterHangsError):  # the client has sent a request and hangs
                reply, within = Reply(self.requests[-1].to_exchange()), f"outputs or an error within {timeout:g} s"
                raise UnmetError(within, f"nothing came: {escape_text(str(error))}", reply) from None
            raise

    def _store_requests(self, scenario: Scenario) -> list[tuple[int, ReceivedRequest]]:
        """Number the requests of a scenario and add them to `requests`; return each with the index of its inference."""
        first_number = len(self.requests)
        requests = [
            (place, replace(one, number=first_number + count))
            for count, (place, one) in enumerate(scenario.list_requests())
        ]
        self.requests += [one for _, one in requests]
        return requests


def _reject_false_cannot(results: Sequence[Result], requests: Sequence[tuple[int, ReceivedRequest]]) -> None:
    """Check that no inference with the result "cannot" caused a request.

    Raises AdapterError: the adapter reports "cannot" for an inference whose request the peer received.
    """
    if any(results[place].cannot for place, _ in requests):
        raise AdapterError('the adapter answers "cannot" for an inference whose request the client sent')


def has_failure(results: Sequence[Result], requests: Sequence[ReceivedRequest]) -> bool:
    """Whether an inference ended with an error or without an open connection, which may affect later inferences."""
    return any(result.error is not None for result in results) or any(
        not one.answer.is_connection_kept for one in requests
    )
