"""A client under judgement as checks see it: asked for inferences, answered by a scripted peer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from conformance.clients.adapter import Adapter, AdapterError, AdapterHangsError
from conformance.clients.answers.script import Script, Tensors
from conformance.clients.inference import Inference, Result
from conformance.clients.peer.peer import Peer
from conformance.clients.peer.scenario import ReceivedRequest, Scenario
from conformance.expect.unmet import NotApplicableError, UnmetError
from conformance.spec.extensions import GRPC
from conformance.spec.text import escape_text
from conformance.transport.exchange import Reply

TIMEOUT: Final = 10.0  # seconds that a caller gives an inference, where a check gives no other


@dataclass(frozen=True, slots=True)
class Observation:
    """What was seen of one inference.

    Attributes:
        result: what the client gave its caller.
        heard: its inference requests, with what was answered: none where nothing was sent, several where it tried
            again.
        outputs: the tensors of the answer that the caller asked for: what an honest answer holds.
        timeout: seconds that the caller gave.
        others: the tensors of other answers, those before it and those that were asked for with it.
    """

    inference: Inference
    result: Result
    heard: tuple[ReceivedRequest, ...]
    outputs: Tensors
    timeout: float = TIMEOUT
    others: Tensors = ()


class Client:
    """A client over one transport, for one row.

    Where something went wrong in the row before, the peer has another address for this one, so that the client begins
    anew there: whether it goes on after errors is for the rows about that, which ask one `Client` twice.

    Attributes:
        heard: every inference request that it made for this object, numbered in their order.
    """

    def __init__(self, adapter: Adapter, peer: Peer, transport: str) -> None:
        self._adapter = adapter
        self._peer = peer
        self.transport = transport
        self.heard: list[ReceivedRequest] = []
        peer.refresh(transport)

    @property
    def is_over_grpc(self) -> bool:
        """Whether it is judged over gRPC."""
        return self.transport == GRPC

    def anew(self) -> Client:
        """Return the same client for the same row, beginning anew where something went wrong."""
        fresh = Client(self._adapter, self._peer, self.transport)
        fresh.heard = self.heard
        return fresh

    def infer(self, inference: Inference, script: Script, *, timeout: float = TIMEOUT) -> Observation:
        """Have the client make one inference, which is answered as the script says.

        Raises:
            NotApplicable: the client says that it cannot make it.
            Unmet: it gives neither outputs nor an error.
        """
        return self.infer_all([inference], script, timeout=timeout)[0]

    def infer_all(
        self, inferences: Sequence[Inference], script: Script, *, at_once: bool = False, timeout: float = TIMEOUT
    ) -> list[Observation]:
        """Have the client make inferences of different models, one after the other or all at once.

        Raises:
            NotApplicable: the client says of one that it cannot make it.
            Unmet: it sends its request, and gives neither outputs nor an error.
            AdapterError: the adapter broke in another way, or says that it cannot do what its client has tried.
            ValueError: two inferences are of one model.
        """
        if len({one.model for one in inferences}) < len(inferences):
            raise ValueError("inferences that are made together are of different models")
        earlier = self._peer.outputs()
        scene = self._peer.play(inferences, script)
        results = self._asked(scene, at_once=at_once, timeout=timeout)
        heard = self._keep(scene)
        if scene.fault:
            raise scene.fault
        if has_failure(results, [one for _, one in heard]):
            self._peer.disturb(self.transport)
        if reason := next((result.cannot for result in results if result.cannot), ""):
            _refuse_what_was_tried(results, heard)
            raise NotApplicableError(f"the client cannot: {escape_text(reason)}")
        seen = []
        for place, (inference, result) in enumerate(zip(inferences, results, strict=True)):
            own = tuple(one for of, one in heard if of == place)
            others = (*earlier, *scene.outputs(beside=place))
            seen.append(Observation(inference, result, own, script.asked_outputs(inference), timeout, others))
        return seen

    def _asked(self, scene: Scenario, *, at_once: bool, timeout: float) -> list[Result]:
        """Return what the client gives its caller for each inference of a scene."""
        address = self._peer.address(self.transport)
        try:
            return self._adapter.infer(self.transport, address, scene.inferences, at_once=at_once, timeout=timeout)
        except AdapterError as error:
            self._keep(scene)
            self._peer.disturb(self.transport)
            if self.heard and isinstance(error, AdapterHangsError):  # the client was at work, and is so still
                reply, within = Reply(self.heard[-1].exchange()), f"outputs or an error within {timeout:g} s"
                raise UnmetError(within, f"nothing came: {escape_text(str(error))}", reply) from None
            raise

    def _keep(self, scene: Scenario) -> list[tuple[int, ReceivedRequest]]:
        """Return what was heard, each with the place of its inference, numbered and kept."""
        begun = len(self.heard)
        heard = [(place, replace(one, number=begun + count)) for count, (place, one) in enumerate(scene.heard())]
        self.heard += [one for _, one in heard]
        return heard


def _refuse_what_was_tried(results: Sequence[Result], heard: Sequence[tuple[int, ReceivedRequest]]) -> None:
    """Take no "cannot" for an inference whose request came: it was tried, and what came of it is what counts.

    Raises:
        AdapterError: the adapter says so nevertheless.
    """
    if any(results[place].cannot for place, _ in heard):
        raise AdapterError('the adapter says "cannot" of an inference whose request has come')


def has_failure(results: Sequence[Result], heard: Sequence[ReceivedRequest]) -> bool:
    """Whether inferences may have left something behind in the client: an error, or a connection that ended."""
    return any(result.error is not None for result in results) or any(not one.answer.is_kept for one in heard)
