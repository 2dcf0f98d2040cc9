"""What a target over HTTP and a target over gRPC have in common: enough for checks that run over both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from conformance.roles.model import Model
from conformance.transport.broken_request import BrokenRequest
from conformance.transport.exchange import Exchange, Reply
from conformance.wire.request import InferRequest, Message


class Peer(Protocol):
    """One target over one transport: `Target` over HTTP, `GrpcTarget` over gRPC. The methods are explained there.

    Attributes:
        outlives_errors: whether a connection goes on after a refusal. Over HTTP some servers close it without a word:
            a fresh one is used, and keeping it is a check of its own. Over gRPC a refused call leaves it open.
        through_json: whether values are near, as decimal numbers in JSON are: None leaves that to the form of each
            output, False says that all are exact, as they are over gRPC.
    """

    outlives_errors: bool
    through_json: bool | None

    @property
    def broken_before(self) -> Sequence[BrokenRequest]:
        """What broke over this transport while the target was surveyed."""

    @property
    def is_lost(self) -> bool:
        """Whether no connection can be made any more."""

    @property
    def exchanges(self) -> list[Exchange]:
        """What was sent in the scope, in order."""

    def model(self, role: str, salt: int = 0) -> Model | None:
        """Return the model that fills a role, or None where the target has none."""

    def infer(self, request: InferRequest, /) -> Reply:
        """Send an inference request on a kept connection."""

    def send(self, message: Message, *, fresh: bool = False) -> Reply:
        """Send a message; `fresh` asks for a connection of its own."""

    def send_together(self, messages: Sequence[Message]) -> list[Reply]:
        """Send all messages at the same time; replies are in the same order."""

    def hope(self) -> None:
        """Take a target that fell silent for one that may come back; one that died stays lost."""

    def message(self, request: InferRequest, /) -> Message:
        """Return an inference request as it is sent over this transport."""

    def good_requests(self, model: Model) -> tuple[InferRequest, ...]:
        """Return requests of which a server answers one, the plainest first."""
