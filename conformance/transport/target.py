"""The target as checks see it: send a request in one of several manners, get a reply; every exchange is recorded.

What is sent together is one `Call`. It knows where in the run it belongs, so that a recording of all calls can stand in
for the target later (`replay`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from conformance.roles.model import Model
from conformance.roles.placement import Placement
from conformance.roles.roles import load as load_roles
from conformance.terms.extensions import GRPC, HTTP
from conformance.transport import sockets
from conformance.transport.exchange import Exchange, FailureKind, Reply
from conformance.transport.grpc_client import GrpcClient
from conformance.transport.http_client import HttpClient
from conformance.transport.settings import Settings
from conformance.transport.unreachable import TargetLost, Unreachable
from conformance.wire.grpc_request import GRPC_METHOD, grpc_call, infer_message
from conformance.wire.request import InferRequest, Message

T = TypeVar("T")

# How long a server that takes no connection may need to come back: one that a supervisor starts anew is not lost.
RESTART_PATIENCE = 5.0
TRUST_HINT = "; --target-ca FILE says whom to trust"
# How a gateway says that it cannot reach the server behind it (RFC 9110, 15.6.3 to 15.6.5).
UNREACHED = (502, 503, 504)


@dataclass(frozen=True, slots=True)
class Call:
    """Messages that were sent together, and what came of them.

    Attributes:
        scope: what they were sent for, as given to `Target.scope`.
        index: the place of the call in its scope.
        exchanges: as many as were answered, failed or broke; fewer than messages where a connection was closed.
        lost: why the target could not be reached, or None.
    """

    scope: str
    index: int
    messages: tuple[Message, ...]
    exchanges: tuple[Exchange, ...] = ()
    lost: str | None = None


class Target:
    """One server under judgement.

    Attributes:
        roles: role -> name of the model that fills it on this target.
        placements: role -> version and tensor names of that model, where they are not those of the role.
        exchanges: what was sent in the scope, in order.
        lost: why no connection can be made any more, or None.
        journal: keeps every call, where there is one.
    """

    outlives_errors = False
    through_json: bool | None = None

    def __init__(self, settings: Settings, roles: dict[str, str] | None = None) -> None:
        self.settings = settings
        self.roles = roles or {}
        self.placements: Mapping[str, Placement] = {}
        self.exchanges: list[Exchange] = []
        self.lost: str | None = None
        self.journal: Callable[[Call], None] | None = None
        self._scope, self._calls = "", 0
        self._plain_refusals: dict[tuple[str, str], str | None] = {}

    @cached_property
    def _http(self) -> HttpClient:
        return HttpClient(self.settings)

    @cached_property
    def _grpc(self) -> GrpcClient:
        return GrpcClient(self.settings)

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Keep a record of exchanges of its own: for a row of a check, say, or for the survey.

        What is sent inside is numbered from 0 and recorded under this name; afterwards the record before goes on.
        """
        before = self.exchanges, self._scope, self._calls
        self.exchanges, self._scope, self._calls = [], name, 0
        try:
            yield
        finally:
            self.exchanges, self._scope, self._calls = before

    def close(self) -> None:
        """Close every connection."""
        for one in ("_http", "_grpc"):
            if one in vars(self):
                vars(self)[one].close()

    def model(self, role: str, salt: int = 0) -> Model | None:
        """Return the model that fills a role, or None where the target has none."""
        name = self.roles.get(role)
        if name is None:
            return None
        placement = self.placements.get(role, Placement(name))
        return Model(load_roles()[role], name, salt, placement.version, placement.names)

    def plain_refusal(self, model: Model, transport: str = HTTP) -> str | None:
        """Say why the model answers no plain request over a transport, or None; asked once a role.

        A plain request is sent, as JSON and then as binary data (over gRPC in typed and then in raw contents): when the
        server answers neither, what a check would find says nothing about its requirement.
        """
        asked = model.role.name, transport
        if asked not in self._plain_refusals:
            with self.scope(f"role {model.role.name}" + (" over gRPC" if transport == GRPC else "")):
                self._plain_refusals[asked] = self._refusal(replace(model, salt=0), transport)
        return self._plain_refusals[asked]

    def _refusal(self, model: Model, transport: str) -> str | None:
        reply: Reply | None = None
        for send in ("json", "binary") if model.role.is_json_capable else ("binary",):
            request = model.request(send=send, want=None if send == "json" else "binary")
            message = infer_message(request) if transport == GRPC else request.message()
            reply = self.send(message, fresh=True)
            if reply.succeeded:
                return None
        return reply.outcome() if reply else None

    # --- manners of sending ---

    def infer(self, request: InferRequest | Message, /) -> Reply:
        """Send an inference request on a kept connection."""
        return self.send(request.message() if isinstance(request, InferRequest) else request)

    def message(self, request: InferRequest, /) -> Message:
        """Return an inference request as it is sent over this transport."""
        return request.message()

    def good_requests(self, model: Model) -> tuple[InferRequest, ...]:
        """Return requests of which a server answers one: JSON, where it can be had, then binary data both ways."""
        return model.request(send="json" if model.role.is_json_capable else "binary"), model.request(want="binary")

    def get(self, path: str) -> Reply:
        """Get a path below the base URL."""
        return self.send(Message(path, method="GET"))

    def send(self, message: Message, *, fresh: bool = False) -> Reply:
        """Send a message, over HTTP or gRPC; `fresh` asks for a connection of its own."""
        return self._call([message], lambda: [self._patiently(lambda: self._send(message, fresh=fresh))])[0]

    def _send(self, message: Message, *, fresh: bool = False) -> Exchange:
        client = self._grpc if message.method == GRPC_METHOD else self._http
        return client.send(message, fresh=fresh)

    def send_in_pieces(self, message: Message, places: Sequence[int], *, chunked: bool = False) -> Reply:
        """Send the body in TCP segments, or in chunks, cut at the given offsets; the head goes out in one write."""
        pieces = sockets.cut(message.body, places)
        note = f"body in {len(pieces)} {'chunks' if chunked else 'TCP segments'}, cut at {list(places)}"
        if chunked:
            pieces = [*map(sockets.chunk, pieces), b"0\r\n\r\n"]
        head = sockets.render_head(self.settings, message, chunked=chunked)

        def exchange() -> Exchange:
            with sockets.connect(self.settings) as connection:
                broken = connection.send([head, *pieces])
                answer = connection.receive(message)
            return replace(answer, failure=answer.failure if answer.status else broken or answer.failure, note=note)

        return self._call([message], lambda: [self._patiently(exchange)])[0]

    def send_on_one_connection(self, messages: Sequence[Message], *, pipelined: bool = False) -> list[Reply]:
        """Send messages on one connection, each after the answer to the one before, or all at once.

        A server that closes the connection ends the list early.
        """
        heads = [sockets.render_head(self.settings, message) + message.body for message in messages]
        note = f"{'pipelined' if pipelined else 'one after the other'} on one connection"

        def exchanges() -> list[Exchange]:
            answers: list[Exchange] = []
            with sockets.connect(self.settings) as connection:
                if pipelined:
                    connection.send([b"".join(heads)])
                for head, message in zip(heads, messages, strict=True):
                    if not pipelined:
                        connection.send([head])
                    answers.append(replace(connection.receive(message), note=note))
                    if answers[-1].status is None or not connection.is_kept:
                        break
            return answers

        return self._call(messages, lambda: self._patiently(exchanges))

    def send_together(self, messages: Sequence[Message]) -> list[Reply]:
        """Send all messages at the same time; replies are in the same order.

        Over HTTP each has a connection of its own; gRPC calls share one, as those of a client do.
        """
        if all(message.method == GRPC_METHOD for message in messages):
            return self._call(messages, lambda: self._patiently(lambda: self._called_together(messages)))
        note = f"one of {len(messages)} in flight"

        def exchanges() -> list[Exchange]:
            with ThreadPoolExecutor(len(messages)) as pool:
                return [replace(found, note=note + found.note) for found in pool.map(self._send_fresh, messages)]

        return self._call(messages, exchanges)

    def _called_together(self, messages: Sequence[Message]) -> list[Exchange]:
        note = f"one of {len(messages)} in flight on one connection"
        return [replace(found, note=note) for found in self._grpc.send_together(messages, fresh=True)]

    # --- bookkeeping ---

    def _call(self, messages: Sequence[Message], exchange: Callable[[], Sequence[Exchange]]) -> list[Reply]:
        """Make a call, write it down, and return a reply for each exchange."""
        call = Call(self._scope, self._calls, tuple(messages))
        self._calls += 1
        try:
            found = self._exchanged(call, exchange)
        except TargetLost as lost:
            self._write_down(replace(call, lost=str(lost)))
            raise
        first = len(self.exchanges)
        numbered = [replace(one, number=first + index) for index, one in enumerate(found)]
        self.exchanges += numbered
        self._write_down(replace(call, exchanges=tuple(numbered)))
        return [Reply(one) for one in numbered]

    def _exchanged(self, call: Call, exchange: Callable[[], Sequence[Exchange]]) -> Sequence[Exchange]:
        """Return what came of a call. Where a gateway answers in place of its server, that gets time to come back."""
        del call
        found = exchange()
        for one in found:
            if one.code == "UNAVAILABLE":
                self._patiently(lambda: self._look_behind_the_gateway(grpc_call("ServerLive")))
            elif one.status in UNREACHED and not one.code:
                self._patiently(lambda: self._look_behind_the_gateway(Message("/v2", method="GET")))
        return found

    def _look_behind_the_gateway(self, message: Message) -> None:
        """See whether such a status is about one request, or whether the server behind a gateway is gone."""
        found = self._send(message, fresh=True)
        if found.code == "UNAVAILABLE" or (found.status in UNREACHED and not found.code):
            raise Unreachable(
                f"{found.url.removesuffix(message.path)} answers everything with {Reply(found).status_line}"
            )

    def _write_down(self, call: Call) -> None:
        if self.journal:
            self.journal(call)

    def _send_fresh(self, message: Message) -> Exchange:
        """Send one of many; again after a reset, which a server's queue of connections, if it is short, may cause."""
        note = ""
        for attempt, pause in enumerate((0.1, 0.3, 1.0, None), start=1):
            exchange = self._patiently(lambda: self._http.send(message, fresh=True))
            was_reset = exchange.status is None and Reply(exchange).has_failed(FailureKind.BROKEN)
            if pause is None or not was_reset:
                break
            note = f", sent again after {attempt} resets"
            time.sleep(pause)
        return replace(exchange, note=note)

    def _patiently(self, exchange: Callable[[], T]) -> T:
        """Run an exchange; when no connection can be made, give the server time to come back.

        Raises:
            TargetLost: it did not come back, now or earlier.
        """
        if self.lost:
            raise TargetLost(self.lost)
        until = time.monotonic() + min(RESTART_PATIENCE, self.settings.timeout)
        while True:
            try:
                return exchange()
            except Unreachable as error:
                if error.is_untrusted or time.monotonic() >= until:
                    self.lost = f"{error}{TRUST_HINT if error.is_untrusted and not self.settings.ca_file else ''}"
                    raise TargetLost(self.lost) from error
            time.sleep(0.1)
