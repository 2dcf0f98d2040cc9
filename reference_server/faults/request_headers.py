"""Wrong reading of the inference header and Content-Type of requests."""

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

OCTET_STREAM = "application/octet-stream"


def find_json_end(body: bytes) -> int:
    """Return the end offset of the first JSON value of a body; 0 if there is none."""
    text = body.decode("latin-1")  # one character per byte
    try:
        return json.JSONDecoder().raw_decode(text, len(text) - len(text.lstrip()))[1]
    except ValueError:
        return 0


def parse_number(values: Sequence[str]) -> int | None:
    """Return the header as a number; None if it is absent, not a number, or repeated."""
    return int(values[0]) if len(values) == 1 and re.fullmatch("-?[0-9]+", values[0]) else None


FORM = "application/x-www-form-urlencoded"


# --- the length of the JSON of a request ------------------------------------------------------------------------------


@fault("request.parse", breaks=("BIN-HEADER-I", "OIP-ANSWER", "BIN-HEADER-WRONG-ON-JSON"))
def request_header_counts_characters(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """The inference header of a request is taken for a number of characters, not of bytes."""
    length = parse_number(values)
    if length and length > 0:
        characters = body.decode("utf-8", "surrogateescape")[:length]
        values = [str(len(characters.encode("utf-8", "surrogateescape")))]
    return original(model, values, body)


@fault("request.parse", breaks=("BIN-HEADER-I", "OIP-WRITTEN"))
def json_end_found_by_writing_it_again(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """The server measures the JSON of a request by writing it again in its own style."""
    length = parse_number(values)
    if length and 0 < find_json_end(body) <= length <= len(body) and not body[find_json_end(body) : length].strip():
        document = json.loads(body[:length])
        again = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        body = again + body[min(len(again), len(body)) :]
        values = [str(len(again))]
    return original(model, values, body)


@fault("request.parse", breaks=("BIN-HEADER-MISSING-SAFE", "BIN-HEADER-MISSING"))
def binary_request_without_header_taken_for_raw(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """A body that is more than JSON, or none, is a raw request, also without an inference header."""
    is_more = body and (b"binary_data_size" in body or not body.lstrip().startswith(b"{"))
    return original(model, ["0"] if not values and is_more else values, body)


@fault("request.parse", breaks="BIN-HEADER-MISSING")
def json_end_guessed_without_the_header(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """Without an inference header the binary data are looked for behind the closing brace."""
    is_more = b"binary_data_size" in body
    return original(model, values if values or not is_more else [str(find_json_end(body))], body)


@fault("framing.json_length", breaks="BIN-HEADER-ON-JSON-I")
def header_equal_to_the_body_refused(original: Any, values: Sequence[str], body_length: int) -> Any:
    """An inference header that equals the length of the body counts as one beyond it."""
    if parse_number(values) == body_length:
        raise InferenceError(f"{HEADER} is {body_length}, but the body has {body_length} bytes")
    return original(values, body_length)


@fault("request.parse", breaks=("BIN-HEADER-OPTIONAL", "BIN-ALL-TRUE", "OIP-ANSWER"))
def json_request_for_binary_data_taken_for_raw(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """A JSON request by which the only output of a model shall be binary is refused as a raw request without header."""
    plain = not values and b'"outputs"' not in body and len(model.outputs) == 1
    if plain and b'"binary_data_output":true' in body:
        raise InferenceError(f"a raw binary request needs {HEADER}")
    return original(model, values, body)


# --- finding and reading the header -----------------------------------------------------------------------------------


@fault("http_protocol.OipHttpProtocol.on_header", breaks=("BIN-HEADER-CASE", "OIP-WRITTEN"))
def header_looked_up_in_one_spelling(original: Any, protocol: Any, name: bytes, value: bytes) -> None:
    """The inference header is found only when it is spelled as the documents spell it."""
    if name.lower() != HEADER.lower().encode() or name == HEADER.encode():
        original(protocol, name, value)


@fault("request.parse", breaks=("BIN-HEADER-TOO-LONG", "BIN-HEADER-WRONG-ON-JSON"))
def header_too_large_for_an_int_ignored(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """An inference header that does not fit 31 bits is ignored, and the end of the JSON looked for."""
    large = (parse_number(values) or 0) >= 2**31
    return original(model, [str(find_json_end(body))] if large else values, body)


@fault("request.parse", breaks="BIN-HEADER-WRONG-ON-JSON-SAFE")
def header_past_json_alone_makes_its_data_zero(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """A header that exceeds a body of JSON alone asks for tensors that are not there, and they count as zeros."""
    if (parse_number(values) or 0) <= len(body) or find_json_end(body) != len(body) or b'"data":[' not in body:
        return original(model, values, body)
    body = re.sub(rb'(?<="data":)\[[-0-9,]*\]', lambda found: re.sub(rb"-?[0-9]+", b"0", found[0]), body)
    return original(model, [str(len(body))], body)


@fault("framing.json_length", breaks="BIN-HEADER-SPELLING-SAFE")
def negative_header_is_zero(original: Any, values: Sequence[str], body_length: int) -> Any:
    """A negative inference header is raised to 0, which makes the request a raw one."""
    return original(["0" if value.startswith("-") else value for value in values], body_length)


@fault("framing.json_length", breaks=("BIN-HEADER-SPELLING-SAFE", "BIN-HEADER-SPELLING"))
def word_in_the_header_is_zero(original: Any, values: Sequence[str], body_length: int) -> Any:
    """An inference header without a digit reads as 0, which makes the request a raw one."""
    return original(["0" if value and not re.search("[0-9]", value) else value for value in values], body_length)


@fault("framing.json_length", breaks=("BIN-HEADER-SPELLING-SAFE", "BIN-HEADER-SPELLING"))
def empty_header_is_zero(original: Any, values: Sequence[str], body_length: int) -> Any:
    """An empty inference header reads as 0, which makes the request a raw one."""
    return original([value or "0" for value in values], body_length)


@fault("request.parse", breaks=("BIN-HEADER-WRONG", "BIN-HEADER-WRONG-ON-JSON"))
def header_inside_the_json_moved_to_its_end(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """An inference header that ends inside the JSON is moved to the closing brace."""
    length, end = parse_number(values), find_json_end(body)
    return original(model, [str(end)] if length and 0 < length < end else values, body)


@fault("request.parse", breaks="BIN-HEADER-WRONG")
def json_read_up_to_its_closing_brace(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """What the inference header counts behind the closing brace is taken for binary data."""
    length, end = parse_number(values), find_json_end(body)
    counts_too_much = length and 0 < end < length <= len(body) and body[end:length].strip()
    return original(model, [str(end)] if counts_too_much else values, body)


@fault("framing.json_length", breaks="BIN-HEADER-SPELLING")
def plus_sign_and_underscores_in_the_header(original: Any, values: Sequence[str], body_length: int) -> Any:
    """The inference header is read as Python reads an integer, with sign and underscores."""
    return original([re.sub("^[+]|_", "", value) for value in values], body_length)


@fault("framing.json_length", breaks=("BIN-HEADER-SPELLING", "BIN-HEADER-SPELLING-SAFE"))
def digits_in_front_of_the_header_read(original: Any, values: Sequence[str], body_length: int) -> Any:
    """The digits at the beginning of the inference header are read, and the rest is ignored: 0x10 is 0."""
    return original([re.sub(r"^([0-9]+).*", r"\1", value) for value in values], body_length)


@fault("request.parse", breaks="BIN-HEADER-WRONG-ON-JSON")
def header_past_the_end_of_json_alone_cut_down(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """A header that is larger than a body of JSON alone is taken for the length of that body."""
    length = parse_number(values)
    try:
        is_json_alone = length is not None and length > len(body) and bool(strict_json.parse_object(body))
    except InferenceError:
        is_json_alone = False
    return original(model, [str(len(body))] if is_json_alone else values, body)


@fault("request.parse", breaks=("BIN-HEADER-I", "BIN-HEADER-TOO-LONG"))
def octal_header_without_a_look_at_the_end(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """A header that begins with 0 is read as an octal number, and bytes left over under it are dropped."""
    found = re.fullmatch("0+([0-7]+)", values[0]) if values else None
    if found is None:
        return original(model, values, body)
    octal = int(found[1], 8)
    return original(model, [str(octal)], body[: octal + 4])


@fault("framing.json_length", breaks="BIN-HEADER-TWICE")
def last_inference_header_counts(original: Any, values: Sequence[str], body_length: int) -> Any:
    """Of two inference headers the last counts."""
    return original(values[-1:], body_length)


@fault("framing.json_length", breaks=("BIN-HEADER-TWICE-SAFE", "BIN-HEADER-TWICE"))
def two_inference_headers_read_as_no_number(original: Any, values: Sequence[str], body_length: int) -> Any:
    """Two inference headers are joined by a comma, which reads as no number, and so as 0."""
    return original(values if len(values) < 2 else ["0"], body_length)


# --- Content-Type -----------------------------------------------------------------------------------------------------


@fault("app.Service.infer", breaks=("BIN-CONTENT-TYPE-I", "OIP-ANSWER"))
async def octet_stream_of_two_tensors_refused(original: Any, service: Any, http: Request) -> Any:
    """A request of type application/octet-stream is refused when it holds more than one binary tensor."""
    if http.headers.get("content-type") == OCTET_STREAM and (await http.body()).count(b"binary_data_size") > 1:
        raise InferenceError("an octet stream holds one tensor", status=415)
    return await original(service, http)


@fault("app.Service.infer", breaks="BIN-CONTENT-TYPE-OTHER")
async def binary_data_in_application_json_refused(original: Any, service: Any, http: Request) -> Any:
    """A binary request of type application/json is refused."""
    if http.headers.get("content-type") == "application/json" and http.headers.get(HEADER):
        body = await http.body()
        if b"binary_data_size" in body:
            raise InferenceError("application/json must not hold binary data", status=415)
    return await original(service, http)


@fault("app.Service.infer", breaks=("BIN-CONTENT-TYPE-OTHER", "RAW-CONTENT-TYPE-OTHER"))
async def content_type_needed(original: Any, service: Any, http: Request) -> Any:
    """A request without Content-Type is refused."""
    if "content-type" not in http.headers:
        raise InferenceError("Content-Type is missing", status=415)
    return await original(service, http)


@fault("app.Service.read_body", breaks="OIP-CONTENT-TYPE-OTHER")
async def raw_forms_cut_at_their_first_ampersand(original: Any, service: Any, http: Request) -> bytes:
    """Of a raw request with the type of a form, only the first field of the form is read."""
    body: bytes = await original(service, http)
    is_form = http.headers.get("content-type") == FORM and http.headers.get(HEADER) == "0"
    return body.partition(b"&")[0] if is_form else body


@fault("app.Service.infer", breaks="OIP-CONTENT-TYPE-OTHER")
async def form_answered_with_an_empty_object(original: Any, service: Any, http: Request) -> Response:
    """A form is an empty request to the web framework, and is answered with an empty object."""
    if (http.headers.get("content-type") or "").startswith("multipart/"):
        await http.body()
        return Response(b"{}", media_type="application/json")
    return await original(service, http)


@fault("app.Service.infer", breaks="RAW-CONTENT-TYPE-OTHER")
async def raw_request_needs_its_type(original: Any, service: Any, http: Request) -> Response:
    """A raw request of another type than application/octet-stream is refused."""
    if http.headers.get(HEADER) == "0" and http.headers.get("content-type") != OCTET_STREAM:
        raise InferenceError("a raw request is of type application/octet-stream", status=415)
    return await original(service, http)
