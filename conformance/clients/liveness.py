"""Limits the time spent on a client that hangs, or whose requests never become whole.

The limits are those for servers (`transport.wait_budget`): after a few waits in a row the client is to make a plain
inference, and if that is a wait as well, the client is lost.
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

PLAIN_FORMS: Final[tuple[Form, ...]] = ("json", "binary")
_EARLY: Final = 0.95  # a client whose own clock ends a wait may be early by this factor


class Liveness:
    """Counts the waits of a client over one transport.

    Args:
        timeout: seconds that each inference has.
    """

    def __init__(self, timeout: float) -> None:
        self._budget = WaitBudget(timeout)
        self._lost = ""

    def count(self, results: Sequence[Result], requests: Sequence[ReceivedRequest], allowed: float) -> None:
        """Count inferences that the client made together.

        Args:
            results: empty if the adapter hung. If the client cannot make one of the inferences, nothing is counted.
            requests: of the inferences. If a script left one of them unanswered, or closed its connection, nothing is
                counted.
            allowed: seconds that the caller allowed for all inferences together; for an adapter that hung, all that it
                had.
        """
        if any(not one.answer.is_kept for one in requests) or any(result.cannot for result in results):
            return
        if all(result.error is not None and result.elapsed >= _EARLY * allowed for result in results):
            self._budget.count_wait(allowed, is_silent=not requests)
        else:
            self._budget.count_inference()

    def expect_life(self, infer_plainly: Callable[[Inference], bool]) -> None:
        """Have the client make a plain inference after a few waits in a row.

        Args:
            infer_plainly: makes an inference; returns whether the client can make it.

        Raises:
            AdapterLostError: the plain inference was a wait as well, now or earlier.
        """
        if not self._lost and self._budget.is_probe_due:
            waits = self._budget.waits
            any(infer_plainly(make_plain_inference(form)) for form in PLAIN_FORMS)
            if self._budget.waits > waits:
                what = "hangs or sends no whole request" if self._budget.is_silent else "ends no inference"
                self._lost = (
                    f"the client {what}: {waits} inferences took their whole time of {self._budget.timeout:g} s, "
                    "and so did a plain one"
                )
        if self._lost:
            raise AdapterLostError(self._lost)


def make_plain_inference(form: Form) -> Inference:
    """Return an inference that any client can make in one of the forms."""
    return Inference(f"plain_{form}", (Tensor.from_values("IN0", "INT32", [1, 2]),), (form,))
