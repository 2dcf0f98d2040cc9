"""Faults in reading the inference header and the Content-Type of requests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from starlette.responses import Response

from reference_server import strict_json
from reference_server.errors import InferenceError
from reference_server.faults import Fault, fault, steps
from reference_server.faults.edits import find_json_end, get_media_type, is_raw
from reference_server.framing import HEADER
from reference_server.models import Model

OCTET_STREAM_TYPE = "application/octet-stream"
FORM_TYPE = "application/x-www-form-urlencoded"
Values = Sequence[str]


def parse_number(values: Values) -> int | None:
    """Return the inference header as a number; None if the header is absent, repeated or not a number."""
    return int(values[0]) if len(values) == 1 and re.fullmatch("-?[0-9]+", values[0]) else None


def counts_too_much(header_values: Values, body: bytes) -> bool:
    """Whether the inference header counts more than the JSON, and more than white space."""
    length, end = parse_number(header_values), find_json_end(body)
    return bool(length and 0 < end < length <= len(body) and body[end:length].strip())


def use_json_end(_values: Values, body: bytes) -> Values:
    """Return the end of the JSON as the inference header."""
    return [str(find_json_end(body))]


def respell(breaks: str | tuple[str, ...], change: Callable[[str], str]) -> Fault:
    """Return a fault: the server reads each value of the inference header as if it were spelled in another way."""
    return steps.PARSE_LENGTH.before(breaks, values=lambda values: list(map(change, values)))


# --- the length of the JSON of a request ------------------------------------------------------------------------------


@fault(steps.PARSE, breaks=("BIN-HEADER-I", "OIP-ANSWER", "BIN-HEADER-WRONG-ON-JSON"))
def request_header_counts_characters(original: Any, model: Model, values: Values, body: bytes) -> Any:
    """The server reads the inference header of a request as a number of characters instead of bytes."""
    length = parse_number(values)
    if length and length > 0:
        characters = body.decode("utf-8", "surrogateescape")[:length]
        values = [str(len(characters.encode("utf-8", "surrogateescape")))]
    return original(model, values, body)


@fault(steps.PARSE, breaks=("BIN-HEADER-I", "OIP-WRITTEN"))
def json_end_found_by_writing_it_again(original: Any, model: Model, values: Values, body: bytes) -> Any:
    """The server serialises the JSON of a request again, and splits the body at the length of the result."""
    length = parse_number(values)
    if length and 0 < find_json_end(body) <= length <= len(body) and not body[find_json_end(body) : length].strip():
        document = json.loads(body[:length])
        again = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        body = again + body[min(len(again), len(body)) :]
        values = [str(len(again))]
    return original(model, values, body)


binary_request_without_header_taken_for_raw = steps.PARSE.before(
    ("BIN-HEADER-MISSING-SAFE", "BIN-HEADER-MISSING"),
    header_values=lambda _: ["0"],
    when=lambda header_values, body: (
        not header_values and body and (b"binary_data_size" in body or not body.lstrip().startswith(b"{"))
    ),
).says("Without an inference header, the server reads a body that has more than JSON as a raw request.")
json_end_guessed_without_the_header = steps.PARSE.before(
    "BIN-HEADER-MISSING",
    header_values=use_json_end,
    when=lambda header_values, body: not header_values and b"binary_data_size" in body,
).says("Without an inference header, the server looks for binary data after the closing brace of the JSON.")
header_equal_to_the_body_refused = steps.PARSE_LENGTH.refuse(
    "BIN-HEADER-ON-JSON-I", lambda values, body_length: parse_number(values) == body_length
).says("The server refuses an inference header that equals the length of the body, as if it were too large.")
json_request_for_binary_data_taken_for_raw = steps.PARSE.refuse(
    ("BIN-HEADER-OPTIONAL", "BIN-ALL-TRUE"),
    lambda model, header_values, body: (
        not header_values
        and len(model.outputs) == 1
        and b'"outputs"' not in body
        and b'"binary_data_output":true' in body
    ),
).says("The server refuses a JSON request for binary data from a model with one output, as if it were raw.")


# --- finding and reading the header -----------------------------------------------------------------------------------


@fault(steps.ON_HEADER, breaks="BIN-HEADER-CASE")
def header_looked_up_in_one_spelling(original: Any, protocol: Any, name: bytes, value: bytes) -> None:
    """The server finds the inference header only in the letter case of the specification."""
    if name.lower() != HEADER.lower().encode() or name == HEADER.encode():
        original(protocol, name, value)


header_too_large_for_an_int_ignored = steps.PARSE.before(
    ("BIN-HEADER-TOO-LONG", "BIN-HEADER-WRONG-ON-JSON"),
    header_values=use_json_end,
    when=lambda header_values: (parse_number(header_values) or 0) >= 2**31,
).says("The server ignores an inference header of 2^31 or more, and searches for the end of the JSON.")
header_kept_in_32_bits = respell(
    ("BIN-HEADER-TOO-LONG-SAFE", "BIN-HEADER-TOO-LONG", "BIN-HEADER-WRONG-ON-JSON"),
    lambda value: str(int(value) % 2**32) if value.isdecimal() else value,
).says("The server keeps 32 bits of the inference header: 2^63 is 0, so the request counts as raw.")


@fault(steps.PARSE, breaks="BIN-HEADER-WRONG-ON-JSON-SAFE")
def header_past_json_alone_makes_its_data_zero(original: Any, model: Model, values: Values, body: bytes) -> Any:
    """If the inference header exceeds a body of JSON alone, the server reads all JSON data as zeros."""
    if (parse_number(values) or 0) <= len(body) or find_json_end(body) != len(body) or b'"data":[' not in body:
        return original(model, values, body)
    body = re.sub(rb'(?<="data":)\[[-0-9,]*\]', lambda found: re.sub(rb"-?[0-9]+", b"0", found[0]), body)
    return original(model, [str(len(body))], body)


negative_header_is_zero = respell(
    "BIN-HEADER-SPELLING-SAFE", lambda value: "0" if value.startswith("-") else value
).says("The server reads a negative inference header as 0, so the request counts as raw.")
word_in_the_header_is_zero = respell(
    ("BIN-HEADER-SPELLING-SAFE", "BIN-HEADER-SPELLING"),
    lambda value: "0" if value and not re.search("[0-9]", value) else value,
).says("The server reads an inference header without a digit as 0, so the request counts as raw.")
empty_header_is_zero = respell(("BIN-HEADER-SPELLING-SAFE", "BIN-HEADER-SPELLING"), lambda value: value or "0").says(
    "The server reads an empty inference header as 0, so the request counts as raw."
)
header_inside_the_json_moved_to_its_end = steps.PARSE.before(
    ("BIN-HEADER-WRONG", "BIN-HEADER-WRONG-ON-JSON"),
    header_values=use_json_end,
    when=lambda header_values, body: 0 < (parse_number(header_values) or 0) < find_json_end(body),
).says("If the inference header ends inside the JSON, the server uses the end of the JSON instead.")
json_read_up_to_its_closing_brace = steps.PARSE.before(
    "BIN-HEADER-WRONG", header_values=use_json_end, when=counts_too_much
).says("If the inference header exceeds the JSON, the server starts binary data after the closing brace instead.")


@fault(steps.PARSE, breaks="BIN-HEADER-WRONG-SAFE")
def bytes_that_the_header_counts_too_much_become_zeros(original: Any, model: Model, values: Values, body: bytes) -> Any:
    """If the inference header exceeds the JSON, the server skips the bytes between, and reads zeros at the end."""
    if not counts_too_much(values, body):
        return original(model, values, body)
    end = find_json_end(body)
    return original(model, [str(end)], (body[:end] + body[int(values[0]) :]).ljust(len(body), b"\0"))


plus_sign_and_underscores_in_the_header = respell(
    "BIN-HEADER-SPELLING", lambda value: re.sub("^[+]|_", "", value)
).says("The server accepts a plus sign and underscores in the inference header, as Python's int() does.")
digits_in_front_of_the_header_read = respell(
    ("BIN-HEADER-SPELLING", "BIN-HEADER-SPELLING-SAFE"), lambda value: re.sub(r"^([0-9]+).*", r"\1", value)
).says("The server reads only the leading digits of the inference header: 0x10 is 0.")


@fault(steps.PARSE, breaks="BIN-HEADER-WRONG-ON-JSON")
def header_past_the_end_of_json_alone_cut_down(original: Any, model: Model, values: Values, body: bytes) -> Any:
    """If the inference header exceeds a body of JSON alone, the server uses the length of the body instead."""
    length = parse_number(values)
    try:
        is_json_alone = length is not None and length > len(body) and bool(strict_json.parse_object(body))
    except InferenceError:
        is_json_alone = False
    return original(model, [str(len(body))] if is_json_alone else values, body)


@fault(steps.PARSE, breaks=("BIN-HEADER-I", "BIN-HEADER-TOO-LONG"))
def octal_header_without_a_look_at_the_end(original: Any, model: Model, values: Values, body: bytes) -> Any:
    """The server reads an inference header with a leading zero as octal, and ignores surplus bytes."""
    found = re.fullmatch("0+([0-7]+)", values[0]) if values else None
    if found is None:
        return original(model, values, body)
    octal = int(found[1], 8)
    return original(model, [str(octal)], body[: octal + 4])


last_inference_header_counts = steps.PARSE_LENGTH.before("BIN-HEADER-TWICE", values=lambda values: values[-1:]).says(
    "The server uses the last of two inference headers."
)
two_inference_headers_read_as_no_number = steps.PARSE_LENGTH.before(
    ("BIN-HEADER-TWICE-SAFE", "BIN-HEADER-TWICE"), values=lambda values: values if len(values) < 2 else ["0"]
).says("The server joins two inference headers with a comma, finds no number, and uses 0.")

# --- Content-Type -----------------------------------------------------------------------------------------------------

octet_stream_of_two_tensors_refused = steps.INFER.refuse(
    ("BIN-CONTENT-TYPE-I", "OIP-ANSWER"),
    lambda http, body: get_media_type(http) == OCTET_STREAM_TYPE and body.count(b"binary_data_size") > 1,
    status=415,
).says("The server refuses an application/octet-stream request with more than one binary tensor.")
binary_data_in_application_json_refused = steps.INFER.refuse(
    "BIN-CONTENT-TYPE-OTHER",
    lambda http, body: (
        get_media_type(http) == "application/json" and http.headers.get(HEADER) and b"binary_data_size" in body
    ),
    status=415,
).says("The server refuses a binary request with Content-Type application/json.")
content_type_needed = steps.INFER.refuse(
    ("BIN-CONTENT-TYPE-OTHER", "RAW-CONTENT-TYPE-OTHER"), lambda http: "content-type" not in http.headers, status=415
).says("The server refuses an inference request without Content-Type.")
json_with_a_charset_refused = steps.INFER.refuse(
    "OIP-CONTENT-TYPE-JSON",
    lambda http: re.match("(?i)application/json;.", get_media_type(http)) and HEADER not in http.headers,
    status=415,
).says("The server refuses a JSON request whose Content-Type has a parameter, such as `charset=utf-8`.")
raw_forms_cut_at_their_first_ampersand = steps.READ_BODY.after(
    "OIP-CONTENT-TYPE-OTHER",
    lambda body: body.partition(b"&")[0],
    when=lambda http: get_media_type(http) == FORM_TYPE and is_raw(http),
).says("The server reads a raw request with the Content-Type of a form only up to the first ampersand.")
form_answered_with_an_empty_object = steps.INFER.instead(
    "OIP-CONTENT-TYPE-OTHER",
    lambda: Response(b"{}", media_type="application/json"),
    when=lambda http: get_media_type(http).startswith("multipart/"),
).says("The server answers a request of a multipart Content-Type with an empty JSON object.")
raw_request_needs_its_type = steps.INFER.refuse(
    "RAW-CONTENT-TYPE-OTHER", lambda http: is_raw(http) and get_media_type(http) != OCTET_STREAM_TYPE, status=415
).says("The server refuses a raw request whose Content-Type is not application/octet-stream.")
