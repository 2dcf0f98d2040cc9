"""The target over gRPC, as checks use it: inference requests are encoded as gRPC messages."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from conformance.roles.model import Model
from conformance.spec.extensions import GRPC
from conformance.transport.broken_request import BrokenRequest
from conformance.transport.exchange import Exchange, Reply
from conformance.transport.target import Target
from conformance.wire.grpc_request import Edit, make_grpc_call, make_infer_message
from conformance.wire.request import InferRequest, Message


class GrpcTarget:
    """One target over gRPC.

    `over_http`: the `Target` that makes the calls, even if only gRPC is judged.
    """

    outlives_errors = True
    through_json: bool | None = False

    def __init__(self, over_http: Target) -> None:
        self.over_http = over_http

    @property
    def broken_before(self) -> list[BrokenRequest]:
        """The broken requests of discovery over gRPC: see `BrokenRequest`."""
        return [one for one in self.over_http.broken_in_discovery if one.reply.is_over_grpc]

    @property
    def is_lost(self) -> bool:
        """Whether the target has become unreachable."""
        return self.over_http.is_lost

    @property
    def exchanges(self) -> list[Exchange]:
        """The exchanges of the scope, in order."""
        return self.over_http.exchanges

    def model(self, role: str, salt: int = 0) -> Model | None:
        """Return the model that fills a role, or None; for `salt` see `Target.model`."""
        return self.over_http.model(role, salt)

    def find_plain_refusal(self, model: Model) -> Reply | None:
        """Return the reply to the last plain call if the model answers none; see `Target.find_plain_refusal`."""
        return self.over_http.find_plain_refusal(model, GRPC)

    def infer(self, request: InferRequest | Message, /, edit: Edit | None = None) -> Reply:
        """Send an inference request on a kept connection; `edit` changes the protobuf message before serialization."""
        return self.send(request if isinstance(request, Message) else make_infer_message(request, edit))

    def call(self, method: str, **fields: Any) -> Reply:
        """Call a method with the fields of its request."""
        return self.send(make_grpc_call(method, **fields))

    def send(self, message: Message, *, fresh: bool = False) -> Reply:
        """Send a call; `fresh` opens a new connection."""
        return self.over_http.send(message, fresh=fresh)

    def cancel(self, message: Message, *, fresh: bool = False) -> None:
        """Start a call and cancel it at once; the connection stays open for the next call."""
        self.over_http.cancel(message, fresh=fresh)

    def send_after_idling(self, pairs: Sequence[tuple[Message, Message]], idle_s: float) -> list[Reply]:
        """Make the first call of each pair, wait, and make the second calls; return the second replies.

        All calls share one connection.
        """
        return self.over_http.send_after_idling(pairs, idle_s)

    def send_on_one_connection(self, messages: Sequence[Message]) -> list[Reply]:
        """Send calls one after the other, on the kept connection."""
        return [self.send(message) for message in messages]

    def send_together(self, messages: Sequence[Message], *, reads_late: bool = False) -> list[Reply]:
        """Make all calls at the same time, on one connection; replies are in the same order."""
        return self.over_http.send_together(messages, reads_late=reads_late)

    def reset_silence(self) -> None:
        """Continue with a target that counts as lost because it was silent: see `TargetClient.reset_silence`."""
        self.over_http.reset_silence()

    def describe(self, model: Model | None = None, /, *, fresh: bool = False) -> Reply:
        """Request the metadata of a model, or of the server."""
        if model is None:
            return self.send(make_grpc_call("ServerMetadata"), fresh=fresh)
        return self.send(make_grpc_call("ModelMetadata", name=model.name, version=model.version), fresh=fresh)

    def ask_health(self, subject: str, model: Model, /) -> Reply:
        """Ask whether the server is `live` or `ready`, or whether the `model` is ready."""
        if subject == "model":
            return self.call("ModelReady", name=model.name, version=model.version)
        return self.call(f"Server{subject.capitalize()}")

    def shorten_waits(self) -> AbstractContextManager[None]:
        """Wait shortly for answers in this context if the target has hung; its exchanges say so."""
        return self.over_http.shorten_waits()

    def pause(self, seconds: float) -> None:
        """Wait until a busy server may accept requests again."""
        self.over_http.pause(seconds)

    def message(self, request: InferRequest, /) -> Message:
        """Encode an inference request for this transport."""
        return make_infer_message(request)

    def build_good_requests(self, model: Model) -> tuple[InferRequest, ...]:
        """Return valid requests, of which a server must answer at least one.

        The first has typed contents, if the datatypes allow typed contents; the last has raw contents.
        """
        typed = (model.request(send="json"),) if model.is_json_capable else ()
        return (*typed, model.request(send="binary"))
