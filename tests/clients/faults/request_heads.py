"""Requests over HTTP whose head is wrong: path, headers, framing, content coding."""

from __future__ import annotations

import json
import re
import socket
import time
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from tests.clients import steps
from tests.clients.alterations import Original, fault
from tests.clients.honest.answer import Answer
from tests.clients.honest.caller import CallerRequest, CallerResult, RefusedError
from tests.clients.honest.connection import Connection, head
from tests.clients.honest.request import LENGTH, Headers, Request, in_path
from tests.clients.variations import heads

counts_characters = steps.JSON_LENGTH.instead("CLIENT-SENDS-HEADER-LENGTH", lambda text: str(len(text.decode()))).says(
    "The inference header counts the characters of the JSON."
)
counts_escaped_characters = steps.JSON_LENGTH.instead(
    "CLIENT-SENDS-HEADER-LENGTH", lambda text: str(len(json.dumps(json.loads(text), separators=(",", ":"))))
).says("The inference header counts the JSON as it is with ASCII escapes.")
counts_a_nul = steps.JSON_LENGTH.instead(
    "CLIENT-SENDS-HEADER-LENGTH CLIENT-SENDS-HEADER-ON-JSON", lambda text: str(len(text) + 1)
).says("The inference header counts the NUL with which the JSON ends in memory.")
header_in_hexadecimal = steps.JSON_LENGTH.instead(
    "CLIENT-SENDS-HEADER-LENGTH CLIENT-SENDS-HEADER-ON-JSON", lambda text: hex(len(text))
).says("The inference header is a hexadecimal number.")
header_off_on_json_requests = steps.DESCRIBED.after(
    "CLIENT-SENDS-HEADER-ON-JSON",
    lambda made, text, has_data: made if has_data else [*made, (LENGTH, str(len(text) + 1))],
).says("A request of JSON alone has an inference header that counts one byte too many.")


@fault("request.request", misses="CLIENT-SENDS-HEADER-LENGTH")
def counts_after_coding(original: Original, asked: CallerRequest) -> Request:
    """The inference header of a compressed request counts the bytes of its compressed body."""
    made: Request = original(asked)
    if not asked.coding or asked.is_raw:
        return made
    headers = [(name, str(len(made.body)) if name == LENGTH else value) for name, value in made.headers]
    return Request(made.method, made.target, headers, made.body)


header_missing = steps.DESCRIBED.after(
    "CLIENT-SENDS-HEADER", lambda made: [(name, value) for name, value in made if name != LENGTH]
).says("A request with binary data has no inference header.")
header_twice = steps.DESCRIBED.after(
    "CLIENT-SENDS-HEADER", lambda made: made + [field for field in made if field[0] == LENGTH]
).says("The inference header is there twice.")
header_under_another_name = steps.DESCRIBED.after(
    "CLIENT-SENDS-HEADER", lambda made: [(f"X-{name}" if name == LENGTH else name, value) for name, value in made]
).says("The inference header is called X-Inference-Header-Content-Length.")


@fault("request.raw", misses="CLIENT-SENDS-RAW CLIENT-SENDS-JSON")
def header_on_raw_missing(original: Original, asked: CallerRequest) -> tuple[Headers, bytes]:
    """A raw binary request has no inference header."""
    headers, body = original(asked)
    return [(name, value) for name, value in headers if name != LENGTH], body


@fault("request.raw", misses="CLIENT-SENDS-RAW CLIENT-SENDS-JSON")
def header_on_raw_counts_the_body(original: Original, asked: CallerRequest) -> tuple[Headers, bytes]:
    """The inference header of a raw binary request is the length of the body."""
    headers, body = original(asked)
    return [(name, str(len(body)) if name == LENGTH else value) for name, value in headers], body


json_type_on_binary = steps.DESCRIBED.after(
    "CLIENT-SENDS-CONTENT-TYPE",
    lambda made: [(name, "application/json" if name == "Content-Type" else value) for name, value in made],
).says("A request with binary data has the content type of JSON.")
no_content_type = steps.DESCRIBED.after(
    "CLIENT-SENDS-CONTENT-TYPE", lambda made: [(name, value) for name, value in made if name != "Content-Type"]
).says("A request has no content type.")
form_type = steps.DESCRIBED.after(
    "CLIENT-SENDS-CONTENT-TYPE",
    lambda made: [
        (name, "application/x-www-form-urlencoded" if name == "Content-Type" else value) for name, value in made
    ],
).says("A request has the content type of a form.")
inference_by_put = steps.METHOD.instead("CLIENT-SENDS-POST", lambda: "PUT").says("An inference is a PUT.")
percent_signs_left_in_names = steps.IN_PATH.instead("CLIENT-SENDS-POST", lambda name: quote(name, safe="%")).says(
    "A percent sign in the name of a model stands in the path as it is."
)
blanks_as_plus_signs = steps.IN_PATH.after("CLIENT-SENDS-POST", lambda made: made.replace("%20", "+")).says(
    "A blank in the name of a model becomes a plus sign, as in a form."
)
version_left_out = steps.TARGET.after(
    "CLIENT-SENDS-POST", lambda made: made.partition("/versions/")[0].removesuffix("/infer") + "/infer"
).says("The version that the caller names is not asked for.")
version_called_latest = steps.TARGET.after(
    "CLIENT-SENDS-POST",
    lambda made: made.removesuffix("/infer") + "/versions/latest/infer",
    when=lambda asked: asked.version is None,
).says("Where the caller names no version, the path asks for the version `latest`.")
null_in_front_of_the_path = steps.TARGET.after("CLIENT-SENDS-POST", lambda made: f"/null{made}").says(
    "The path begins with the word null, for a path that the address of the server does not have."
)
compressed_requests_refused = steps.CODED.fail(
    "CLIENT-SENDS-VALUES", RefusedError("name 'gzip' is not defined"), when=lambda: True
).says("A compressed request is an error of the client before anything is sent.")


@fault("connection.head", misses="CLIENT-SENDS-SIZES-FILL CLIENT-SENDS-WHOLE", broad=True)
def content_length_is_json_only(original: Original, connection: Connection, request: Request) -> bytes:
    """Content-Length is the length of the JSON, without the binary data."""
    length = dict(request.headers).get(LENGTH, "0")
    made: bytes = original(connection, request)
    whole = f"Content-Length: {len(request.body)}\r\n".encode()
    return made if length == "0" else made.replace(whole, f"Content-Length: {length}\r\n".encode())


@fault("connection.send_request", misses="CLIENT-SENDS-WHOLE", broad=True)
def content_length_counts_more(_original: Original, connection: Connection, request: Request) -> None:
    """Content-Length is greater than the body, behind which the client ends its side of the connection."""
    more = f"\r\nContent-Length: {len(request.body) + 4}".encode()
    connection.send(re.sub(rb"\r\nContent-Length: [0-9]+", more, head(connection, request)) + request.body)
    connection.socket.shutdown(socket.SHUT_WR)


@fault("connection.send_request", misses="CLIENT-SENDS-WHOLE", broad=True)
def chunks_without_end(_original: Original, connection: Connection, request: Request) -> None:
    """A body comes in chunks, and the last one is missing."""
    in_chunks = re.sub(rb"\r\nContent-Length: [0-9]+", b"\r\nTransfer-Encoding: chunked", head(connection, request))
    connection.send(in_chunks + b"%x\r\n%s\r\n" % (len(request.body), request.body))
    connection.socket.shutdown(socket.SHUT_WR)


announces_gzip_unapplied = steps.CODED.instead("CLIENT-SENDS-CODING", lambda body: body).says(
    "A content coding is announced and not applied."
)
gzip_cut_short = steps.CODED.after("CLIENT-SENDS-CODING", lambda made: bytes(made[:-4])).says(
    "The checksum with which a compressed body ends is left out."
)
codings_mixed_up = steps.CODED.before(
    "CLIENT-SENDS-CODING", coding=lambda coding: "gzip" if coding == "deflate" else "deflate"
).says("What is announced as deflate is gzip, and the other way round.")


@fault("request.joined", "request.coded", misses="CLIENT-SENDS-CODING CLIENT-SENDS-SIZES-FILL")
def json_alone_compressed(original: Original, *arguments: object) -> bytes:
    """Of a compressed request the JSON alone is compressed, with the binary data behind it as they are."""
    if isinstance(arguments[1], list):
        json_alone_lengths["last"] = len(arguments[0])  # type: ignore[arg-type]
        return bytes(original(*arguments))
    body, length = arguments[0], json_alone_lengths.get("last", 0)
    assert isinstance(body, bytes)
    return bytes(original(body[:length], arguments[1])) + body[length:]


json_alone_lengths: dict[str, int] = {}


@fault("request.negotiated", misses="CLIENT-SENDS-CODING")
def announces_gzip_always(original: Original, asked: CallerRequest) -> Headers:
    """Content-Encoding says what the client accepts of the answer."""
    made = original(asked)
    return [*made, ("Content-Encoding", asked.accepts)] if asked.accepts and not asked.coding else made


@fault("connection.send_request", misses="CLIENT-SENDS-WHOLE")
def content_length_beside_chunks(_original: Original, connection: Connection, request: Request) -> None:
    """A body that comes in chunks has a Content-Length as well."""
    made = head(connection, request).replace(
        b"\r\nContent-Length:", b"\r\nTransfer-Encoding: chunked\r\nContent-Length:"
    )
    chunk = b"%x\r\n%s\r\n" % (len(request.body), request.body) if request.body else b""
    connection.send(made + chunk + b"0\r\n\r\n")


@fault("request.request", misses="CLIENT-SENDS-VALUES CLIENT-SENDS-OUTPUTS", broad=True)
def one_buffer_for_requests_at_once(original: Original, asked: CallerRequest) -> Request:
    """Requests that are made at once share a buffer: each is sent with the headers and the body of the last one."""
    made: Request = original(asked)
    shared_buffer["last"] = made
    time.sleep(0.01)
    last = shared_buffer["last"]
    return Request(made.method, made.target, last.headers, last.body)


shared_buffer: dict[str, Request] = {}


# --- of a client without JSON tensors ---------------------------------------------------------------------------------


@fault("request.request", misses="CLIENT-SENDS-POST")
def names_as_they_are_with_binary_data_alone(original: Original, asked: CallerRequest) -> Request:
    """A client without JSON tensors puts percent and question marks in names of models into the path as they are."""
    made: Request = heads.binary_data_alone.body(original, asked)
    return replace(made, target=made.target.replace(in_path(asked.model), quote(asked.model, safe="%?#&=+")))


@fault("request.request", "answer.given", misses="CLIENT-READS-ERROR CLIENT-READS-ERROR-TEXT")
def errors_swallowed_with_binary_data_alone(original: Original, asked: CallerRequest, *found: Answer) -> Any:
    """A client without JSON tensors gives its caller no outputs, and no error, for an answer with an error status."""
    if not found:
        return heads.binary_data_alone.body(original, asked)
    return CallerResult(()) if found[0].status >= 400 else original(asked, *found)
