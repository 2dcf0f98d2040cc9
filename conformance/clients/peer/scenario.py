"""Which inference a request is for, how it is answered, and what was heard of it: what both peers share."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from conformance.clients.answers.script import CallAnswer, HttpAnswer, Script, Tensors
from conformance.clients.inference import Inference
from conformance.clients.peer.received_request import ReceivedRequest
from conformance.wire.client_request import ClientRequest


class ScriptFault(Exception):  # noqa: N818 - a fault of ours, not an error of a peer's
    """A script failed."""


class Scenario:
    """The inferences that are asked of a client together, and what the peer heard of them.

    Attributes:
        inferences: of different models, so that a request can be told by its model's name.
        fault: what made a script fail, or None.
    """

    def __init__(self, inferences: Sequence[Inference], script: Script) -> None:
        self.inferences = tuple(inferences)
        self.script = script
        self.fault: Exception | None = None
        self._heard: list[tuple[int, ReceivedRequest]] = []
        self._taken: set[int] = set()
        self._lock = threading.Lock()

    def place_of(self, model: str | None) -> int:
        """Return which inference a request to this model is for: where no model has the name, the first unheard one."""
        with self._lock:
            names = [one.model for one in self.inferences]
            unheard = (place for place in range(len(names)) if place not in self._taken)
            place = names.index(model) if model in names else next(unheard, len(names) - 1)
            self._taken.add(place)
            return place

    def answer(self, received: ClientRequest, place: int) -> HttpAnswer | CallAnswer:
        """Return what the script says of a request.

        Raises:
            ScriptFault: the script failed, which is a fault of the suite's own.
        """
        inference = self.inferences[place]
        made = self.script.grpc if received.is_over_grpc else self.script.http
        try:
            return made(received, inference, self.script.asked_outputs(inference))
        except Exception as error:
            self.fault = error
            raise ScriptFault(str(error)) from error

    def outputs(self, beside: int | None = None) -> Tensors:
        """Return the tensors of its answers, but for those to one inference."""
        asked = [one for place, one in enumerate(self.inferences) if place != beside]
        return tuple(tensor for one in asked for tensor in self.script.outputs(one))

    def keep(self, place: int, heard: ReceivedRequest) -> None:
        """Keep what was heard, before it is answered."""
        with self._lock:
            self._heard.append((place, heard))

    def heard(self) -> list[tuple[int, ReceivedRequest]]:
        """Return what was heard so far, each with the place of its inference, in the order in which it came."""
        with self._lock:
            return list(self._heard)


class PeerScript:
    """What the peers play now. A request to a model of an earlier scene belongs to that scene."""

    def __init__(self) -> None:
        self._by_model: dict[str, Scenario] = {}
        self._now: Scenario | None = None
        self._outputs: Tensors = ()

    def play(self, inferences: Sequence[Inference], script: Script) -> Scenario:
        """Begin a scene."""
        scene = Scenario(inferences, script)
        self._by_model.update({one.model: scene for one in inferences})
        self._now = scene
        self._outputs = scene.outputs() or self._outputs
        return scene

    def outputs(self) -> Tensors:
        """Return the tensors of the last scene that had any."""
        return self._outputs

    def scene_of(self, model: str | None) -> Scenario | None:
        """Return the scene that a request to this model belongs to; None before the first."""
        return self._by_model.get(model, self._now) if model is not None else self._now

    def count_of(self, model: str) -> int:
        """Return how many inferences of a model there were."""
        scene = self._by_model.get(model)
        return 0 if scene is None else len(scene.heard())

    def inference_of(self, model: str) -> tuple[Inference, Script] | None:
        """Return the inference that is asked of a model, and how it is answered; None where none is."""
        scene = self._by_model.get(model)
        if scene is None:
            return None
        return next(one for one in scene.inferences if one.model == model), scene.script
