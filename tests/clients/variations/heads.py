"""Clients that frame and send a request in another way."""

from __future__ import annotations

import gzip
import re
import time
import zlib
from dataclasses import replace
from typing import Any

from tests.clients import steps
from tests.clients.alterations import Original, variation
from tests.clients.honest import answer, connection
from tests.clients.honest.answer import Answer
from tests.clients.honest.caller import CallerRequest, CallerResult, RefusedError, Tensor, UnsupportedError
from tests.clients.honest.connection import Connection, read_final_head
from tests.clients.honest.http_client import HttpClient
from tests.clients.honest.request import LENGTH, Headers, Request
from tests.clients.honest.tensors import elements, packed

header_on_json_requests = steps.DESCRIBED.after(
    "", lambda made, text, has_data: made if has_data else [*made, (LENGTH, str(len(text)))]
).says("A request of JSON alone has the inference header, too.")


@variation("request.request")
def no_header_for_empty_tensors(original: Original, asked: CallerRequest) -> Request:
    """Where all binary tensors are empty, there is no inference header."""
    made: Request = original(asked)
    if asked.is_raw or any(tensor.data for tensor in asked.inputs if tensor.is_binary):
        return made
    headers = [
        (name, "application/json" if name == "Content-Type" else value)
        for name, value in made.headers
        if name != LENGTH
    ]
    return Request(made.method, made.target, headers, made.body)


@variation("request.request")
def binary_data_alone(original: Original, asked: CallerRequest) -> Request:
    """The client has no JSON tensors, and says so where they are asked for; it asks for all outputs as binary data."""
    forms = {one.form for one in asked.inputs} | {one.form for one in asked.outputs or ()}
    if "json" in (asked.all_outputs, *forms):
        raise UnsupportedError("JSON tensors")
    made: Request = original(replace(asked, all_outputs="binary"))
    return made


type_with_charset = steps.DESCRIBED.after(
    "",
    lambda made: [(name, f"{value}; charset=utf-8" if value == "application/json" else value) for name, value in made],
).says("The content type of JSON has a charset.")
type_in_capitals = steps.DESCRIBED.after(
    "", lambda made: [(name, value.upper() if name == "Content-Type" else value) for name, value in made]
).says("The content type is in capital letters.")
header_names_in_small_letters = steps.SPELLED.before("", text=lambda text: _respelled(text, str.lower)).says(
    "The names of headers are in small letters."
)
header_names_in_capitals = steps.SPELLED.before("", text=lambda text: _respelled(text, str.upper)).says(
    "The names of headers are in capital letters."
)


def _respelled(text: str, spell: object) -> str:
    assert callable(spell)
    first, *fields = text.split("\r\n")
    pairs = (field.partition(":") for field in fields)
    return "\r\n".join([first, *(f"{spell(name)}{colon}{value}" for name, colon, value in pairs)])


@variation("connection.spelled")
def no_blank_behind_colons(original: Original, text: str) -> bytes:
    """The values of headers follow the colon at once, with a blank behind them."""
    first, *fields = text.split("\r\n")
    return bytes(original("\r\n".join([first, *(field.replace(": ", ":", 1) + " " * bool(field) for field in fields)])))


@variation("connection.send_request")
def chunked_requests(_original: Original, kept: Connection, wanted: Request) -> None:
    """A body comes in chunks of an odd size."""
    pieces = [wanted.body[at : at + 4097] for at in range(0, len(wanted.body), 4097)]
    chunks = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in [*pieces, b""]]
    kept.send(in_chunks(connection.head(kept, wanted)) + b"".join(chunks))


@variation("connection.send_request")
def chunks_with_extensions(_original: Original, kept: Connection, wanted: Request) -> None:
    """A body comes in chunks with extensions, capital digits and a trailer."""
    pieces = [wanted.body[at : at + 173] for at in range(0, min(len(wanted.body), 10_000), 173)]
    pieces += [wanted.body[len(pieces) * 173 :]] if len(pieces) * 173 < len(wanted.body) else []
    chunks = [b"00%X;a=b\r\n%s\r\n" % (len(piece), piece) for piece in pieces]
    kept.send(in_chunks(connection.head(kept, wanted)) + b"".join(chunks) + b"0\r\nX-Sum: 7\r\n\r\n")


def in_chunks(head: bytes) -> bytes:
    """Return a head whose body comes in chunks."""
    return re.sub(rb"\r\nContent-Length: [0-9]+", b"\r\nTransfer-Encoding: chunked", head)


@variation("connection.version_line", "connection.stays_open")
def http_1_0(_original: Original, *answered: object) -> object:
    """Requests are those of HTTP/1.0, each on a connection of its own."""
    return False if answered else "HTTP/1.0"


@variation("connection.head", "connection.stays_open")
def connection_closed_each_time(original: Original, kept: Connection | str, wanted: Any) -> object:
    """Every request says `Connection: close`, and is the last on its connection."""
    if isinstance(kept, str):
        return False
    headers = [*wanted.headers, ("Connection", "close")]
    return bytes(original(kept, Request(wanted.method, wanted.target, headers, wanted.body)))


@variation("http_client.HttpClient.put_back")
def new_connection_each_time(_original: Original, _client: HttpClient, kept: Connection) -> None:
    """Every request has a connection of its own."""
    kept.close()


@variation("http_client.HttpClient.infer")
def tries_again_on_a_new_connection(
    original: Original, client: HttpClient, asked: CallerRequest, timeout: float
) -> CallerResult:
    """An inference whose connection broke is tried again, once, in the time that is left."""
    end = time.monotonic() + timeout
    try:
        given: CallerResult = original(client, asked, timeout)
    except RefusedError as error:
        if error.status or "ended" not in str(error) or end - time.monotonic() < 0.2:
            raise
        given = original(client, asked, end - time.monotonic())
    return given


@variation("connection.send_request")
def body_after_the_head(_original: Original, kept: Connection, wanted: Request) -> None:
    """Head and body go out apart, and the body in small pieces."""
    kept.send(connection.head(kept, wanted))
    for at in range(0, len(wanted.body), max(1, len(wanted.body) // 7)):
        kept.send(wanted.body[at : at + max(1, len(wanted.body) // 7)])


@variation("connection.send_request", "connection.read_final_head")
def asks_for_a_go_ahead(original: Original, kept: Connection, *wanted: Request) -> object:
    """The head says `Expect: 100-continue`, and the body follows as soon as the peer says so or waits."""
    if not wanted:
        earlier = vars(kept).pop("earlier", None)
        return earlier or original(kept)
    (one,) = wanted
    headers = [*one.headers, ("Expect", "100-continue")]
    kept.send(connection.head(kept, Request(one.method, one.target, headers, one.body)))
    if kept.is_usable():
        _wait(kept)
    if not kept.is_usable():
        head = connection.read_head(kept)
        if head[1] >= 200:
            vars(kept)["earlier"] = head
            return None
    kept.send(one.body)
    return None


def _wait(kept: Connection) -> None:
    end = time.monotonic() + 0.3
    while kept.is_usable() and time.monotonic() < end:
        time.sleep(0.005)


@variation("http_client.HttpClient.take")
def asks_for_metadata_first(original: Original, client: HttpClient, deadline: float) -> Connection:
    """Metadata of the server are asked for before each inference, on the same connection."""
    kept: Connection = original(client, deadline)
    kept.send(f"GET /v2 HTTP/1.1\r\nHost: {client.host}:{client.port}\r\n\r\n".encode())
    version, status, _, fields = read_final_head(kept)
    connection.read_body(kept, status, fields)
    if connection.stays_open(version, fields):
        return kept
    kept.close()
    fresh: Connection = original(client, deadline)
    return fresh


@variation("request.binary_data", datatypes="FP32 FP64")
def payloads_of_nan_lost_in_requests(_original: Original, tensor: Tensor) -> bytes:
    """Every NaN is sent as the one of the platform."""
    found = elements(tensor.datatype, tensor.data)
    return packed(tensor.datatype, [float("nan") if one != one else one for one in found])


@variation("request.request")
def gzip_requests(original: Original, asked: CallerRequest) -> Request:
    """Every request is compressed."""
    made: Request = original(asked)
    if asked.coding:
        return made
    headers = [*made.headers, ("Content-Encoding", "gzip")]
    return Request(made.method, made.target, headers, gzip.compress(made.body, mtime=0))


@variation("request.coded")
def gzip_of_several_members(original: Original, body: bytes, coding: str) -> bytes:
    """A compressed body has a member of gzip for each half, or the strongest compression of deflate."""
    if coding == "deflate":
        return zlib.compress(body, 9)
    half = len(body) // 2
    return bytes(original(body[:half], coding)) + bytes(original(body[half:], coding))


@variation("request.negotiated")
def accepts_nothing_said(_original: Original, asked: CallerRequest) -> Headers:
    """Accept-Encoding is sent only where the caller names a coding."""
    named = [("Content-Encoding", asked.coding)] if asked.coding else []
    return [*named, ("Accept-Encoding", f"{asked.accepts};q=1.0, identity;q=0.5")] if asked.accepts else named


@variation("connection.head")
def many_headers(original: Original, kept: Connection, wanted: Request) -> bytes:
    """A request has headers of its own, and a long one."""
    own = [("X-Request-Id", "7"), ("Accept", "*/*"), ("Cookie", "a=" + "b" * 3000), ("traceparent", "00-0-0-00")]
    return bytes(original(kept, Request(wanted.method, wanted.target, [*own, *wanted.headers], wanted.body)))


every_letter_encoded = steps.IN_PATH.instead("", lambda name: "".join(f"%{byte:02x}" for byte in name.encode())).says(
    "Every byte of a name in the path is percent-encoded."
)
query_of_its_own = steps.TARGET.after("", lambda made: f"{made}?key=7").says(
    "The path has a query, as gateways take keys."
)


@variation("answer.error_text")
def only_json_errors_shown(_original: Original, body: bytes) -> str:
    """Of an error the caller is told the message of the JSON, or the status and its reason."""
    try:
        return answer.message_in(answer.parsed(body))
    except Exception:  # whatever is wrong with the body, the status is told
        return ""


@variation("answer.given")
def body_beside_the_status(original: Original, asked: CallerRequest, found: Answer) -> CallerResult:
    """An error is told with the whole body of its answer."""
    try:
        given: CallerResult = original(asked, found)
    except RefusedError as error:
        text = found.body.decode(errors="replace")
        raise RefusedError(f"{found.status} {found.reason}: {error}: {text}", error.status) from error
    return given


TIMEOUT_S, LATE_S = 10.0, 0.25


ends_seen_late = steps.IS_USABLE.after(
    "", lambda made, self: time.monotonic() - (self.deadline - TIMEOUT_S) < LATE_S or bool(made)
).says("The end of a kept connection is seen a quarter of a second late, as on a busy machine.")
