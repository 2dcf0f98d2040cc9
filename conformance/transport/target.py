"""The target as checks see it: send a request in one of several manners, get a reply; every exchange is recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

from conformance.roles.model import Model
from conformance.roles.placement import Placement
from conformance.roles.roles import load as load_roles
from conformance.terms.extensions import GRPC, HTTP
from conformance.transport import bare_sending
from conformance.transport.broken import Broken, is_broken
from conformance.transport.call import Call
from conformance.transport.chunks import Chunks
from conformance.transport.exchange import Exchange, FailureKind, Reply
from conformance.transport.grpc_client import GrpcClient
from conformance.transport.http_client import HttpClient
from conformance.transport.line import Line, alone
from conformance.transport.manner import Manner
from conformance.transport.patience import A_FEW, Patience, is_silence
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


class Target:
    """One server under judgement.

    Attributes:
        roles: role -> name of the model that fills it on this target.
        placements: role -> version and tensor names of that model, where they are not those of the role.
        exchanges: what was sent in the scope, in order.
        lost: why no connection can be made any more, or None; `has_died`: see `TargetLost`.
        last: the last exchange of all, or None; `has_answered`: whether anything ever came.
        broken: what broke beside rows, as long as nobody has judged it; `survey_broken`: likewise in the survey.
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
        self.has_died = False
        self.has_answered = False
        self.last: Exchange | None = None
        self.broken: list[Broken] = []
        self.survey_broken: Sequence[Broken] = ()
        self.journal: Callable[[Call], None] | None = None
        self._scope, self._calls, self._beside = "", 0, False
        self._patience = Patience()
        self._in_survey: Patience | None = None
        self._known: dict[str, bool] = {}
        self._plain_refusals: dict[tuple[str, str], str | None] = {}

    @cached_property
    def _http(self) -> HttpClient:
        return HttpClient(self.settings)

    @cached_property
    def _line(self) -> Line:
        return Line(self.settings)

    @cached_property
    def _grpc(self) -> GrpcClient:
        return GrpcClient(self.settings)

    @contextmanager
    def scope(self, name: str, *, beside: bool = False) -> Iterator[None]:
        """Keep a record of exchanges of its own: for a row of a check, say, or for the survey.

        What is sent inside is numbered from 0 and recorded under this name; afterwards the record before goes on.
        `beside` is for what no row judges: what is neither answered nor refused there is asked again, once, and noted
        in `broken`.
        """
        before = self.exchanges, self._scope, self._calls, self._beside
        self.exchanges, self._scope, self._calls, self._beside = [], name, 0, beside
        try:
            yield
        finally:
            self.exchanges, self._scope, self._calls, self._beside = before

    @property
    def broken_before(self) -> list[Broken]:
        """What broke over HTTP while the target was surveyed."""
        return [one for one in self.survey_broken if not one.reply.is_over_grpc]

    @contextmanager
    def losing_patience(self) -> Iterator[None]:
        """Count the target as lost after a few requests in a row without an answer: for the survey, which is long."""
        self._in_survey = Patience()
        try:
            yield
        finally:
            self._in_survey = None

    def close(self) -> None:
        """Close every connection."""
        for one in ("_http", "_line", "_grpc"):
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
            with self.scope(f"role {model.role.name}" + (" over gRPC" if transport == GRPC else ""), beside=True):
                self._plain_refusals[asked] = self._refusal(replace(model, salt=0), transport)
        return self._plain_refusals[asked]

    def once(self, name: str, ask: Callable[[], bool]) -> bool:
        """Return the answer to a question that several rows have: asked the first time, in a scope of its own."""
        if name not in self._known:
            with self.scope(name):
                self._known[name] = ask()
        return self._known[name]

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
        """Send a message, over HTTP or gRPC; `fresh` asks for a connection of its own, which all have beside rows.

        A kept connection may be closed at any time, so that nothing could be said of a request to which that happens.
        """
        fresh = fresh or self._beside
        reply = self._call([message], lambda: [self._patiently(lambda: self._send(message, fresh=fresh))])[0]
        return self._asked_again(reply) if self._beside and is_broken(reply) else reply

    def _asked_again(self, reply: Reply) -> Reply:
        """Note what broke beside rows, and return the answer to the same request sent again, where one came."""
        again, self._beside = reply, False
        try:
            if not reply.has_failed(FailureKind.TIMEOUT):
                again = self.send(reply.exchange.message, fresh=True)
        finally:
            self._beside = True
            self.broken.append(Broken(self._scope, reply, again))
        return reply if again.status is None else again

    def _send(self, message: Message, *, fresh: bool = False) -> Exchange:
        client = self._grpc if message.method == GRPC_METHOD else self._http
        return client.send(message, fresh=fresh)

    def send_in_pieces(
        self, message: Message, places: Sequence[int], *, chunks: Chunks | None = None, at_once: bool = False
    ) -> Reply:
        """Send the body in TCP segments, or in chunks, cut at the given offsets.

        The head goes out in one write, and each piece in one of its own; `at_once` makes one write of them all.
        """
        settings = self.settings
        return self._send_bare(
            message, lambda: bare_sending.in_pieces(settings, message, places, chunks, at_once=at_once), chunks
        )

    def send_after_go_ahead(self, message: Message, *, chunks: Chunks | None = None) -> Reply:
        """Hold the body back behind `Expect: 100-continue`, until the server asks for it or for long enough.

        What came meanwhile is in the exchange. A final answer ends it, the body unsent.
        """
        return self._send_bare(message, lambda: bare_sending.after_go_ahead(self.settings, message, chunks), chunks)

    def send_and_read_late(self, message: Message) -> Reply:
        """Send a message, and leave its answer unread for a moment, with little room for it on this side."""
        return self._send_bare(message, lambda: bare_sending.read_late(self.settings, message))

    def _send_bare(self, message: Message, exchange: Callable[[], Exchange], chunks: Chunks | None = None) -> Reply:
        return self._call([message], lambda: [self._patiently(exchange)], chunked=range(chunks is not None))[0]

    def send_on_one_connection(
        self, messages: Sequence[Message], *, pipelined: bool = False, chunked: Collection[int] = ()
    ) -> list[Reply]:
        """Send messages on one connection, each after the answer to the one before, or all at once.

        A server that closes the connection ends the list early. Bodies at the places `chunked` go out as one chunk.
        """

        def exchanges() -> list[Exchange]:
            return bare_sending.on_one_connection(self.settings, messages, pipelined=pipelined, chunked=chunked)

        return self._call(messages, lambda: self._patiently(exchanges), chunked=chunked)

    def as_text(self, message: Message) -> bytes:
        """Return a request as it goes out, without the headers of the user's own, which may be secret."""
        return bare_sending.whole(replace(self.settings, headers=()), message)

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

    def send_in(self, manner: Manner, message: Message, *, fresh: bool = False) -> Reply:
        """Send a message in a manner, on a line that is kept for such messages; `fresh` opens another one."""

        def exchange() -> Exchange:
            if fresh:
                self._line.close()
            return self._line.exchange(message, manner)

        chunked = range(manner.chunked is not None)
        return self._call([message], lambda: [self._patiently(exchange)], chunked=chunked)[0]

    def send_together_in(self, manners: Sequence[Manner], messages: Sequence[Message]) -> list[Reply]:
        """Send all messages at the same time, each in its manner and on a connection of its own; replies in order."""
        note = f"one of {len(messages)} in flight"

        def send(sent: tuple[Manner, Message]) -> Exchange:
            found = self._patiently(lambda: alone(self.settings, sent[1], sent[0]))
            return replace(found, note=", ".join(filter(None, (found.note, note))))

        def exchanges() -> list[Exchange]:
            with ThreadPoolExecutor(len(messages)) as pool:
                return list(pool.map(send, zip(manners, messages, strict=True)))

        chunked = [place for place, manner in enumerate(manners) if manner.chunked is not None]
        return self._call(messages, exchanges, chunked=chunked)

    # --- bookkeeping ---

    def _call(
        self,
        messages: Sequence[Message],
        exchange: Callable[[], Sequence[Exchange]],
        *,
        chunked: Collection[int] = (),
    ) -> list[Reply]:
        """Make a call, write it down, and return a reply for each exchange; those at places `chunked` are in chunks."""
        call = Call(self._scope, self._calls, tuple(messages))
        self._calls += 1
        try:
            found = self._exchanged(call, exchange)
        except TargetLost as lost:
            self._write_down(replace(call, lost=str(lost), has_died=lost.has_died))
            raise
        first = len(self.exchanges)
        numbered = [
            replace(one, number=first + index, call=call.index, is_chunked=index in chunked)
            for index, one in enumerate(found)
        ]
        self.exchanges += numbered
        self.last = numbered[-1] if numbered else self.last
        self.has_answered = self.has_answered or any(one.status is not None for one in numbered)
        self._write_down(replace(call, exchanges=tuple(numbered)))
        if self._in_survey is not None:
            self._in_survey.count(numbered)
            if self._in_survey.is_low:
                raise self._silent(A_FEW)
        return [Reply(one) for one in numbered]

    def _silent(self, count: int, nor: str = "") -> TargetLost:
        """Count the target as lost, because so many requests in a row had no answer; return what is to be raised."""
        seconds = f"{self.settings.timeout:g} s"
        self.lost = f"{self.settings.url} is silent: {count} requests in a row had no answer in {seconds}{nor}"
        return TargetLost(self.lost)

    def _exchanged(self, call: Call, exchange: Callable[[], Sequence[Exchange]]) -> Sequence[Exchange]:
        """Return what came of a call. Where a gateway answers in place of its server, that gets time to come back.

        Raises:
            TargetLost: a gateway still cannot reach the server, or it is silent.
        """
        found = exchange()
        self._patience.count(found)
        if self._in_survey is None and (self._patience.is_low or self._patience.is_over):
            self._look_for_life(call.messages[-1])
        for one in found:
            if one.code == "UNAVAILABLE":
                self._patiently(lambda: self._look_behind_the_gateway(grpc_call("ServerLive")))
            elif one.status in UNREACHED and not one.code:
                self._patiently(lambda: self._look_behind_the_gateway(Message("/v2", method="GET")))
        return found

    def _look_for_life(self, message: Message) -> None:
        """Ask something plain after a few requests in a row that had no answer."""
        plain = grpc_call("ServerLive") if message.method == GRPC_METHOD else Message("/v2", method="GET")
        found = self._patiently(lambda: self._send(plain, fresh=True))
        if is_silence(found):
            raise self._silent(self._patience.in_a_row, f", nor had {plain.method} {plain.path}")
        if self._patience.is_over:
            raise self._silent(self._patience.in_a_row, f", though {plain.method} {plain.path} had one")

    def _look_behind_the_gateway(self, message: Message) -> None:
        """See whether such a status is about one request, or whether the server behind a gateway is gone."""
        found = self._send(message, fresh=True)
        if found.code == "UNAVAILABLE" or (found.status in UNREACHED and not found.code):
            raise Unreachable(
                f"{found.url.removesuffix(message.path)} answers everything with {Reply(found).status_line}",
                is_refused=True,
            )
        if is_broken(Reply(found)):
            self.broken.append(Broken("behind the gateway", Reply(found), Reply(found)))

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
            raise TargetLost(self.lost, has_died=self.has_died)
        until = time.monotonic() + min(RESTART_PATIENCE, self.settings.timeout)
        while True:
            try:
                return exchange()
            except Unreachable as error:
                if error.is_untrusted or time.monotonic() >= until:
                    self.lost = f"{error}{TRUST_HINT if error.is_untrusted and not self.settings.ca_file else ''}"
                    self.has_died = error.is_refused and self.has_answered
                    raise TargetLost(self.lost, has_died=self.has_died) from error
            time.sleep(0.1)
