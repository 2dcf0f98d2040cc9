"""Limits the time spent on a client that hangs, or that never completes its requests.

The limits are the same as for servers that hang (`transport.wait_budget`). After a few timeouts in a row the client has
to make a simple inference. If this inference times out as well, the client is not used any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from conformance.clients.adapter import AdapterLostError
from conformance.clients.inference import Inference, Result
from conformance.clients.peer.scenario import ReceivedRequest
from conformance.transport.wait_budget import WaitBudget
from conformance.wire.request import Form
from conformance.wire.tensor import Tensor

SIMPLE_FORMS: Final[tuple[Form, ...]] = ("json", "binary")
_EARLY: Final = 0.95  # a client that measures its timeout itself may return early, after this part of the timeout


class Liveness:
    """Counts the timeouts of a client over one transport.

    `timeout`: seconds that each inference has.
    """

    def __init__(self, timeout: float) -> None:
        self._budget = WaitBudget(timeout)
        self._lost = ""

    def count_inferences(self, results: Sequence[Result], requests: Sequence[ReceivedRequest], allowed: float) -> None:
        """Count whether the inferences of one call timed out.

        Counts nothing if the client cannot make one of the inferences, or if the script left a request unanswered or
        closed the connection.

        `results`: the results of the inferences; empty if the adapter hung.
        `allowed`: seconds that the caller allowed for all inferences; if the adapter hung, the margin of the adapter
        is added.
        """
        if any(not one.answer.is_connection_kept for one in requests) or any(result.cannot for result in results):
            return
        if all(result.error is not None and result.elapsed >= _EARLY * allowed for result in results):
            self._budget.count_wait(allowed, is_silent=not requests)
        else:
            self._budget.count_inference()

    def expect_responsive_client(self, can_infer: Callable[[Inference], bool]) -> None:
        """After a few timeouts in a row, test whether the client can still make a simple inference in time.

        `can_infer`: has the client make an inference; returns whether the client can make it.

        Raises AdapterLostError: the simple inference timed out, now or in an earlier call.
        """
        if not self._lost and self._budget.is_probe_due:
            waits = self._budget.waits
            any(can_infer(make_simple_inference(form)) for form in SIMPLE_FORMS)
            if self._budget.waits > waits:
                what = "hangs or sends no complete request" if self._budget.is_silent else "completes no inference"
                self._lost = (
                    f"the client {what}: {waits} inferences timed out after {self._budget.timeout:g} s, "
                    "and so did a simple one"
                )
        if self._lost:
            raise AdapterLostError(self._lost)


def make_simple_inference(form: Form) -> Inference:
    """Return a small INT32 inference in this form; every client can make it in at least one form."""
    return Inference(f"plain_{form}", (Tensor.from_values("IN0", "INT32", [1, 2]),), (form,))
