"""The base class of `target.Target`: makes and records the calls to a target, and detects when the target is lost."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import TypeVar, cast

from conformance.spec.extensions import GRPC, HTTP
from conformance.transport.answer_wait import AnswerWait
from conformance.transport.broken_request import TOO_MANY_REQUESTS, BrokenRequest, is_broken
from conformance.transport.client_names import OWN_CLIENT, ClientName
from conformance.transport.exchange import Call, Exchange, FailureKind, Reply, TransportFailure
from conformance.transport.grpc_client import GrpcClient
from conformance.transport.har_bodies import JUDGED_LIMIT, shorten
from conformance.transport.http_client import HttpClient, PersistentConnection
from conformance.transport.masking import mask_exchange
from conformance.transport.settings import Settings
from conformance.transport.unreachable import TargetLostError, UnreachableError, has_cause
from conformance.transport.wait_budget import WaitBudget, is_inference, is_silence, is_wait
from conformance.wire.grpc_request import GRPC_METHOD, make_grpc_call
from conformance.wire.request import Message

T = TypeVar("T")

# This library logs headers, which include the user's secrets: a run with log_cli would show them.
logging.getLogger("hpack").setLevel(logging.WARNING)

# Seconds that a server may take to accept connections again, for example after a supervisor restarts it.
MAX_RESTART_WAIT_S = 5.0
# The same, if the user's restart command follows.
WAIT_BEFORE_COMMAND_S = 1.0
# Seconds that a server may take to accept connections after the restart command.
MAX_START_S = 60.0
READY_PATH = "/v2/health/ready"
# Seconds of all pauses after refusals in one attempt to judge a row: see `pause_after_refusals`.
MAX_REFUSAL_PAUSES_S = 3.0
TRUST_HINT = "; --target-ca FILE names the certificates to trust"
# Requests that a server answers as long as it lives, by path over HTTP, by method over gRPC.
SIMPLE_PATHS = ("/v2", "/v2/", "/v2/health/live", READY_PATH)
SIMPLE_METHODS = ("ServerLive", "ServerReady", "ServerMetadata")
# Requests to a server that may be ending, the seconds between them, and how many may wait in vain on a busy host.
MAX_LOOKS, LOOK_PAUSE_S, MAX_SILENT_LOOKS = 20, 0.05, 3


class HungError(Exception):
    """The target has hung during a row. The suite judges the row again, with short waits."""


class TargetClient:
    """Sends messages to one server, and tracks whether it is reachable.

    Attributes:
        exchanges: the exchanges of the current scope, in order; very long answers are excerpts.
        lost: why the target has become unreachable, or None.
        has_died: see `TargetLostError`.
        last: the most recent exchange, or None.
        latency: the seconds that the fastest inference during discovery took, over any transport; without one, the
            fastest answer; None before discovery.
        waited_s: the seconds spent on calls with an answer that did not come or was not complete in time.
        broken: the broken requests (`BrokenRequest`) that no row has judged yet.
        journal: a function that records each call, or None.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = replace(settings, wait=AnswerWait(settings.wait.times))
        self.exchanges: list[Exchange] = []
        self.lost: str | None = None
        self.has_died = False
        self.answered: set[str] = set()
        self.last: Exchange | None = None
        self.latency: float | None = None
        self.waited_s = 0.0
        self.broken: list[BrokenRequest] = []
        self.client = OWN_CLIENT
        self.journal: Callable[[Call], None] | None = None
        self._scope, self._calls, self._is_outside_rows = "", 0, False
        self._held: list[Call] | None = None
        self._has_hung = self._raises_when_hung = False
        self._wait_budget = WaitBudget(settings.timeout)
        self._discovery_budget: WaitBudget | None = None
        # Whether the target serves few connections at a time, and how many idle ones it keeps beside another.
        self._serves_few, self._idle_beside = False, 0
        # The last simple request that was answered, by whether it is a gRPC call.
        self._answered_simple: dict[bool, Message] = {}
        self._repeats_lost_calls, self._is_ready_again = True, False
        self._refusal_pause_s = self._refusal_pauses_left_s = 0.0

    @cached_property
    def _http(self) -> HttpClient:
        return HttpClient(self.settings)

    @cached_property
    def _connection(self) -> PersistentConnection:
        return PersistentConnection(self.settings)

    @cached_property
    def _grpc(self) -> GrpcClient:
        return GrpcClient(self.settings)

    @contextmanager
    def scope(
        self,
        name: str,
        *,
        outside_rows: bool = False,
        client: ClientName = OWN_CLIENT,
        short_wait: float | None = None,
        shortens_waits: bool = False,
        raises_when_hung: bool = False,
    ) -> Iterator[None]:
        """Open a scope: a part of a run with its own list of exchanges, such as a row of a check, or discovery.

        At the end of the scope the previous list of exchanges is restored. The calls of a scope with `short_wait` or
        `raises_when_hung` are recorded at the end of the scope, or not at all after `discard_calls`.

        `outside_rows`: whether no row judges the requests. A request that is neither answered nor refused is then
        repeated once, and added to `broken`.
        `short_wait`: the seconds that replace the timeout for answers; scopes inside this scope have the timeout.
        `shortens_waits`: whether waits are short if the target has hung, or if they are short outside this scope; it
        is not repeated.
        `raises_when_hung`: whether calls raise `HungError` once the target has hung; with `short_wait`, as soon as
        the last request of this scope got no answer.
        """
        before = self.exchanges, self._scope, self._calls, self._is_outside_rows, self.client
        hanging = self._held, self._has_hung, self._raises_when_hung
        self.exchanges, self._scope, self._calls, self._is_outside_rows, self.client = [], name, 0, outside_rows, client
        self._held = [] if raises_when_hung or short_wait is not None else None
        self._has_hung, self._raises_when_hung = self._find_short_wait() is not None, raises_when_hung
        try:
            with self.shorten_waits() if shortens_waits else self._wait_for_answers(short_wait):
                yield
        finally:
            held = self._held or []
            self.exchanges, self._scope, self._calls, self._is_outside_rows, self.client = before
            self._held, self._has_hung, self._raises_when_hung = hanging
            for call in held:
                self.record(call)

    def discard_calls(self) -> None:
        """Drop the unrecorded calls of this scope: the scope is repeated, and only the repetition is recorded."""
        self._held = None

    def shorten_waits(self) -> AbstractContextManager[None]:
        """Wait shortly for answers in this context if the target has hung, or if waits are short already."""
        return self._wait_for_answers(self._find_short_wait() or self.settings.wait.short_s)

    @contextmanager
    def _wait_for_answers(self, short_s: float | None) -> Iterator[None]:
        """Let `short_s` replace the timeout for answers in this context; None: the timeout applies."""
        wait = self.settings.wait
        before, wait.short_s = wait.short_s, short_s
        try:
            yield
        finally:
            wait.short_s = before

    @contextmanager
    def limit_silence(self) -> Iterator[None]:
        """Treat the target as lost after a few waits (`wait_budget`) in this context, because discovery is long."""
        self._discovery_budget = WaitBudget(self.settings.timeout)
        try:
            yield
        finally:
            self._discovery_budget = None

    @contextmanager
    def pause_after_refusals(self, pause_s: float) -> Iterator[None]:
        """Pause before each call in this context that follows a refusal, up to `MAX_REFUSAL_PAUSES_S` in all."""
        self._refusal_pause_s, self._refusal_pauses_left_s = pause_s, MAX_REFUSAL_PAUSES_S
        try:
            yield
        finally:
            self._refusal_pause_s = 0.0

    def _pause_if_refused(self) -> None:
        pause_s = min(self._refusal_pause_s, self._refusal_pauses_left_s)
        if pause_s and self.last is not None and Reply(self.last).is_refusal:
            self._refusal_pauses_left_s -= pause_s
            self.pause(pause_s)

    def pause(self, seconds: float) -> None:
        """Wait until a busy server may accept requests again."""
        time.sleep(seconds)

    def may_repeat(self, scope: str) -> bool:
        """Return whether a row may be repeated in a scope of this name; a recording may lack the repetition."""
        del scope
        return True

    @property
    def has_hung(self) -> bool:
        """Whether the target had hung before the scope was opened; a row then avoids requests that hang."""
        return self._has_hung

    def _has_hung_here(self) -> bool:
        if self.settings.wait.short_s is None:
            return self._find_short_wait() is not None
        return bool(self.exchanges) and is_wait(self.exchanges[-1])

    def _find_short_wait(self) -> float | None:
        return self.settings.wait.find_short_wait(self.settings.timeout)

    @property
    def is_lost(self) -> bool:
        """Whether the target has become unreachable."""
        return self.lost is not None

    def reset_silence(self) -> None:
        """Continue with a target that counts as lost because it was silent; a target that died stays lost."""
        if not self.has_died:
            self.lost, self._wait_budget = None, WaitBudget(self.settings.timeout)

    def close(self) -> None:
        """Close every connection; later messages open new connections."""
        for one in ("_http", "_connection", "_grpc"):
            if one in vars(self):
                vars(self).pop(one).close()

    def record(self, call: Call) -> None:
        """Write a call to the journal, if there is one; in a scope with a short wait, do so when the scope ends."""
        if self._held is not None:
            self._held.append(call)
        elif self.journal:
            self.journal(call)

    def _add_user_agent(self, message: Message) -> Message:
        """Return the message with the scope's client name; if that is the suite's own, the sender adds it later."""
        return message if self.client is OWN_CLIENT else self.client.add_user_agent(message)

    def _send(self, message: Message, *, fresh: bool = False) -> Exchange:
        client = self._grpc if message.method == GRPC_METHOD else self._http
        return client.send(message, fresh=fresh)

    # --- one call ---

    def _call(
        self,
        messages: Sequence[Message],
        exchange: Callable[[], Sequence[Exchange]],
        *,
        chunked: Collection[int] = (),
        keeps: str = "",
    ) -> list[Reply]:
        """Make a call, record it, and return a reply for each exchange.

        `chunked`: the indices of the messages that are sent in chunks.
        `keeps`: the attribute with the kept connection that the call uses; empty if the call opens connections.
        """
        if self._raises_when_hung and self._has_hung_here():
            raise HungError
        call = Call(self._scope, self._calls, tuple(messages), has_hung=self._has_hung)
        is_http = any(message.method != GRPC_METHOD for message in messages)
        send = partial(self._send_beside_idle, keeps, exchange) if is_http else exchange
        self._pause_if_refused()
        self.settings.rate_limit.wait(len(messages))
        self._calls += 1
        try:
            found = [mask_exchange(one, self.settings.secrets) for one in self._run_call(call, send)]
        except TargetLostError as lost:
            self.record(replace(call, lost=str(lost), has_died=lost.has_died))
            raise
        first = len(self.exchanges)
        numbered = [
            replace(one, number=first + index, call=call.index, is_chunked=index in chunked)
            for index, one in enumerate(found)
        ]
        # Long answers are judged once. They are not kept until the scope ends, which takes long during discovery.
        self.exchanges += [_shorten_answer(one) for one in numbered]
        self.last = numbered[-1] if numbered else self.last
        self.answered |= {GRPC if Reply(one).is_over_grpc else HTTP for one in numbered if one.status is not None}
        if any(one.status == TOO_MANY_REQUESTS and not one.code for one in numbered):
            self.settings.rate_limit.note_excess()
        self._note_simple(numbered)
        self.record(replace(call, exchanges=tuple(numbered)))
        if self._discovery_budget is not None:
            self._note_latency(numbered)
            self._discovery_budget.count(numbered)
            if self._discovery_budget.has_many_in_a_row:
                raise self._mark_lost(f"{self._discovery_budget.in_a_row} requests in a row")
            if self._discovery_budget.is_used_up:
                raise self._mark_lost(
                    f"{self._discovery_budget.waits} requests, with no answered inference between them,"
                )
        return [Reply(one) for one in numbered]

    def _note_simple(self, exchanges: Sequence[Exchange]) -> None:
        for one in exchanges:
            path, is_call = one.message.path, Reply(one).is_over_grpc
            is_simple = path.rpartition("/")[2] in SIMPLE_METHODS if is_call else path in SIMPLE_PATHS
            if is_simple and one.status is not None and not Reply(one).has_no_server_answer:
                self._answered_simple[is_call] = one.message

    def get_simple_request(self, *, is_call: bool) -> Message:
        """Return a simple request that the server has answered; if there is none, one that every server answers."""
        return self._answered_simple.get(is_call) or make_simple_request(is_call=is_call)

    @contextmanager
    def _report_lost_calls(self) -> Iterator[None]:
        """Neither wait for a server that is gone in this context, nor send again what it has not answered."""
        before, self._repeats_lost_calls = self._repeats_lost_calls, False
        try:
            yield
        finally:
            self._repeats_lost_calls = before

    def _note_latency(self, exchanges: Sequence[Exchange]) -> None:
        inferences = self.settings.wait.times.fastest_s.values()
        before = [] if self.latency is None else [self.latency]
        answers = (one.elapsed for one in exchanges if one.status is not None)
        self.latency = min(inferences or [*before, *answers], default=None)

    def _run_call(self, call: Call, exchange: Callable[[], Sequence[Exchange]]) -> Sequence[Exchange]:
        """Send the messages of a call, and return the exchanges.

        If the server is gone afterwards, wait a few seconds for it to come back, and send the messages once again: they
        may have found a dead server behind something that still accepts connections. `crashes` judges the others.
        """
        with self.settings.wait.times.count_in_flight(len(call.messages)):
            found = self._note_times(exchange)
            if (gone := self._mark_gone(found)) and self._waits_until_answered(gone):
                found = self._note_times(exchange)
                gone = self._mark_gone(found)
                if gone:
                    self._waits_until_answered(gone)
        with self._wait_for_answers(None):
            if not any(one.is_short_wait for one in found):
                self._note_waits(call, found)
        return gone or found

    def _mark_gone(self, found: Sequence[Exchange]) -> list[Exchange]:
        """Return the exchanges of a call after which the server is gone; an empty list if it lives, or may live.

        It is gone if one of them has no answer of the server, and then no simple request has, though one had before.
        Honest servers close connections, limit rates and are busy, but they answer a simple request soon. A server
        whose host refuses connections is found by the next call.
        """
        lacking = [one for one in found if Reply(one).has_no_server_answer]
        if not lacking or not self._repeats_lost_calls or self.lost or not self._finds_gone(lacking[0]):
            return []
        return [_mark_unanswered(one) for one in found]

    def _finds_gone(self, lacking: Exchange) -> bool:
        """Return whether nothing is answered any more after an exchange without an answer of the server."""
        is_call, silent = Reply(lacking).is_over_grpc, 0
        if lacking.status is None and is_call not in self._answered_simple:
            return False
        with self._wait_for_answers(self.settings.wait.compute_short_wait(self.settings.answer_timeout)):
            for place in range(MAX_LOOKS):
                self.settings.rate_limit.wait()
                look = Reply(self._send_without_waiting(self.get_simple_request(is_call=is_call)))
                silent += is_wait(look.exchange)
                if not look.has_no_server_answer and (not is_wait(look.exchange) or silent > MAX_SILENT_LOOKS):
                    if lacking.status is not None and is_broken(look):
                        self.broken.append(BrokenRequest("behind the gateway", look, look))
                    return False
                if not place:
                    self._close_idle(self._find_senders())  # a server may serve few connections at a time
                self.pause(LOOK_PAUSE_S)
        return True

    def _waits_until_answered(self, gone: Sequence[Exchange]) -> bool:
        """Wait until the server answers again after these exchanges, and return whether it does.

        Raises TargetLostError: it does not, and may never have run: then no exchange tells anything.
        """
        self._is_ready_again = False
        is_call = next(Reply(one).is_over_grpc for one in gone if Reply(one).has_ended_unanswered)
        try:
            with self._wait_for_answers(None):
                self._retry_until_back(partial(self._probe_gone, self.get_simple_request(is_call=is_call)))
        except TargetLostError as lost:
            if not lost.has_died:
                raise
        return not self.lost

    def _send_without_waiting(self, message: Message) -> Exchange:
        """Send a message on a new connection; if that fails, return an exchange that says so."""
        try:
            return self._send(message, fresh=True)
        except UnreachableError as error:
            is_late, is_refused = has_cause(error, TimeoutError), has_cause(error, ConnectionRefusedError)
            kind = FailureKind.TIMEOUT if is_late else FailureKind.REFUSED if is_refused else FailureKind.CLOSED
            url = self.settings.find_base_url(message) + message.path
            return Exchange(0, message, url, failure=TransportFailure(kind, str(error)))

    def _note_times(self, exchange: Callable[[], Sequence[Exchange]]) -> Sequence[Exchange]:
        """Send the messages of a call; note how long answers and waits took, and mark exchanges with a short wait."""
        wait, started = self.settings.wait, time.monotonic()
        found, seconds = exchange(), time.monotonic() - started
        for one in found:
            if one.status is not None and one.failure is None:
                wait.times.note_answer(one.elapsed)
            if is_inference(one) and Reply(one).succeeded:
                wait.times.note_inference(one.message.path, one.elapsed)
        unanswered = [one for one in found if is_inference(one) and one.status is None]
        if any(map(is_wait, found)):
            self.waited_s += seconds
            wait.times.whole_waits += wait.short_s is None and seconds >= self.settings.timeout
            wait.times.short_waits += wait.short_s is not None
            found = [self._mark_wait(one) if is_wait(one) else one for one in found]
        wait.times.note_abandoned(len(unanswered), seconds)
        return found

    def _mark_wait(self, exchange: Exchange) -> Exchange:
        """Mark a wait that was short, or that a slow server may have caused; say then which option helps."""
        wait, timeout, path = self.settings.wait, self.settings.timeout, exchange.message.path
        if wait.short_s is not None:
            why = f"{exchange.failure} (a short wait; the whole timeout is {timeout:g} s)"
            failure = TransportFailure(FailureKind.TIMEOUT, why) if is_silence(exchange) else exchange.failure
            return replace(exchange, is_short_wait=True, failure=failure)
        if not is_silence(exchange) or not is_inference(exchange):
            return exchange
        if hint := wait.times.find_hint(path, wait.choose_wait(timeout), timeout):
            failure = TransportFailure(FailureKind.TIMEOUT, f"{exchange.failure}{hint}")
            return replace(exchange, is_slow=True, failure=failure)
        return exchange

    def _note_waits(self, call: Call, found: Sequence[Exchange]) -> None:
        """Count the waits of a call; if `WaitBudget` requires it, test the target with a simple request."""
        self._wait_budget.count(found)
        if self._discovery_budget is None and (self._wait_budget.is_probe_due or self._wait_budget.is_used_up):
            self._probe_target(call.messages[-1])

    # --- targets that serve few connections at a time ---

    def _send_beside_idle(self, keeps: str, exchange: Callable[[], Sequence[Exchange]]) -> Sequence[Exchange]:
        """Send the messages of a call over HTTP; if they wait for the end of the suite's idle connections, repeat once.

        A server may serve one connection after the other: clients ought to limit their connections (RFC 9112, 9.4).
        Once the suite has found that out, it closes idle connections before each call.
        """
        idle = self._find_idle(keeps)
        if idle and self._serves_few:
            self._close_idle(idle)
        found = exchange()
        if not idle or self._serves_few:
            return found
        is_silent = bool(found) and all(map(is_silence, found))
        if is_silent and not self._answers_beside_idle():
            self._close_idle(idle)
            again = exchange()
            self._serves_few = any(one.status is not None for one in again)
            return again if self._serves_few else found
        if is_silent or any(one.status is not None for one in found):
            self._note_idle_beside(idle, keeps)
        return found

    def _find_idle(self, keeps: str) -> list[HttpClient | PersistentConnection]:
        """Return the senders with an idle connection, except `keeps`; none if the target is known to serve so many."""
        senders = self._find_senders(keeps)
        idle = [one for one in senders if one.is_idle] if len(senders) > self._idle_beside else []
        return idle if len(idle) > self._idle_beside else []

    def _find_senders(self, keeps: str = "") -> list[HttpClient | PersistentConnection]:
        return [vars(self)[name] for name in ("_http", "_connection") if name in vars(self) and name != keeps]

    def _close_idle(self, idle: Sequence[HttpClient | PersistentConnection]) -> None:
        for sender in idle:
            sender.close()

    def _note_idle_beside(self, idle: Sequence[HttpClient | PersistentConnection], keeps: str) -> None:
        """Note that an answer came beside idle connections, unless the target closed them first."""
        if len(self._find_idle(keeps)) == len(idle):
            self._idle_beside = len(idle)
        else:
            self._serves_few = True

    def _answers_beside_idle(self) -> bool:
        """Send a simple request on a new connection, and return whether the target answers it in a short wait."""
        self.settings.rate_limit.wait()
        simple = make_simple_request()
        with self._wait_for_answers(self.settings.wait.compute_short_wait(self.settings.answer_timeout)):
            return not is_silence(self._retry_until_back(lambda: self._send(simple, fresh=True)))

    # --- whether the target is still reachable ---

    def _mark_lost(self, requests: str, ending: str = "") -> TargetLostError:
        """Mark the target as lost because it is silent; return the error to raise.

        `requests`: the subject of the message: which requests had no complete answer.
        """
        timeout = self.settings.timeout
        hint = self.settings.wait.times.find_hint("", timeout, timeout) if self.answered else ""
        state = "is silent" if self._wait_budget.is_silent else "never ends an answer"
        self.lost = f"{self.settings.url} {state}: {requests} had no complete answer in {timeout:g} s{ending}{hint}"
        return TargetLostError(self.lost)

    def _probe_target(self, message: Message) -> None:
        """Find out whether the target still answers a simple request, and after many waits also an inference.

        Raises TargetLostError: the target does not answer.
        """
        self.settings.rate_limit.wait()
        plain = make_simple_request(is_call=message.method == GRPC_METHOD)
        found = self._retry_until_back(lambda: self._send(plain, fresh=True))
        waits = f"{self._wait_budget.waits} requests, with no answered inference between them,"
        if is_wait(found):
            raise self._mark_lost(waits, f", nor had {plain.method} {plain.path}")
        if self._wait_budget.is_used_up and not self._answers_inference_again():
            raise self._mark_lost(waits, f", though {plain.method} {plain.path} had one")

    def _answers_inference_again(self) -> bool:
        """Repeat the last answered inference, and return whether the target answers it again."""
        known = self._wait_budget.answered
        if known is None:
            return False
        self.settings.rate_limit.wait()
        repeated = self._retry_until_back(lambda: self._send(known, fresh=True))
        self._wait_budget.count([repeated])
        return not is_wait(repeated)

    def _probe_gone(self, message: Message) -> None:
        """Send a simple request to a server that is gone, unless it has become ready since.

        Raises UnreachableError: it has no answer of the server.
        """
        if self._is_ready_again:
            return  # one that limits the rate of requests may not answer another
        self.settings.rate_limit.wait()
        found = Reply(self._send(message, fresh=True))
        if found.has_no_server_answer:
            way = "with " + found.status_line if found.status else "by closing the connection"
            raise UnreachableError(
                f"{found.exchange.url.removesuffix(message.path)} answers everything {way}", is_refused=True
            )

    def _retry_until_back(self, exchange: Callable[[], T]) -> T:
        """Call `exchange`; if the connection fails, retry for up to `MAX_RESTART_WAIT_S` seconds.

        If the server has died and the user gave a restart command, run the command and wait for the server.

        Raises TargetLostError: the server did not come back, now or earlier.
        """
        if self.lost:
            raise TargetLostError(self.lost, has_died=self.has_died)
        restart, before = self.settings.restart, None
        runs, wait_s = restart.runs, WAIT_BEFORE_COMMAND_S if restart.command else MAX_RESTART_WAIT_S
        until = time.monotonic() + min(wait_s, self.settings.timeout)
        while True:
            try:
                return exchange()
            except UnreachableError as error:
                before, has_died = before or error.before, error.is_refused and error.transport in self.answered
                if error.is_untrusted or (time.monotonic() >= until and not (has_died and restart.run(runs))):
                    self.lost = f"{error}{TRUST_HINT if error.is_untrusted and not self.settings.ca_file else ''}"
                    self.lost += restart.failure
                    self.has_died = has_died
                    if before is not None:
                        return cast(T, before)
                    raise TargetLostError(self.lost, has_died=has_died) from error
                if restart.runs > runs:
                    runs, until = restart.runs, time.monotonic() + MAX_START_S
                if error.is_refused:
                    self._wait_until_ready(until)
            time.sleep(0.1)

    def _wait_until_ready(self, until: float) -> None:
        """Wait until the server is ready again, at most `MAX_RESTART_WAIT_S` seconds after it accepts connections."""
        message = (
            Message(READY_PATH, method="GET") if HTTP in self.settings.transports else make_grpc_call("ServerReady")
        )
        while (now := time.monotonic()) < until:
            with suppress(UnreachableError):
                self.settings.rate_limit.wait()
                found = self._send(message, fresh=True)
                if Reply(found).succeeded:
                    self._is_ready_again = True
                    return
                until = min(until, now + MAX_RESTART_WAIT_S)
            time.sleep(0.1)


def make_simple_request(*, is_call: bool = False) -> Message:
    """Return a request that every server answers, over HTTP or gRPC."""
    return make_grpc_call("ServerLive") if is_call else Message("/v2", method="GET")


def _mark_unanswered(exchange: Exchange) -> Exchange:
    """Mark the answer of a gateway in place of its server as none; other exchanges stay as they are."""
    if exchange.status is None or not Reply(exchange).has_no_server_answer:
        return exchange
    text = f"a gateway answered {Reply(exchange).status_line} in place of the server"
    return replace(exchange, status=None, code="", failure=TransportFailure(FailureKind.GONE, text))


def _shorten_answer(exchange: Exchange) -> Exchange:
    body = shorten(exchange.body, JUDGED_LIMIT)
    return exchange if body is exchange.body else replace(exchange, body=body)
