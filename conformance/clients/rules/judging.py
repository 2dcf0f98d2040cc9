"""One request held against every rule of its transport."""

from __future__ import annotations

from typing import Final

from conformance.clients.rules.call_rules import CALL_RULES
from conformance.clients.rules.http_rules import RULES
from conformance.clients.rules.rule import apply_rules
from conformance.clients.violation import RuleResults
from conformance.wire import parsed_call, parsed_request
from conformance.wire.client_request import ClientRequest

# What browsers and proxies ask of a path on their own account.
_NO_INFERENCE: Final = frozenset({"OPTIONS", "HEAD"})


def judge_request(received: ClientRequest) -> RuleResults:
    """Return what a request of a client meets and misses. Pure, never raises, linear in the size of the request.

    A request that asks for no inference is judged by nothing.
    """
    if not received.is_inference or received.method in _NO_INFERENCE:
        return RuleResults()
    if received.is_over_grpc:
        call = parsed_call.parse(received)
        return RuleResults() if call is None else apply_rules(CALL_RULES, call)
    return apply_rules(RULES, parsed_request.parse(received))
