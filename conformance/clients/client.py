"""A client under judgement as checks see it: asked for inferences, answered by a scripted peer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from conformance.clients.adapter import Adapter, AdapterError, AdapterHangsError
from conformance.clients.answers.script import Script, Tensors
from conformance.clients.inference import Inference, Result
from conformance.clients.peer import Heard, Peer
from conformance.clients.peer.scene import Scene
from conformance.expect.unmet import NotApplicable, Unmet
from conformance.terms.extensions import GRPC
from conformance.terms.text import safe
from conformance.transport.exchange import Reply

TIMEOUT: Final = 10.0  # seconds that a caller gives an inference, where a check gives no other


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of one inference.

    Attributes:
        result: what the client gave its caller.
        heard: its inference requests, with what was answered: none where nothing was sent, several where it tried
            again.
        outputs: the tensors of the answer that the caller asked for: what an honest answer holds.
        timeout: seconds that the caller gave.
    """

    inference: Inference
    result: Result
    heard: tuple[Heard, ...]
    outputs: Tensors
    timeout: float = TIMEOUT


class Client:
    """A client over one transport.

    Attributes:
        heard: every inference request that it made for this object, numbered in their order.
    """

    def __init__(self, adapter: Adapter, peer: Peer, transport: str) -> None:
        self._adapter = adapter
        self._peer = peer
        self.transport = transport
        self.heard: list[Heard] = []

    @property
    def is_over_grpc(self) -> bool:
        """Whether it is judged over gRPC."""
        return self.transport == GRPC

    def infer(self, inference: Inference, script: Script, *, timeout: float = TIMEOUT) -> Seen:
        """Have the client make one inference, which is answered as the script says.

        Raises:
            NotApplicable: the client says that it cannot make it.
            Unmet: it gives neither outputs nor an error.
        """
        return self.infer_all([inference], script, timeout=timeout)[0]

    def infer_all(
        self, inferences: Sequence[Inference], script: Script, *, at_once: bool = False, timeout: float = TIMEOUT
    ) -> list[Seen]:
        """Have the client make inferences of different models, one after the other or all at once.

        Raises:
            NotApplicable: the client says of one that it cannot make it.
            Unmet: it sends its request, and gives neither outputs nor an error.
            AdapterError: the adapter broke in another way.
            ValueError: two inferences are of one model.
        """
        if len({one.model for one in inferences}) < len(inferences):
            raise ValueError("inferences that are made together are of different models")
        scene = self._peer.play(inferences, script)
        address = self._peer.address(self.transport)
        try:
            results = self._adapter.infer(self.transport, address, inferences, at_once=at_once, timeout=timeout)
        except AdapterError as error:
            self._hear(scene)
            if self.heard and isinstance(error, AdapterHangsError):  # the client was at work, and is so still
                reply, within = Reply(self.heard[-1].exchange()), f"outputs or an error within {timeout:g} s"
                raise Unmet(within, f"nothing came: {safe(str(error))}", reply) from None
            raise
        if scene.fault:
            raise scene.fault
        heard = self._hear(scene)
        for result in results:
            if result.cannot:
                raise NotApplicable(f"the client cannot: {safe(result.cannot)}")
        return [
            Seen(
                inference,
                result,
                tuple(one for of, one in heard if of == place),
                script.asked_outputs(inference),
                timeout,
            )
            for place, (inference, result) in enumerate(zip(inferences, results, strict=True))
        ]

    def _hear(self, scene: Scene) -> list[tuple[int, Heard]]:
        """Keep what was heard in a scene, and return it, each with the place of its inference."""
        first = len(self.heard)
        found = [(place, replace(one, number=first + count)) for count, (place, one) in enumerate(scene.heard())]
        self.heard += [one for _, one in found]
        return found
