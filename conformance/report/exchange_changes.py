"""Finds what differs between the answers of a server and the answers that its clients get through a gateway.

Two runs of one version of the suite send the same requests, so their recordings have the same calls. Headers about one
connection, or that change from answer to answer, are not compared (RFC 9110, 7.6.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from conformance.spec.text import escape_text
from conformance.transport.exchange import Exchange, Reply
from conformance.transport.har_bodies import compute_digest
from conformance.transport.recording import Recording
from conformance.wire import codings
from conformance.wire.request import INFERENCE_HEADER, Message

Pair = tuple[Exchange, Exchange]  # directly, and through the gateway


class ChangeKind(StrEnum):
    """What differs, in the order in which it is shown."""

    ANSWER = "answered in one way only"
    STATUS = "other status"
    ERROR = "error object replaced"
    HEADER_LOST = "header lost"
    HEADER_CHANGED = "header changed"
    MEMBER_LOST = "JSON member lost"
    MEMBER_CHANGED = "JSON member changed"
    MEMBER_ADDED = "JSON member added"
    ORDER = "outputs in another order"
    BYTES = "tensor bytes changed"
    BODY = "body changed"
    SERIALISED = "JSON written anew, with the same content"
    VERSION = "other HTTP version"
    HEADER_CASE = "header in another case"
    HEADER_ADDED = "header added"


@dataclass(slots=True)
class Change:
    """A difference between two answers.

    Attributes:
        name: the header, the JSON member, or what came in both ways; empty for other kinds.
        direct, through: what came directly, and through the gateway, as text for people.
        scope: the scope of the first exchange with this difference, and `count` the number of exchanges.
    """

    kind: ChangeKind
    name: str
    direct: str
    through: str
    scope: str = field(default="", kw_only=True)
    count: int = field(default=0, kw_only=True)


MAX_SHOWN: Final = 90  # characters of a value
_NOT_COMPARED: Final = frozenset(
    {
        *("connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
        *("age", "date", "set-cookie"),
    }
)

_LENGTHS: Final = ("content-length", INFERENCE_HEADER.lower())  # they differ because the body does


def pair_calls(direct: Recording, through: Recording) -> dict[str, list[Pair]]:
    """Return the exchanges with the same place and request in both recordings, by scope."""
    found: dict[str, list[Pair]] = {}
    for place in [place for place in direct.calls if place in through.calls]:
        for one, two in zip(direct.calls[place].exchanges, through.calls[place].exchanges, strict=False):
            if _is_same_request(one.message, two.message):
                found.setdefault(place[0], []).append((one, two))
    return found


def _is_same_request(one: Message, two: Message) -> bool:
    """Whether two messages are the same; base URL, host, further headers and names of models may differ."""
    others = dict(two.headers)
    return (
        (one.method, one.path.rpartition("/")[2]) == (two.method, two.path.rpartition("/")[2])
        and all(others.get(name, value) == value for name, value in one.headers if name.lower() != "host")
        and compute_digest(one.body) == compute_digest(two.body)
    )


def count_changes(pairs: Mapping[str, list[Pair]]) -> list[Change]:
    """Return the differences with their numbers, the most important kind first, then the most frequent."""
    found: dict[tuple[str, str], Change] = {}
    for scope, own in pairs.items():
        for change in (change for pair in own for change in find_changes(*pair)):
            known = found.setdefault((change.kind, change.name.lower()), change)
            known.count += 1
            known.scope = known.scope if known.scope.endswith("]") else scope  # a row says more than discovery
    kinds = list(ChangeKind)
    return sorted(found.values(), key=lambda each: (kinds.index(each.kind), -each.count, each.name))


def find_changes(direct: Exchange, through: Exchange) -> Iterator[Change]:
    """Yield the differences between two answers to one request; of answers with different status only the status."""
    one, two = Reply(direct), Reply(through)
    if direct.status is None or through.status is None:
        if direct.status is not through.status:
            yield Change(ChangeKind.ANSWER, "", one.outcome(), two.outcome())
        return
    is_other_error = _has_error(one) and not _has_error(two)
    if is_other_error:
        yield Change(ChangeKind.ERROR, "", one.outcome(), two.outcome())
    if one.status_line != two.status_line:
        yield Change(ChangeKind.STATUS, f"{one.status_line} -> {two.status_line}", one.outcome(), two.outcome())
    elif not is_other_error:
        if direct.version != through.version:
            versions = direct.version, through.version
            yield Change(ChangeKind.VERSION, " -> ".join(versions), *versions)
        yield from _compare_headers(one, two)
        decoded, other = _decode(one), _decode(two)
        if decoded is not None and other is not None:
            yield from _compare_bodies(decoded, other)
        elif one.header("Content-Encoding") == two.header("Content-Encoding"):
            yield from _compare_bodies(one, two)


def _has_error(reply: Reply) -> bool:
    """Whether a reply over HTTP refuses the request with an error object."""
    return reply.is_refusal and not reply.is_over_grpc and "error" in (reply.answer.document or {})


def _decode(reply: Reply) -> Reply | None:
    """Return a reply whose body is not compressed; None if its body cannot be decoded."""
    found = codings.decode_body(reply.body, reply.header("Content-Encoding"), is_text=False)
    return None if found.body is None or found.findings else Reply(replace(reply.exchange, body=found.body))


def _compare_headers(one: Reply, two: Reply) -> Iterator[Change]:
    direct, through = ({name.lower(): name for name, _ in each.exchange.headers} for each in (one, two))
    for name in sorted((direct.keys() | through.keys()) - _NOT_COMPARED):
        before, after = one.header(name), two.header(name)
        own, other = direct.get(name, name), through.get(name, name)
        if after is None:
            yield Change(ChangeKind.HEADER_LOST, own, f"{own}: {_show(before)}", f"no {own}")
        elif before is None:
            yield Change(ChangeKind.HEADER_ADDED, other, f"no {other}", f"{other}: {_show(after)}")
        elif before != after and name not in _LENGTHS:
            yield Change(ChangeKind.HEADER_CHANGED, own, f"{own}: {_show(before)}", f"{other}: {_show(after)}")
        elif own != other:
            yield Change(ChangeKind.HEADER_CASE, other, own, other)


def _compare_bodies(one: Reply, two: Reply) -> Iterator[Change]:
    if compute_digest(one.body) == compute_digest(two.body):
        return
    before, after = one.answer, two.answer
    if before.document is None or after.document is None or one.is_over_grpc:
        yield Change(ChangeKind.BODY, "", _show(one.body), _show(two.body))
        return
    if before.names() != after.names() and sorted(before.names()) == sorted(after.names()):
        yield Change(ChangeKind.ORDER, "", *(_show(", ".join(each.names())) for each in (before, after)))
        return
    yield from _compare_members(before.document, after.document, one.exchange.message, two.exchange.message)
    tensors = one.body[before.json_end :], two.body[after.json_end :]
    if tensors[0] != tensors[1]:
        yield Change(ChangeKind.BYTES, "", *map(_show, tensors))
    elif _is_same(before.document, after.document):
        yield Change(ChangeKind.SERIALISED, "", _show(one.body), _show(two.body))


def _compare_members(
    before: Mapping[str, Any], after: Mapping[str, Any], direct: Message, through: Message
) -> Iterator[Change]:
    for name in dict.fromkeys([*before, *after]):
        is_own_id = name == "id" and b'"id"' not in direct.body  # an id that nobody sent is another in each answer
        is_other_model = name == "model_name" and _find_model(direct) != _find_model(through)
        if _is_same(before.get(name), after.get(name)) or is_own_id or is_other_model:
            continue
        kind = ChangeKind.MEMBER_CHANGED if name in before else ChangeKind.MEMBER_ADDED
        texts = [f"{name}: {_show(side[name])}" if name in side else f"no {name}" for side in (before, after)]
        yield Change(kind if name in after else ChangeKind.MEMBER_LOST, name, *texts)


def _is_same(one: Any, two: Any) -> bool:
    return one == two or repr(one) == repr(two)  # NaN is not equal to itself


def _find_model(message: Message) -> str:
    return message.path.partition("/models/")[2].partition("/")[0]


def _show(value: Any) -> str:
    text = value[:MAX_SHOWN].decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return escape_text(text, MAX_SHOWN)
