"""The common interface of targets over HTTP and gRPC, for checks that run over both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from conformance.roles.model import Model
from conformance.transport.broken_request import BrokenRequest
from conformance.transport.exchange import Exchange, Reply
from conformance.wire.request import InferRequest, Message


class Peer(Protocol):
    """One target over one transport: `Target` over HTTP, `GrpcTarget` over gRPC, which document the methods.

    Attributes:
        outlives_errors: whether a connection stays open after a refusal. Over HTTP some servers close it without
            notice, so a new one is used, and a separate check covers keeping it. Over gRPC it stays open.
        through_json: whether values are approximate, as decimal numbers in JSON are. None: it depends on the form of
            each output. False: all values are exact, as over gRPC.
    """

    outlives_errors: bool
    through_json: bool | None

    @property
    def broken_before(self) -> Sequence[BrokenRequest]:
        """The requests that broke over this transport during discovery."""

    @property
    def is_lost(self) -> bool:
        """Whether the target has become unreachable."""

    @property
    def exchanges(self) -> list[Exchange]:
        """The exchanges of the scope, in order."""

    def model(self, role: str, salt: int = 0) -> Model | None:
        """Return the model that fills a role, or None where the target has none."""

    def infer(self, request: InferRequest, /) -> Reply:
        """Send an inference request on a kept connection."""

    def send(self, message: Message, *, fresh: bool = False) -> Reply:
        """Send a message; `fresh` opens a new connection."""

    def send_together(self, messages: Sequence[Message]) -> list[Reply]:
        """Send all messages at the same time; replies are in the same order."""

    def send_after_idling(self, pairs: Sequence[tuple[Message, Message]], idle_s: float) -> list[Reply]:
        """Send the first messages of all pairs, wait, and send the second ones; return the replies to these."""

    def reset_silence(self) -> None:
        """Give a target that fell silent another chance; a target that died stays lost."""

    def message(self, request: InferRequest, /) -> Message:
        """Encode an inference request for this transport."""

    def build_good_requests(self, model: Model) -> tuple[InferRequest, ...]:
        """Return valid requests, the simplest first; a server must answer at least one of them."""
