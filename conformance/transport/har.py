"""Converts exchanges to entries of an HTTP Archive (HAR 1.2), without secrets, and entries back to exchanges.

Members that HAR does not define begin with an underscore:

    _scope, _call, _place     the position of the message in the run
    _note                     how the message was sent
    _go_ahead                 the reaction to a body that was held back
    _surplus                  how many bytes came with the answer, but after its end
    _failure, _failure_kind   a transport failure, in words and for programs
    _short_wait               the wait for the answer was shortened
    _slow                     the server may be slow instead of hanging
    _lost, _died              see `Call`
    _hung                     the target had hung before

A gRPC call is an entry as well. Its bodies are the serialized messages, its status is the HTTP status that corresponds
to the gRPC code, and `_grpc` has the code and the message. If gRPC was judged, `log` has a `_grpc` with the address.
`har_bodies` defines how bodies are written.

Source: HAR 1.2 Spec, 4.2 "log" and the sections that follow it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any, Final, Protocol

from conformance.spec.user_error import UserError
from conformance.transport import credentials
from conformance.transport.exchange import Call, Exchange, FailureKind, GoAhead, TransportFailure
from conformance.transport.har_bodies import BodyReader
from conformance.transport.settings import Settings
from conformance.wire.grpc_request import GRPC_METHOD
from conformance.wire.request import Message

# The file names of this version, and of earlier suites.
NAME, PLAIN_NAME = "run.har.xz", "run.har"
NAMES = (NAME, PLAIN_NAME)
# The members that hold the encoding of a body: HAR defines one for answers only.
REQUEST_ENCODING, ANSWER_ENCODING = "_encoding", "encoding"
HIDDEN = "..."


class HarError(UserError, ValueError):
    """A file is not a recording of a run; the message is one line."""


# --- writing ---------------------------------------------------------------------------------------------------------


class BodyConverter(Protocol):
    """Converts bodies to members of an entry: `BodyWriter`, or the journal, which writes the bodies later."""

    def build_members(self, body: bytes, encoding: str) -> dict[str, Any]:
        """Return the members that represent a body; `encoding` names the member that is `base64` for base64 text."""


def make_entries(call: Call, settings: Settings, bodies: BodyConverter) -> Iterator[dict[str, Any]]:
    """Yield an entry for each exchange of a call; one entry without an answer if the call has no exchanges."""
    url = settings.find_base_url(call.messages[0]) + call.messages[0].path
    for place, exchange in enumerate(call.exchanges or [Exchange(0, call.messages[0], url)]):
        started = datetime.now(UTC) - timedelta(seconds=exchange.elapsed)
        time = round(exchange.elapsed * 1000, 3)
        yield {
            "startedDateTime": started.isoformat(timespec="milliseconds"),
            "time": time,
            "request": _format_request(exchange, settings, bodies),
            "response": _format_response(exchange, settings.secrets, bodies),
            "cache": {},
            "timings": {"send": 0, "wait": time, "receive": 0},
            "_scope": call.scope,
            "_call": call.index,
            "_place": place,
            **_drop_empty(_note=exchange.note, _lost=call.lost, _go_ahead=exchange.go_ahead),
            **({"_died": True} if call.has_died else {}),
            **({"_hung": True} if call.has_hung else {}),
            **({"_surplus": exchange.surplus} if exchange.surplus else {}),
            **_format_failure(exchange),
            **(
                {"_grpc": {"code": exchange.code, "details": credentials.hide(exchange.details, settings.secrets)}}
                if _is_call(exchange)
                else {}
            ),
        }


def _is_call(exchange: Exchange) -> bool:
    return exchange.message.method == GRPC_METHOD


def _format_failure(exchange: Exchange) -> dict[str, Any]:
    if exchange.failure is None:
        return {}
    waits = {"_short_wait": exchange.is_short_wait, "_slow": exchange.is_slow}
    return {
        "_failure": exchange.failure.text,
        "_failure_kind": str(exchange.failure.kind),
        **{name: True for name, is_set in waits.items() if is_set},
    }


def _drop_empty(**members: str | None) -> dict[str, str]:
    return {name: value for name, value in members.items() if value}


def _format_request(exchange: Exchange, settings: Settings, bodies: BodyConverter) -> dict[str, Any]:
    message = exchange.message
    hidden = {name.lower() for name, _ in settings.headers if name.lower() != "host"}
    kind = message.header("Content-Type") or ""
    return {
        "method": "POST" if message.method == GRPC_METHOD else message.method,
        "url": exchange.url,
        "httpVersion": "HTTP/2" if _is_call(exchange) else "HTTP/1.1",
        "cookies": [],
        "headers": [*_format_headers(message.headers, ()), *_format_headers(settings.headers, hidden)],
        "queryString": [],
        "headersSize": -1,
        "bodySize": len(message.body),
        **(
            {"postData": {"mimeType": kind, **bodies.build_members(message.body, REQUEST_ENCODING)}}
            if message.body
            else {}
        ),
    }


def _format_response(exchange: Exchange, hidden: Sequence[str], bodies: BodyConverter) -> dict[str, Any]:
    headers = tuple((name, credentials.hide(value, hidden)) for name, value in exchange.headers)
    kind = next((value for name, value in headers if name.lower() == "content-type"), "")
    body = credentials.hide_bytes(exchange.body, hidden)
    return {
        "status": exchange.status or 0,
        "statusText": exchange.code,
        "httpVersion": "HTTP/2" if _is_call(exchange) else exchange.version,
        "cookies": [],
        "headers": _format_headers(headers, {"set-cookie"}),
        "content": {"size": len(body), "mimeType": kind, **bodies.build_members(body, ANSWER_ENCODING)},
        "redirectURL": "",
        "headersSize": -1,
        "bodySize": len(body),
    }


def _format_headers(headers: Sequence[tuple[str, str]], hidden: Collection[str]) -> list[dict[str, str]]:
    return [{"name": name, "value": HIDDEN if name.lower() in hidden else value} for name, value in headers]


def find_bodies(entry: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each object of an entry that has a body, with the name of its encoding member."""
    if "postData" in entry["request"]:
        yield entry["request"]["postData"], REQUEST_ENCODING
    yield entry["response"]["content"], ANSWER_ENCODING


def format_document(log: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the text of an archive in pieces: a line for `log`, and a line for each entry."""
    yield format_log_line(log)
    separator = ""
    for entry in entries:
        yield f"{separator}{json.dumps(entry)}"
        separator = ",\n"
    yield "\n]}}\n"


def format_log_line(log: Mapping[str, Any]) -> str:
    """Return the first line of an archive: the members of `log`, and the start of the list of entries."""
    return json.dumps({"log": log}).removesuffix("}}") + ', "entries": [\n'


# --- reading ---------------------------------------------------------------------------------------------------------


def parse_exchange(entry: Mapping[str, Any], bodies: BodyReader) -> Exchange:
    """Convert an entry to an exchange; a body that was stored only in part becomes an `Excerpt`.

    Raises ValueError, LookupError, TypeError: the entry is malformed.
    """
    validate_entry(entry)
    request, response = entry["request"], entry["response"]
    url = str(request["url"])
    body = bodies.read_body(request["postData"], REQUEST_ENCODING) if "postData" in request else b""
    grpc_status = entry.get("_grpc", {})
    return Exchange(
        0,
        Message(url, _parse_headers(request["headers"]), body, GRPC_METHOD if "_grpc" in entry else request["method"]),
        url,
        int(response["status"]) or None,
        _parse_headers(response["headers"]),
        bodies.read_body(response["content"], ANSWER_ENCODING),
        _parse_failure(entry),
        float(entry["time"]) / 1000,
        entry.get("_note", ""),
        version="HTTP/1.1" if "_grpc" in entry else str(response["httpVersion"]),
        go_ahead=GoAhead(entry["_go_ahead"]) if "_go_ahead" in entry else None,
        code=str(grpc_status.get("code", "")),
        details=str(grpc_status.get("details", "")),
        is_short_wait=entry.get("_short_wait", False),
        is_slow=entry.get("_slow", False),
        surplus=entry.get("_surplus", 0),
    )


def _parse_failure(entry: Mapping[str, Any]) -> TransportFailure | None:
    """Return the transport failure of an entry, or None; recordings of earlier versions have no `_failure_kind`."""
    text = entry.get("_failure")
    return TransportFailure(FailureKind(entry.get("_failure_kind", FailureKind.BROKEN)), str(text)) if text else None


def _parse_headers(headers: Sequence[Mapping[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((header["name"], header["value"]) for header in headers)


# --- the types of an entry's members: a recording may come from an untrusted source ----------------------------------
# Every member that is read is in one of these tables. Other members are ignored.

Kinds = type | tuple[type, ...]

_ENTRY: Final[Mapping[str, Kinds]] = {
    "startedDateTime": str,
    "time": (int, float),
    "request": dict,
    "response": dict,
    "_scope": str,
    "_call": int,
    "_place": int,
}
_OPTIONAL: Final[Mapping[str, Kinds]] = {
    "_note": str,
    "_lost": str,
    "_go_ahead": str,
    "_died": bool,
    "_hung": bool,
    "_failure": str,
    "_failure_kind": str,
    "_short_wait": bool,
    "_slow": bool,
    "_surplus": int,
    "_grpc": dict,
    "_client": str,
    "_received": dict,
}
_REQUEST: Final[Mapping[str, Kinds]] = {"method": str, "url": str, "headers": list}
_RESPONSE: Final[Mapping[str, Kinds]] = {"status": int, "httpVersion": str, "headers": list, "content": dict}
_HEADER: Final[Mapping[str, Kinds]] = {"name": str, "value": str}
_BODY: Final[Mapping[str, Kinds]] = {
    "text": str,
    "encoding": str,
    "_encoding": str,
    "_sha256": str,
    "_length": int,
    "_head": str,
    "_tail": str,
}
_GRPC: Final[Mapping[str, Kinds]] = {"code": str, "details": str}


def validate_entry(entry: Any) -> None:
    """Validate an entry: all members that `parse_exchange` reads must have the right types.

    Raises ValueError: a member is missing or has another type; the message is one line that names the member.
    """
    _expect_members(entry, "entry", _ENTRY, _OPTIONAL)
    if not isfinite(entry["time"]) or entry["time"] < 0:
        raise ValueError("time is not a number of milliseconds")
    request, response = entry["request"], entry["response"]
    _expect_members(request, "request", _REQUEST, {"postData": dict})
    _expect_members(response, "response", _RESPONSE)
    _expect_members(response["content"], "content", {}, _BODY)
    if "postData" in request:
        _expect_members(request["postData"], "postData", {}, _BODY)
    if "_grpc" in entry:
        _expect_members(entry["_grpc"], "_grpc", _GRPC)
    for header in (*request["headers"], *response["headers"]):
        if not _is_header(header):  # a fast path for recordings with a hundred thousand headers
            _expect_members(header, "header", _HEADER)


def _expect_members(
    found: Any, name: str, members: Mapping[str, Kinds], optional: Mapping[str, Kinds] | None = None
) -> None:
    if not isinstance(found, dict):
        raise ValueError(f"{name} is not an object")
    missing = next((member for member in members if member not in found), None)
    if missing is not None:
        raise ValueError(f"{name} has no {missing}")
    for member, kinds in (*members.items(), *(optional or {}).items()):
        if member in found and not _is_instance(found[member], kinds):
            raise ValueError(f"{name}: {member} has the wrong type")


def _is_header(found: Any) -> bool:
    return type(found) is dict and type(found.get("name")) is str and type(found.get("value")) is str


def _is_instance(value: Any, kinds: Kinds) -> bool:
    """Return whether a value is of one of these types; booleans do not count as numbers."""
    return isinstance(value, kinds) and (not isinstance(value, bool) or kinds is bool)
