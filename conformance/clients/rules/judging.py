"""One request held against every rule of its transport."""

from __future__ import annotations

from typing import Final

from conformance.clients.miss import Judged
from conformance.clients.rules.call_rules import CALL_RULES
from conformance.clients.rules.http_rules import RULES
from conformance.clients.rules.rule import judged_by
from conformance.wire import taken_apart_call, taken_apart_request
from conformance.wire.received import Received

# What browsers and proxies ask of a path on their own account.
_NO_INFERENCE: Final = frozenset({"OPTIONS", "HEAD"})


def judged(received: Received) -> Judged:
    """Return what a request of a client meets and misses. Pure, never raises, linear in the size of the request.

    A request that asks for no inference is judged by nothing.
    """
    if not received.is_inference or received.method in _NO_INFERENCE:
        return Judged()
    if received.is_over_grpc:
        call = taken_apart_call.take_apart(received)
        return Judged() if call is None else judged_by(CALL_RULES, call)
    return judged_by(RULES, taken_apart_request.take_apart(received))
