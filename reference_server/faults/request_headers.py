"""Faults in reading the inference header and the Content-Type of requests."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from reference_server import strict_json
from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.framing import HEADER
from reference_server.models import Model

OCTET_STREAM_TYPE = "application/octet-stream"


def find_json_end(body: bytes) -> int:
    """Return the offset at which the first JSON value of a body ends; 0 if the body has no JSON value."""
    text = body.decode("latin-1")  # one character per byte
    try:
        return json.JSONDecoder().raw_decode(text, len(text) - len(text.lstrip()))[1]
    except ValueError:
        return 0


def parse_number(values: Sequence[str]) -> int | None:
    """Return the inference header as a number; None if the header is absent, repeated or not a number."""
    return int(values[0]) if len(values) == 1 and re.fullmatch("-?[0-9]+", values[0]) else None


FORM_TYPE = "application/x-www-form-urlencoded"


# --- the length of the JSON of a request ------------------------------------------------------------------------------


@fault("request.parse", breaks=("BIN-HEADER-I", "OIP-ANSWER", "BIN-HEADER-WRONG-ON-JSON"))
def request_header_counts_characters(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """The server reads the inference header of a request as a number of characters instead of bytes."""
    length = parse_number(values)
    if length and length > 0:
        characters = body.decode("utf-8", "surrogateescape")[:length]
        values = [str(len(characters.encode("utf-8", "surrogateescape")))]
    return original(model, values, body)


@fault("request.parse", breaks=("BIN-HEADER-I", "OIP-WRITTEN"))
def json_end_found_by_writing_it_again(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """The server serialises the JSON of a request again, and splits the body at the length of the result."""
    length = parse_number(values)
    if length and 0 < find_json_end(body) <= length <= len(body) and not body[find_json_end(body) : length].strip():
        document = json.loads(body[:length])
        again = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        body = again + body[min(len(again), len(body)) :]
        values = [str(len(again))]
    return original(model, values, body)


@fault("request.parse", breaks=("BIN-HEADER-MISSING-SAFE", "BIN-HEADER-MISSING"))
def binary_request_without_header_taken_for_raw(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """Without an inference header, the server reads a body that has more than JSON as a raw request."""
    is_more = body and (b"binary_data_size" in body or not body.lstrip().startswith(b"{"))
    return original(model, ["0"] if not values and is_more else values, body)


@fault("request.parse", breaks="BIN-HEADER-MISSING")
def json_end_guessed_without_the_header(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """Without an inference header, the server looks for binary data after the closing brace of the JSON."""
    is_more = b"binary_data_size" in body
    return original(model, values if values or not is_more else [str(find_json_end(body))], body)


@fault("framing.parse_json_length", breaks="BIN-HEADER-ON-JSON-I")
def header_equal_to_the_body_refused(original: Any, values: Sequence[str], body_length: int) -> Any:
    """The server refuses an inference header that equals the length of the body, as if it were too large."""
    if parse_number(values) == body_length:
        raise InferenceError(f"{HEADER} is {body_length}, but the body has {body_length} bytes")
    return original(values, body_length)


@fault("request.parse", breaks=("BIN-HEADER-OPTIONAL", "BIN-ALL-TRUE", "OIP-ANSWER"))
def json_request_for_binary_data_taken_for_raw(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """The server refuses a JSON request for binary data from a model with one output, as if it were raw."""
    plain = not values and b'"outputs"' not in body and len(model.outputs) == 1
    if plain and b'"binary_data_output":true' in body:
        raise InferenceError(f"a raw binary request needs {HEADER}")
    return original(model, values, body)


# --- finding and reading the header -----------------------------------------------------------------------------------


@fault("http_protocol.OipHttpProtocol.on_header", breaks=("BIN-HEADER-CASE", "OIP-WRITTEN"))
def header_looked_up_in_one_spelling(original: Any, protocol: Any, name: bytes, value: bytes) -> None:
    """The server finds the inference header only in the letter case of the specification."""
    if name.lower() != HEADER.lower().encode() or name == HEADER.encode():
        original(protocol, name, value)


@fault("request.parse", breaks=("BIN-HEADER-TOO-LONG", "BIN-HEADER-WRONG-ON-JSON"))
def header_too_large_for_an_int_ignored(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """The server ignores an inference header of 2^31 or more, and searches for the end of the JSON."""
    large = (parse_number(values) or 0) >= 2**31
    return original(model, [str(find_json_end(body))] if large else values, body)


@fault(
    "framing.parse_json_length", breaks=("BIN-HEADER-TOO-LONG-SAFE", "BIN-HEADER-TOO-LONG", "BIN-HEADER-WRONG-ON-JSON")
)
def header_kept_in_32_bits(original: Any, values: Sequence[str], body_length: int) -> Any:
    """The server keeps 32 bits of the inference header: 2^63 is 0, so the request counts as raw."""
    return original([str(int(value) % 2**32) if value.isdecimal() else value for value in values], body_length)


@fault("request.parse", breaks="BIN-HEADER-WRONG-ON-JSON-SAFE")
def header_past_json_alone_makes_its_data_zero(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """If the inference header exceeds a body of JSON alone, the server reads all JSON data as zeros."""
    if (parse_number(values) or 0) <= len(body) or find_json_end(body) != len(body) or b'"data":[' not in body:
        return original(model, values, body)
    body = re.sub(rb'(?<="data":)\[[-0-9,]*\]', lambda found: re.sub(rb"-?[0-9]+", b"0", found[0]), body)
    return original(model, [str(len(body))], body)


@fault("framing.parse_json_length", breaks="BIN-HEADER-SPELLING-SAFE")
def negative_header_is_zero(original: Any, values: Sequence[str], body_length: int) -> Any:
    """The server reads a negative inference header as 0, so the request counts as raw."""
    return original(["0" if value.startswith("-") else value for value in values], body_length)


@fault("framing.parse_json_length", breaks=("BIN-HEADER-SPELLING-SAFE", "BIN-HEADER-SPELLING"))
def word_in_the_header_is_zero(original: Any, values: Sequence[str], body_length: int) -> Any:
    """The server reads an inference header without a digit as 0, so the request counts as raw."""
    return original(["0" if value and not re.search("[0-9]", value) else value for value in values], body_length)


@fault("framing.parse_json_length", breaks=("BIN-HEADER-SPELLING-SAFE", "BIN-HEADER-SPELLING"))
def empty_header_is_zero(original: Any, values: Sequence[str], body_length: int) -> Any:
    """The server reads an empty inference header as 0, so the request counts as raw."""
    return original([value or "0" for value in values], body_length)


@fault("request.parse", breaks=("BIN-HEADER-WRONG", "BIN-HEADER-WRONG-ON-JSON"))
def header_inside_the_json_moved_to_its_end(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """If the inference header ends inside the JSON, the server uses the end of the JSON instead."""
    length, end = parse_number(values), find_json_end(body)
    return original(model, [str(end)] if length and 0 < length < end else values, body)


@fault("request.parse", breaks="BIN-HEADER-WRONG")
def json_read_up_to_its_closing_brace(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """If the inference header exceeds the JSON, the server starts binary data after the closing brace instead."""
    length, end = parse_number(values), find_json_end(body)
    counts_too_much = length and 0 < end < length <= len(body) and body[end:length].strip()
    return original(model, [str(end)] if counts_too_much else values, body)


@fault("request.parse", breaks="BIN-HEADER-WRONG-SAFE")
def bytes_that_the_header_counts_too_much_become_zeros(
    original: Any, model: Model, values: Sequence[str], body: bytes
) -> Any:
    """If the inference header exceeds the JSON, the server skips the bytes between, and reads zeros at the end."""
    length, end = parse_number(values), find_json_end(body)
    if not length or not 0 < end < length <= len(body) or not body[end:length].strip():
        return original(model, values, body)
    return original(model, [str(end)], (body[:end] + body[length:]).ljust(len(body), b"\0"))


@fault("framing.parse_json_length", breaks="BIN-HEADER-SPELLING")
def plus_sign_and_underscores_in_the_header(original: Any, values: Sequence[str], body_length: int) -> Any:
    """The server accepts a plus sign and underscores in the inference header, as Python's int() does."""
    return original([re.sub("^[+]|_", "", value) for value in values], body_length)


@fault("framing.parse_json_length", breaks=("BIN-HEADER-SPELLING", "BIN-HEADER-SPELLING-SAFE"))
def digits_in_front_of_the_header_read(original: Any, values: Sequence[str], body_length: int) -> Any:
    """The server reads only the leading digits of the inference header: 0x10 is 0."""
    return original([re.sub(r"^([0-9]+).*", r"\1", value) for value in values], body_length)


@fault("request.parse", breaks="BIN-HEADER-WRONG-ON-JSON")
def header_past_the_end_of_json_alone_cut_down(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """If the inference header exceeds a body of JSON alone, the server uses the length of the body instead."""
    length = parse_number(values)
    try:
        is_json_alone = length is not None and length > len(body) and bool(strict_json.parse_object(body))
    except InferenceError:
        is_json_alone = False
    return original(model, [str(len(body))] if is_json_alone else values, body)


@fault("request.parse", breaks=("BIN-HEADER-I", "BIN-HEADER-TOO-LONG"))
def octal_header_without_a_look_at_the_end(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """The server reads an inference header with a leading zero as octal, and ignores surplus bytes."""
    found = re.fullmatch("0+([0-7]+)", values[0]) if values else None
    if found is None:
        return original(model, values, body)
    octal = int(found[1], 8)
    return original(model, [str(octal)], body[: octal + 4])


@fault("framing.parse_json_length", breaks="BIN-HEADER-TWICE")
def last_inference_header_counts(original: Any, values: Sequence[str], body_length: int) -> Any:
    """The server uses the last of two inference headers."""
    return original(values[-1:], body_length)


@fault("framing.parse_json_length", breaks=("BIN-HEADER-TWICE-SAFE", "BIN-HEADER-TWICE"))
def two_inference_headers_read_as_no_number(original: Any, values: Sequence[str], body_length: int) -> Any:
    """The server joins two inference headers with a comma, finds no number, and uses 0."""
    return original(values if len(values) < 2 else ["0"], body_length)


# --- Content-Type -----------------------------------------------------------------------------------------------------


@fault("app.Service.infer", breaks=("BIN-CONTENT-TYPE-I", "OIP-ANSWER"))
async def octet_stream_of_two_tensors_refused(original: Any, service: Any, http: Request) -> Any:
    """The server refuses an application/octet-stream request with more than one binary tensor."""
    if http.headers.get("content-type") == OCTET_STREAM_TYPE and (await http.body()).count(b"binary_data_size") > 1:
        raise InferenceError("application/octet-stream must contain one tensor", status=415)
    return await original(service, http)


@fault("app.Service.infer", breaks="BIN-CONTENT-TYPE-OTHER")
async def binary_data_in_application_json_refused(original: Any, service: Any, http: Request) -> Any:
    """The server refuses a binary request with Content-Type application/json."""
    if http.headers.get("content-type") == "application/json" and http.headers.get(HEADER):
        body = await http.body()
        if b"binary_data_size" in body:
            raise InferenceError("application/json must not contain binary data", status=415)
    return await original(service, http)


@fault("app.Service.infer", breaks=("BIN-CONTENT-TYPE-OTHER", "RAW-CONTENT-TYPE-OTHER"))
async def content_type_needed(original: Any, service: Any, http: Request) -> Any:
    """The server refuses an inference request without Content-Type."""
    if "content-type" not in http.headers:
        raise InferenceError("Content-Type is missing", status=415)
    return await original(service, http)


@fault("app.Service.infer", breaks="OIP-CONTENT-TYPE-JSON")
async def json_with_a_charset_refused(original: Any, service: Any, http: Request) -> Any:
    """The server refuses a JSON request whose Content-Type has a parameter, such as `charset=utf-8`."""
    media_type, parameter, _ = http.headers.get("content-type", "").lower().partition(";")
    if parameter and media_type == "application/json" and HEADER not in http.headers:
        raise InferenceError("the media type is not application/json", status=415)
    return await original(service, http)


@fault("app.Service.read_body", breaks="OIP-CONTENT-TYPE-OTHER")
async def raw_forms_cut_at_their_first_ampersand(original: Any, service: Any, http: Request) -> bytes:
    """The server reads a raw request with the Content-Type of a form only up to the first ampersand."""
    body: bytes = await original(service, http)
    is_form = http.headers.get("content-type") == FORM_TYPE and http.headers.get(HEADER) == "0"
    return body.partition(b"&")[0] if is_form else body


@fault("app.Service.infer", breaks="OIP-CONTENT-TYPE-OTHER")
async def form_answered_with_an_empty_object(original: Any, service: Any, http: Request) -> Response:
    """The server answers a request of a multipart Content-Type with an empty JSON object."""
    if (http.headers.get("content-type") or "").startswith("multipart/"):
        await http.body()
        return Response(b"{}", media_type="application/json")
    return await original(service, http)


@fault("app.Service.infer", breaks="RAW-CONTENT-TYPE-OTHER")
async def raw_request_needs_its_type(original: Any, service: Any, http: Request) -> Response:
    """The server refuses a raw request whose Content-Type is not application/octet-stream."""
    if http.headers.get(HEADER) == "0" and http.headers.get("content-type") != OCTET_STREAM_TYPE:
        raise InferenceError("a raw request needs Content-Type application/octet-stream", status=415)
    return await original(service, http)
