"""The target as checks over HTTP use it: sends requests in several ways, returns replies, records every exchange."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, TypeVar

from conformance.roles.declared_limits import Limits
from conformance.roles.model import Model
from conformance.roles.placement import Placement
from conformance.roles.roles import load_with_packs as load_roles
from conformance.spec.extensions import GRPC, HTTP
from conformance.transport import hostile_sending, sockets
from conformance.transport.broken_request import BrokenRequest, is_broken, is_busy, is_retryable, read_retry_after
from conformance.transport.exchange import Exchange, FailureKind, Reply
from conformance.transport.grpc_client import SMALL_WINDOW_BYTES, GrpcClient
from conformance.transport.hostile_sending import Octets
from conformance.transport.http_client import HttpClient, exchange_after_idling, send_alone
from conformance.transport.http_request import render_request
from conformance.transport.send_options import ChunkFormat, SendOptions
from conformance.transport.settings import Settings
from conformance.transport.target_client import LOOK_PAUSE_S, MAX_LOOKS, TargetClient, make_simple_request
from conformance.transport.unreachable import TargetLostError, UnreachableError
from conformance.transport.wait_budget import is_wait
from conformance.wire.grpc_request import GRPC_METHOD, make_infer_message
from conformance.wire.request import Form, InferRequest, Message

# The maximum number of messages in flight: more than any check sends, so that no message waits for another.
MAX_IN_FLIGHT = 256
SERVER_PATH = "/v2"
REDIRECTIONS = (301, 302, 303, 307, 308)
# Seconds to wait before each repetition of a request that a busy server refused.
BUSY_PAUSES_S = (0.05, 0.2, 1.0)
RELOAD_PAUSE_S = 3.0  # one more pause, for a server that reloads its models; made until it was in vain once
_INFERENCES = ("/infer", "/ModelInfer")  # how their paths end
MAX_WAITS_IN_VAIN = 5  # for a busy server outside of rows; after so many, its Retry-After is not awaited
# How often a request has to end the server until the request is the cause: a server may restart at any time.
ENDS_IN_A_ROW = 2
# Simple requests in a row without an answer, from a server that was ended and is started again soon.
MIN_UNANSWERED_LOOKS = 3
SERVER_ENDS = "then the server ends: it answers nothing more; sent again twice: the same"
# A target that answers faster is not measured for how many inferences it computes at once. All overlap if together they
# take at most so many times the latency: the requests do not arrive at the same moment, and the machine may be busy.
MIN_MEASURED_S, OVERLAP_MARGIN = 0.1, 1.5
# Inferences that a fast target is sent at once, for each process: a row has so many in flight.
BURST_EACH = 8
T = TypeVar("T")
R = TypeVar("R")


class Target(TargetClient):
    """One judged server.

    Attributes:
        roles: role -> the name of the model that fills the role on this target.
        placements: role -> the version and tensor names of that model, if they differ from those of the role.
        broken_in_discovery: the broken requests of discovery: see `BrokenRequest`.
        live_transports: the judged transports, without HTTP while discovery knows that nothing is answered over HTTP.
        probes_elsewhere: the names of the probes that another process made for this one, with a good result.
        share_probe: tells other processes the name of such a probe; None if there are none.
    """

    outlives_errors = False
    through_json: bool | None = None

    def __init__(self, settings: Settings, roles: dict[str, str] | None = None) -> None:
        super().__init__(settings)
        self.roles = roles or {}
        self.placements: Mapping[str, Placement] = {}
        self.broken_in_discovery: Sequence[BrokenRequest] = ()
        self.limits: Limits = {}
        self.live_transports = settings.transports
        self.probes_elsewhere: Container[str] = ()
        self.share_probe: Callable[[str], object] | None = None
        self._probe_results: dict[str, Any] = {}
        self._waits_in_vain = 0
        self._stays_busy = False

    @property
    def broken_before(self) -> list[BrokenRequest]:
        """The broken requests of discovery over HTTP: see `BrokenRequest`."""
        return [one for one in self.broken_in_discovery if not one.reply.is_over_grpc]

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        """A cached pool of threads: starting threads for each call would take longer than many answers."""
        return ThreadPoolExecutor(MAX_IN_FLIGHT)

    def close(self) -> None:
        """Close every connection; later messages open new connections."""
        super().close()
        if "_threads" in vars(self):
            vars(self).pop("_threads").shutdown()

    def model(self, role: str, salt: int = 0) -> Model | None:
        """Return the model that fills a role; None if the target has no such model.

        `salt` changes the generated tensor values: see `Model`.
        """
        name = self.roles.get(role)
        if name is None:
            return None
        placement = self.placements.get(role, Placement(name))
        max_batch = self.limits.get("max_batch")
        return Model(load_roles()[role], name, salt, placement.version, placement.names, max_batch)

    def find_plain_refusal(self, model: Model, transport: str = HTTP) -> Reply | None:
        """Return the reply to the last plain request if the model answers none over a transport; None if it does.

        A plain request is a simple valid inference request: first as JSON, then as binary data (over gRPC in typed,
        then in raw contents). If the model answers neither, a check on this model cannot judge its requirement. Each
        model is tested once for each transport; the result is cached.
        """
        name = model.label + (" over gRPC" if transport == GRPC else "")
        scope = self.scope(name, outside_rows=True)
        return self._probe_once(name, None, lambda: self.repeat_plain_request(model, transport), scope)

    def probe_once(self, name: str, probe: Callable[[], bool]) -> bool:
        """Call `probe` in a scope of this name, and return its result; later calls return the cached result.

        Several rows share a probe. If the target has hung, the probe has short waits, because the requests of many
        probes may hang. A probe that fails only because the server is slow costs some requests, not a verdict.
        """
        return self._probe_once(name, True, probe, self.scope(name, shortens_waits=True))

    def _probe_once(self, name: str, good: T, probe: Callable[[], T], scope: AbstractContextManager[None]) -> T:
        """Return the result of a probe; share a good result with other processes.

        Only that of a probe before the first request of a row: whatever comes of this row, it needs the probe.
        """
        if name not in self._probe_results:
            if name in self.probes_elsewhere:
                return good
            is_needed = not self.exchanges
            with scope:
                self._probe_results[name] = probe()
            if self.share_probe and is_needed and self._probe_results[name] is good:
                self.share_probe(name)
        found: T = self._probe_results[name]
        return found

    @contextmanager
    def forget_probes(self) -> Iterator[None]:
        """Forget what probes find in this context if it ends with an exception: their calls may not be recorded."""
        before = dict(self._probe_results)
        try:
            yield
        except BaseException:
            self._probe_results = before
            raise

    def repeat_plain_request(self, model: Model, transport: str) -> Reply | None:
        """Return what `find_plain_refusal` finds if it asks now."""
        model, reply = replace(model, salt=0), None
        for send in ("json", "binary") if model.is_json_capable else ("binary",):
            request = model.request(send=send, want=None if send == "json" else "binary")
            message = make_infer_message(request) if transport == GRPC else request.message()
            reply = self.send(message, fresh=True)
            if reply.succeeded:
                return None
        return reply

    def measure_latency(self) -> None:
        """Set `latency` to that of an inference if discovery asked for none; nothing of this is recorded."""
        model = next(filter(None, map(self.model, self.roles)), None)
        if model is None or self.settings.wait.times.fastest_s:
            return
        request = self.build_good_requests(model)[0]
        message = request.message() if HTTP in self.settings.transports else make_infer_message(request)
        with suppress(UnreachableError):
            self.latency, self._wait_budget.answered = self._measure([message])[0], message

    def count_overlapping(self, count: int) -> int:
        """Return how many of `count` inferences the target computes at once; nothing of this is recorded.

        A target that computes one after the other would only keep concurrent rows waiting. Measures `latency` again.
        A fast target is only asked whether it serves so many at all: one that limits connections or the rate of
        requests is spared.
        """
        known = self._wait_budget.answered
        if known is None or not self.latency or self.settings.rate_limit.rate is not None:
            return count
        if self.latency < MIN_MEASURED_S:
            return count if self._serves(known, count) else 1
        try:
            self.latency = self._measure([known])[0]
            together_s, are_answered = self._measure([known] * count)
        except UnreachableError:
            return 1
        if not are_answered:
            return 1
        return max(1, min(count, int(OVERLAP_MARGIN * count * self.latency / together_s)))

    def _serves(self, known: Message, count: int) -> bool:
        """Return whether the target answers an inference on each of `count` kept connections, then many at once."""
        is_call = known.method == GRPC_METHOD
        kept = [(GrpcClient if is_call else HttpClient)(self.settings) for _ in range(count)]
        short_s = self.settings.wait.compute_short_wait(self.settings.timeout)
        try:
            with self._wait_for_answers(short_s):
                beside = all(Reply(one.send(known)).succeeded for one in kept)
                found = self._send_burst([known] * count * BURST_EACH) if beside else []
                return beside and all(Reply(one).succeeded for one in found)
        except UnreachableError:
            return False
        finally:
            for one in kept:
                one.close()

    def is_back(self) -> bool:
        """Return whether the target accepts connections; wait a few seconds, or start it again, if it does not."""
        simple = make_simple_request(is_call=HTTP not in self.settings.transports)
        with suppress(TargetLostError):
            self._retry_until_back(lambda: self._send(simple, fresh=True))
        return not self.is_lost

    def _measure(self, messages: Sequence[Message]) -> tuple[float, bool]:
        """Return how many seconds the answers to messages take that are sent at the same time, and whether all succeed.

        Raises UnreachableError: a connection failed.
        """
        self.settings.rate_limit.wait(len(messages))
        started = time.monotonic()
        with self.settings.wait.times.count_in_flight(len(messages)):
            found = self._send_burst(messages)
        return time.monotonic() - started, all(Reply(one).succeeded for one in found)

    def _send_burst(self, messages: Sequence[Message]) -> list[Exchange]:
        if messages[0].method == GRPC_METHOD:
            return self._grpc.send_together(messages, fresh=True)
        return self._send_concurrently(lambda one: self._http.send(one, fresh=True, share=len(messages)), messages)

    # --- ways of sending ---

    def infer(self, request: InferRequest | Message, /) -> Reply:
        """Send an inference request on a kept connection."""
        return self.send(request.message() if isinstance(request, InferRequest) else request)

    def message(self, request: InferRequest, /) -> Message:
        """Encode an inference request for this transport."""
        return request.message()

    def build_good_requests(self, model: Model) -> tuple[InferRequest, ...]:
        """Return two valid requests, of which a server must answer at least one.

        The first is JSON if the model allows JSON; the second is binary data, with binary outputs.
        """
        send: Form = "json" if model.is_json_capable else "binary"
        return model.request(send=send, outputs=model.build_outputs_member()), model.request(want="binary")

    def describe(self, model: Model | None = None, /, *, fresh: bool = False) -> Reply:
        """Request the metadata of a model, or of the server."""
        return self.get(model.path if model else SERVER_PATH, fresh=fresh)

    def ask_health(self, subject: str, model: Model, /) -> Reply:
        """Ask whether the server is `live` or `ready`, or whether the `model` is ready."""
        return self.get(f"{model.path}/ready" if subject == "model" else f"/v2/health/{subject}")

    def get(self, path: str, *, fresh: bool = False) -> Reply:
        """Send a GET request for a path below the base URL; return the reply.

        The path of server metadata is `v2` or `v2/`, since the documents differ. A server that redirects, or has no
        `v2`, is asked for `v2/`.
        """
        reply = self.send(Message(path, method="GET"), fresh=fresh)
        if path != SERVER_PATH or reply.status not in (*REDIRECTIONS, 404):
            return reply
        other = self.send(Message(f"{path}/", method="GET"))
        return other if other.succeeded else reply

    def send(self, message: Message, *, fresh: bool = False) -> Reply:
        """Send a message over HTTP or gRPC; `fresh` opens a new connection.

        Outside of rows each message has a new connection: a server may close a kept connection at any time, so that a
        failed request on a kept connection would prove nothing.
        """
        fresh, message = fresh or self._is_outside_rows, self._add_user_agent(message)

        def send_once() -> Exchange:
            return self._send(message, fresh=fresh)

        keeps = "" if fresh else "_http"
        reply = self._call([message], lambda: [self._retry_until_back(send_once)], keeps=keeps)[0]
        return self._repeat_failed(reply) if self._is_outside_rows and is_retryable(reply) else reply

    def _repeat_failed(self, reply: Reply) -> Reply:
        """Repeat a failed request outside of rows; return the second reply, or the first if the second has no status.

        If the request is broken (`is_broken`), add it to `broken`.
        """
        second_reply, lost, self._is_outside_rows = reply, "", False
        try:
            if is_busy(reply):
                second_reply = self._repeat_busy(reply)
            elif not is_wait(reply.exchange):
                second_reply = self.send(reply.exchange.message, fresh=True)
            self._waits_in_vain += is_busy(reply) and is_busy(second_reply)
            if reply.has_ended_unanswered and second_reply.has_ended_unanswered:
                lost = SERVER_ENDS if self.ends_server(reply.exchange.message) else ""
        finally:
            self._is_outside_rows = True
            if is_broken(reply) and not (reply.exchange.is_slow or self.has_died):  # one row is accused of a crash
                self.broken.append(BrokenRequest(self._scope, reply, second_reply, lost))
        return reply if second_reply.status is None else second_reply

    def _repeat_busy(self, reply: Reply) -> Reply:
        """Repeat a request that a busy server refused, an inference while it stays busy; return the last reply.

        The server may refuse all that there is to discover. A limit of the rate ends meanwhile, and so does a reload.
        Replies alone decide how often a request is repeated, so that a replay sends the same requests.
        """
        message = reply.exchange.message
        asked_s = read_retry_after(reply) if self._waits_in_vain < MAX_WAITS_IN_VAIN else 0.0
        further = (*BUSY_PAUSES_S[1:], RELOAD_PAUSE_S) if message.path.endswith(_INFERENCES) else ()
        self.pause(max(BUSY_PAUSES_S[0], asked_s))
        reply = self.send(message, fresh=True)
        for pause_s in further:
            if not is_busy(reply):
                return reply
            if not self._stays_busy:
                self.pause(pause_s)
            reply = self.send(message, fresh=True)
        self._stays_busy = self._stays_busy or bool(further and is_busy(reply))
        return reply

    def ends_server(self, message: Message) -> bool:
        """Return whether a request that is sent alone ends the server, and does so again once the server is back.

        The server answers simple requests before. Then the request gets no answer, and the host refuses the next
        connection, or nothing is answered any more. Each part alone happens to servers that live: they close
        connections, limit rates, or restart in between.
        """
        return all(self._ends_server_once(message) for _ in range(ENDS_IN_A_ROW))

    def _ends_server_once(self, message: Message) -> bool:
        simple = self.get_simple_request(is_call=message.method == GRPC_METHOD)
        if not self._is_answered(simple):
            return False
        with self._report_lost_calls():
            if not self.send(message, fresh=True).has_no_server_answer:
                return False
            for unanswered in range(MAX_LOOKS):  # noqa: B007 - counts
                found = self._look(simple)
                if not found.has_no_server_answer:
                    break
                self.pause(LOOK_PAUSE_S)  # the kernel accepts connections until the process has ended
        if found.has_failed(FailureKind.REFUSED) or unanswered < MIN_UNANSWERED_LOOKS:
            return found.has_failed(FailureKind.REFUSED)
        # The control: a server that limits the rate of requests answers one as soon as it can, and not another at once.
        return self._is_answered(simple) and not self._look(simple).has_no_server_answer

    def _is_answered(self, message: Message) -> bool:
        """Send a message, again if the server comes back meanwhile, and return whether the server answers it."""
        return any(not self.send(message, fresh=True).has_no_server_answer for _ in range(2))

    def _look(self, message: Message) -> Reply:
        """Send a message on a new connection, without waiting for a server that is gone."""
        with self._report_lost_calls():
            return self._call([message], lambda: [self._send_without_waiting(message)])[0]

    def send_until_not_busy(self, message: Message) -> Reply:
        """Send a message on a new connection; repeat it after a pause if the server is busy."""
        reply = self.send(message, fresh=True)
        for pause_s in BUSY_PAUSES_S:
            if not is_busy(reply):
                break
            self.pause(pause_s)
            reply = self.send(message, fresh=True)
        return reply

    def send_in_pieces(
        self, message: Message, offsets: Sequence[int], *, chunks: ChunkFormat | None = None, at_once: bool = False
    ) -> Reply:
        """Send the body in TCP segments, or in chunks, cut at the given offsets.

        `offsets`: the offsets in the body; negative ones count from the end of the head.
        `chunks`: the format of the chunks; None: TCP segments.
        `at_once`: whether head and pieces are sent in one write instead of one write each.
        """
        settings, message = self.settings, self._add_user_agent(message)
        return self._call_with_retry(
            message, lambda: sockets.send_in_pieces(settings, message, offsets, chunks, at_once=at_once), chunks
        )

    def send_interleaved(
        self, messages: Sequence[Message], offsets: Sequence[int], *, chunks: ChunkFormat | None = None
    ) -> list[Reply]:
        """Send all messages at the same time, each on its own connection, with interleaved bodies.

        The bodies are cut at the given offsets into TCP segments, or into chunks. The suite sends the first piece of
        each body, then the second piece of each, and so on.
        """
        messages = [self._add_user_agent(message) for message in messages]
        chunked = range(len(messages) if chunks else 0)

        def send_all() -> list[Exchange]:
            return sockets.send_interleaved(self.settings, messages, offsets, chunks)

        return self._call(messages, lambda: self._retry_until_back(send_all), chunked=chunked)

    def send_after_go_ahead(self, message: Message, *, chunks: ChunkFormat | None = None) -> Reply:
        """Send a head with `Expect: 100-continue`, and the body after the server requests it or the wait ends.

        After a final answer the body is not sent. `Exchange.go_ahead` records the server's reaction.
        """
        message = self._add_user_agent(message)
        return self._call_with_retry(
            message, lambda: sockets.send_after_go_ahead(self.settings, message, chunks), chunks
        )

    def send_and_read_late(self, message: Message) -> Reply:
        """Send a message, and read the answer after a pause, with a small receive buffer."""
        message = self._add_user_agent(message)
        return self._call_with_retry(message, lambda: sockets.send_and_read_late(self.settings, message))

    def _call_with_retry(
        self, message: Message, exchange: Callable[[], Exchange], chunks: ChunkFormat | None = None
    ) -> Reply:
        return self._call([message], lambda: [self._retry_until_back(exchange)], chunked=range(chunks is not None))[0]

    def send_on_one_connection(
        self, messages: Sequence[Message], *, pipelined: bool = False, chunked: Collection[int] = ()
    ) -> list[Reply]:
        """Send messages on one connection, sequentially or pipelined.

        If the server closes the connection, the list has fewer replies than messages. `chunked` has the indices of the
        messages whose bodies are sent as one chunk.
        """
        settings, messages = self.settings, [self._add_user_agent(message) for message in messages]
        pause_s = self._refusal_pause_s

        def send_all() -> list[Exchange]:
            return sockets.send_on_one_connection(
                settings, messages, pipelined=pipelined, chunked=chunked, pause_s=pause_s
            )

        return self._call(messages, lambda: self._retry_until_back(send_all), chunked=chunked)

    def render_octets(self, message: Message) -> bytes:
        """Return the bytes of a request, including the user's headers, which may be secret."""
        return render_request(self.settings, message)

    def send_octets(self, message: Message, octets: Octets) -> list[Reply]:
        """Send raw bytes, such as a partial request, and return the answers in order.

        `message` represents the bytes in the recorded exchange. If the server parses the bytes as one request, there is
        at most one answer.
        """
        return self._call(
            [message],
            lambda: self._retry_until_back(lambda: hostile_sending.send_octets(self.settings, message, octets)),
        )

    def hold_connections(self, pieces: Sequence[bytes]) -> AbstractContextManager[object]:
        """Open a connection for each piece, send the piece, and keep all open until the context ends."""
        return hostile_sending.hold_connections(self.settings, pieces)

    def render_without_user_headers(self, message: Message) -> bytes:
        """Return the bytes of a request without the user's headers, which may be secret."""
        return render_request(replace(self.settings, headers=()), message)

    def send_together(self, messages: Sequence[Message], *, reads_late: bool = False) -> list[Reply]:
        """Send all messages at the same time; replies are in the same order.

        Over HTTP each message has its own connection. gRPC calls share one connection, as those of gRPC clients do.
        With `reads_late` the server cannot hand over one long answer before it begins the next: the suite reads HTTP
        answers after a pause, and gives calls small windows of flow control.
        """
        messages = [self._add_user_agent(message) for message in messages]
        if all(message.method == GRPC_METHOD for message in messages):
            call = partial(self._call_together, messages, reads_late=reads_late)
            return self._call(messages, lambda: self._retry_until_back(call))
        share = len(messages)
        note = f"one of {share} concurrent requests{', ' if reads_late else ''}"

        def send_once(message: Message) -> Exchange:
            if reads_late:
                return sockets.send_and_read_late(self.settings, message)
            return self._http.send(message, fresh=True, share=share)

        def send_one(message: Message) -> Exchange:
            found = self._retry_ended(lambda: send_once(message))
            return replace(found, note=note + found.note)

        def send_all() -> list[Exchange]:
            return self._send_concurrently(send_one, messages)

        return self._call(messages, send_all)

    def cancel(self, message: Message, *, fresh: bool = False) -> None:
        """Start a gRPC call, and cancel it by resetting its stream (RFC 9113, 5.4.2)."""
        message = self._add_user_agent(message)
        self._call([message], lambda: [self._retry_until_back(lambda: self._grpc.cancel(message, fresh=fresh))])

    def _call_together(self, messages: Sequence[Message], *, reads_late: bool) -> list[Exchange]:
        note = f"one of {len(messages)} concurrent calls on one connection"
        if not reads_late:
            return [replace(found, note=note) for found in self._grpc.send_together(messages, fresh=True)]
        with closing(GrpcClient(self.settings, SMALL_WINDOW_BYTES)) as client:
            note += f", read through windows of {SMALL_WINDOW_BYTES} bytes"
            return [replace(found, note=note) for found in client.send_together(messages)]

    def send_with(self, options: SendOptions, message: Message, *, fresh: bool = False) -> Reply:
        """Send a message with these options, on the kept connection of this method; `fresh` opens a new connection."""
        message = self._add_user_agent(message)

        def send_once() -> Exchange:
            if fresh:
                self._connection.close()
            return self._connection.exchange(message, options)

        chunked = range(options.chunked is not None)
        return self._call([message], lambda: [self._retry_until_back(send_once)], chunked=chunked, keeps="_connection")[
            0
        ]

    def send_after_idling(self, pairs: Sequence[tuple[Message, Message]], idle_s: float) -> list[Reply]:
        """Send the first message of each pair, wait, send the second on the same connection; return the second replies.

        Over HTTP each pair has its own connection, and all connections are idle at the same time. gRPC calls share one
        connection. If the server closed an idle connection, the second message is sent on a new connection.
        """
        pairs = [(self._add_user_agent(first), self._add_user_agent(second)) for first, second in pairs]
        over_grpc = all(first.method == GRPC_METHOD for first, _ in pairs)

        def send_pair(pair: tuple[Message, Message]) -> list[Exchange]:
            return self._retry_until_back(lambda: exchange_after_idling(self.settings, pair, idle_s))

        def send_all() -> list[Exchange]:
            found = self._retry_until_back(lambda: self._call_after_idling(pairs, idle_s)) if over_grpc else None
            return [one for pair in found or self._send_concurrently(send_pair, pairs) for one in pair]

        return self._call([message for pair in pairs for message in pair], send_all)[1::2]

    def _call_after_idling(self, pairs: Sequence[tuple[Message, Message]], idle_s: float) -> list[list[Exchange]]:
        before = [self._grpc.send(first, fresh=place == 0) for place, (first, _) in enumerate(pairs)]
        time.sleep(idle_s)
        return [[one, self._grpc.send(second)] for one, (_, second) in zip(before, pairs, strict=True)]

    def send_together_with(self, options: Sequence[SendOptions], messages: Sequence[Message]) -> list[Reply]:
        """Send all messages concurrently, each with its own options and connection; replies are in the same order."""
        messages = [self._add_user_agent(message) for message in messages]
        note = f"one of {len(messages)} concurrent requests"
        settings = replace(self.settings, max_answer=self.settings.max_answer // len(messages))

        def send_with_options(sent: tuple[SendOptions, Message]) -> Exchange:
            found = self._retry_ended(lambda: send_alone(settings, sent[1], sent[0]))
            return replace(found, note=", ".join(filter(None, (found.note, note))))

        def send_all() -> list[Exchange]:
            return self._send_concurrently(send_with_options, zip(options, messages, strict=True))

        chunked = [index for index, each in enumerate(options) if each.chunked is not None]
        return self._call(messages, send_all, chunked=chunked)

    def _send_concurrently(self, send: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Call `send` with each item in a thread, and wait for all calls; re-raise the first exception."""
        pending = [self._threads.submit(send, one) for one in items]
        wait(pending)
        return [one.result() for one in pending]

    def _retry_ended(self, send: Callable[[], Exchange]) -> Exchange:
        """Send one of many messages on a new connection; retry if the connection ends without an answer.

        The accept queue may be full, and a server may limit its connections and close those above the limit (RFC 9112,
        9.5). The pauses give the other messages time to get their answers.
        """
        note = ""
        for attempt, pause in enumerate((0.1, 0.3, 1.0, None), start=1):
            exchange = self._retry_until_back(send)
            if pause is None or not Reply(exchange).has_ended_unanswered:
                break
            note = f"attempt {attempt + 1} after the connection ended"
            time.sleep(pause)
        return replace(exchange, note=", ".join(filter(None, (exchange.note, note))))
