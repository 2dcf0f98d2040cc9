"""Answers to concurrent inferences, sent in another order than their requests."""

from __future__ import annotations

import time
from threading import Barrier, BrokenBarrierError
from typing import Final

from conformance.clients.answers import honest, honest_calls
from conformance.clients.answers.script import CallAnswer, CallScript, HttpAnswer, HttpScript, Tensors
from conformance.clients.inference import Inference
from conformance.wire.client_request import ClientRequest

MAX_WAIT_S: Final = 0.5  # seconds to hold back the first answers if a client has fewer in flight than requested
_STEP: Final = 0.002  # seconds between two answers


class AnswerBarrier:
    """Holds answers back until all requests have arrived, then sends the answer to the last one first.

    Attributes:
        is_met: whether all requests were in flight at once.
    """

    def __init__(self, count: int, http: HttpScript = honest.USUAL, grpc: CallScript = honest_calls.USUAL) -> None:
        """Create a barrier for `count` requests, which these scripts answer."""
        self._barrier = Barrier(count)
        self._http, self._grpc = http, grpc
        self.is_met = False

    def answer_http(self, received: ClientRequest, inference: Inference, tensors: Tensors) -> HttpAnswer:
        """Wait, then return the HTTP answer; an `HttpScript`."""
        self._wait()
        return self._http(received, inference, tensors)

    def answer_call(self, received: ClientRequest, inference: Inference, tensors: Tensors) -> CallAnswer:
        """Wait, then return the gRPC answer; a `CallScript`."""
        self._wait()
        return self._grpc(received, inference, tensors)

    def _wait(self) -> None:
        try:
            place = self._barrier.wait(MAX_WAIT_S)
        except BrokenBarrierError:
            return
        self.is_met = True
        time.sleep(place * _STEP)
