"""Records one exchange of the suite with the bundled server for each requirement without a golden case.

Strategy: the first row of the clearest check is judged. The page shows one exchange of that row: the exchange whose
index is in the ledger, else the first refused request, else the last exchange, because earlier exchanges usually serve
as references.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlsplit

from conformance.judging.message_rendering import format_message
from conformance.judging.session import Session
from conformance.pages import examples, requirement_facts
from conformance.pages.message_lines import SHOWN_BYTES, find_group_width, format_bytes, format_json
from conformance.spec import ledger
from conformance.spec.check import Case
from conformance.spec.ledger import Party
from conformance.transport import settings
from conformance.transport.exchange import Call, Exchange, Reply
from conformance.transport.reference import ReferenceServer
from conformance.transport.target import Target
from conformance.wire.grpc_answer import parse_message
from conformance.wire.grpc_request import SERVICE, parse_request
from conformance.wire.json_text import parse_json

MAX_LINES = 30
# Response headers that change with each run.
VOLATILE_HEADERS = ("date", "server")
Lines = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """An exchange as lines of text.

    Attributes:
        row: the id of the row; empty if the check has only one row.
        before: the number of exchanges that the row makes before this one.
    """

    check: str
    row: str
    before: int
    request: Lines
    answer: Lines


@cache
def load() -> Mapping[str, RecordedExchange]:
    """Return requirement id -> an exchange that shows it, for requirements without a golden case.

    Raises RuntimeError: the bundled server did not start.
    """
    server = ReferenceServer(grpc=True)
    calls: list[Call] = []
    try:
        with Session(Target(settings.make_settings(server.url, grpc=server.grpc))) as session:
            session.discover()
            session.target.journal = calls.append
            found = {}
            for name, clearest in _find_checks_without_case():
                calls.clear()
                case = Case(clearest.check, clearest.rows[0])
                session.judge(case)
                exchanges = [exchange for call in calls if call.scope == case.key for exchange in call.exchanges]
                found[name] = _build_recorded_exchange(name, clearest, exchanges)
            return found
    finally:
        server.stop()


def _find_checks_without_case() -> Iterator[tuple[str, requirement_facts.RequirementCheck]]:
    for entry in ledger.load_for_party(Party.SERVER):
        if entry.id not in examples.load() and (found := requirement_facts.find_clearest_check(entry.id)):
            yield entry.id, found


def _build_recorded_exchange(
    requirement: str, found: requirement_facts.RequirementCheck, exchanges: list[Exchange]
) -> RecordedExchange:
    refused = (place for place, exchange in enumerate(exchanges) if Reply(exchange).is_refusal)
    chosen = ledger.get_requirement(requirement).example
    place = chosen if isinstance(chosen, int) else next(refused, len(exchanges) - 1)
    exchange = exchanges[place]
    request, answer = (
        (_format_grpc_request, _format_grpc_answer)
        if Reply(exchange).is_over_grpc
        else (_format_request, _format_answer)
    )
    port = urlsplit(exchange.url).netloc  # differs in each run
    sides = [tuple(line.replace(port, "127.0.0.1:8000") for line in side(exchange)) for side in (request, answer)]
    return RecordedExchange(found.check.id, found.rows[0].id, place, *sides)


# --- over HTTP --------------------------------------------------------------------------------------------------------


def _format_request(exchange: Exchange) -> Iterator[str]:
    message = exchange.message
    yield f"{message.method} {message.path}" + (f"  ({exchange.note})" if exchange.note else "")
    yield from (f"{name}: {value}" for name, value in message.headers)
    if exchange.is_chunked:
        yield "Transfer-Encoding: chunked"
    elif message.body:
        yield f"Content-Length: {len(message.body)}"
    if message.body:
        yield ""
        yield from _format_body(message.body, message.json_length)


def _format_answer(exchange: Exchange) -> Iterator[str]:
    reply = Reply(exchange)
    yield reply.status_line
    yield from (f"{name}: {value}" for name, value in exchange.headers if name.lower() not in VOLATILE_HEADERS)
    yield ""
    outputs = [output for output in reply.answer.outputs if output.span is not None]
    yield from _format_body(exchange.body[: reply.answer.json_end] if outputs else exchange.body)
    for output in outputs:
        name = f"{output.name} {output.datatype} {list(output.shape or ())}"
        yield from format_bytes(name, exchange.body[slice(*output.span or ())], find_group_width(output.datatype))


def _format_body(octets: bytes, json_length: int = 0) -> Iterator[str]:
    """Yield a body: its first `json_length` bytes (or all) as JSON, the rest as text or digits."""
    head = octets[: json_length or None]
    if isinstance(parse_json(head).value, dict):
        yield from format_json(head)
        octets = octets[len(head) :]
    text = octets.decode("ascii", "replace")
    if octets and all(line.isprintable() and line.isascii() for line in text.splitlines()):
        yield from format_json(octets)
    elif octets:
        yield from format_bytes("octets", octets, SHOWN_BYTES)


# --- over gRPC --------------------------------------------------------------------------------------------------------


def _format_grpc_request(exchange: Exchange) -> Iterator[str]:
    yield f"{_find_method(exchange)} of {SERVICE}" + (f"  ({exchange.note})" if exchange.note else "")
    yield ""
    yield from _limit_lines(format_message(parse_request(exchange.message), len(exchange.message.body), lines=True))


def _format_grpc_answer(exchange: Exchange) -> Iterator[str]:
    yield f"status {exchange.code}" + (f": {exchange.details}" if exchange.details else "")
    yield from _limit_lines(
        format_message(parse_message(exchange.body, _find_method(exchange)), len(exchange.body), lines=True)
    )


def _find_method(exchange: Exchange) -> str:
    return exchange.message.path.removeprefix(f"/{SERVICE}/")


def _limit_lines(text: str) -> Iterator[str]:
    lines = text.splitlines()
    yield from lines[:MAX_LINES]
    if len(lines) > MAX_LINES:
        yield f"... ({len(lines)} lines)"
