"""The common interface of targets over HTTP and gRPC, for checks that run over both."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from conformance.roles.model import Model
from conformance.transport.broken_request import BrokenRequest
from conformance.transport.exchange import Exchange, Reply
from conformance.wire.request import InferRequest, Message


class AnyTarget(Protocol):
    """One target over one transport: `Target` over HTTP, `GrpcTarget` over gRPC. These classes document the methods.

    Attributes:
        outlives_errors: whether checks send the next request on the same connection after a refusal. True over gRPC.
            False over HTTP, where some servers close the connection without notice; a separate check judges these
            servers.
        through_json: whether received values are approximate, because they were decimal numbers in JSON. False over
            gRPC, where all values are exact. None over HTTP, where only the values of JSON outputs are approximate.
    """

    outlives_errors: bool
    through_json: bool | None

    @property
    def broken_before(self) -> Sequence[BrokenRequest]:
        """The broken requests of discovery over this transport: see `BrokenRequest`."""

    @property
    def is_lost(self) -> bool:
        """Whether the target has become unreachable."""

    @property
    def exchanges(self) -> list[Exchange]:
        """The exchanges of the scope, in order."""

    def model(self, role: str, salt: int = 0) -> Model | None:
        """Return the model that fills a role, or None; for `salt` see `Target.model`."""

    def find_plain_refusal(self, model: Model) -> Reply | None:
        """Return the reply to the last plain request if the model answers none; None if it answers one."""

    def infer(self, request: InferRequest | Message, /) -> Reply:
        """Send an inference request on a kept connection."""

    def send(self, message: Message, *, fresh: bool = False) -> Reply:
        """Send a message; `fresh` opens a new connection."""

    def send_on_one_connection(self, messages: Sequence[Message]) -> list[Reply]:
        """Send messages one after the other on one connection; fewer replies if the server closes it."""

    def send_together(self, messages: Sequence[Message], *, reads_late: bool = False) -> list[Reply]:
        """Send all messages at the same time; replies are in the same order; for `reads_late` see `Target`."""

    def send_after_idling(self, pairs: Sequence[tuple[Message, Message]], idle_s: float) -> list[Reply]:
        """Send the first message of each pair, wait, and send the second messages; return the second replies."""

    def reset_silence(self) -> None:
        """Continue with a target that counts as lost because it was silent; a target that died stays lost."""

    def describe(self, model: Model | None = None, /, *, fresh: bool = False) -> Reply:
        """Request the metadata of a model, or of the server; `Reply.answer.document` has them."""

    def ask_health(self, subject: str, model: Model, /) -> Reply:
        """Ask whether the server is `live` or `ready`, or whether the `model` is ready."""

    def shorten_waits(self) -> AbstractContextManager[None]:
        """Wait shortly for answers in this context if the target has hung; its exchanges say so."""

    def pause(self, seconds: float) -> None:
        """Wait until a busy server may accept requests again."""

    def message(self, request: InferRequest, /) -> Message:
        """Encode an inference request for this transport."""

    def build_good_requests(self, model: Model) -> tuple[InferRequest, ...]:
        """Return valid requests, the simplest first; a server must answer at least one of them."""
