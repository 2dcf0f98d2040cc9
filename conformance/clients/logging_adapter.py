"""An adapter that notes what was asked of it and what it said, for the one row that is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from conformance.clients.adapter import Adapter, AdapterHangsError
from conformance.clients.inference import Inference, Introduction, Result


@dataclass(slots=True)
class AdapterCall:
    """What was asked of an adapter at once, and what it said; None where it broke.

    Attributes:
        at_once: whether the inferences were to be in flight at the same time.
        timeout: seconds that each of them was given.
    """

    transport: str
    address: str
    inferences: tuple[Inference, ...]
    at_once: bool
    timeout: float
    results: tuple[Result, ...] | None = None


@dataclass(slots=True)
class LoggingAdapter:
    """Passes everything on to an adapter.

    Attributes:
        asked: so far, in order.
        hung: that the adapter did not answer in its time, where it did not.
    """

    adapter: Adapter
    asked: list[AdapterCall] = field(default_factory=list)
    hung: AdapterHangsError | None = None

    @property
    def introduction(self) -> Introduction:
        """What the adapter says of its client."""
        return self.adapter.introduction

    def infer(
        self, transport: str, address: str, inferences: Sequence[Inference], *, at_once: bool, timeout: float
    ) -> list[Result]:
        """Have the client make inferences; see `Adapter`."""
        noted = AdapterCall(transport, address, tuple(inferences), at_once, timeout)
        self.asked.append(noted)
        try:
            results = self.adapter.infer(transport, address, inferences, at_once=at_once, timeout=timeout)
        except AdapterHangsError as error:
            self.hung = error
            raise
        noted.results = tuple(results)
        return results

    def close(self) -> None:
        """Leave the adapter to who has made it."""
