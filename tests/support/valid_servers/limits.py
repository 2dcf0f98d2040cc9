"""Limits of valid servers: elements, batches, ids, strings, bodies, headers, concurrent requests, classes."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from starlette.responses import HTMLResponse, Response

from reference_server import app
from reference_server.errors import InferenceError
from reference_server.faults import Fault, steps
from reference_server.faults import fault as variation
from reference_server.faults.edits import set_headers
from reference_server.faults.families import MESSAGE, Function, combine

LIMIT = 64 * 1024


def _count_elements(tensors: Any) -> list[int]:
    return [math.prod(tensor.shape) for tensor in tensors.values()]


# --- elements and shapes ----------------------------------------------------------------------------------------------


def refuse_shapes(is_over: Function, breaks: str | tuple[str, ...] = (), *, status: int = 400) -> Fault:
    """Return a server that refuses some shapes of inputs which are otherwise right."""
    return steps.CHECK_SHAPE.refuse(breaks, is_over, status=status, afterwards=True)


more_than_1000_elements_are_refused = refuse_shapes(lambda shape: math.prod(shape) > 1000).says(
    "The server refuses an input of more than 1000 elements with 400."
)
more_than_1000_elements_raise = refuse_shapes(
    lambda shape: math.prod(shape) > 1000, "OIP-ERROR-STATUS", status=500
).says("The server refuses an input of more than 1000 elements with 500, as frameworks answer an exception.")
more_than_1000_elements_are_too_large = refuse_shapes(lambda shape: math.prod(shape) > 1000, status=413).says(
    "The server refuses an input of more than 1000 elements with 413."
)
outputs_without_elements_raise = steps.RUN.refuse(
    "OIP-ERROR-STATUS", lambda result: 0 in _count_elements(result), status=500
).says("The server answers 500 if an output of the model has no elements, as frameworks answer an exception.")
more_than_100_elements_are_refused = refuse_shapes(lambda shape: math.prod(shape) > 100, status=422).says(
    "The server refuses an input of more than 100 elements with 422."
)
more_than_10000_elements_are_refused = refuse_shapes(lambda shape: math.prod(shape) > 10_000).says(
    "The server refuses an input of more than 10000 elements with 400."
)
dimensions_over_128_are_refused = refuse_shapes(lambda shape: max(shape, default=0) > 128).says(
    "The server refuses an input with a dimension above 128."
)
batches_over_4_are_refused = refuse_shapes(lambda self, shape: self.batching and shape[:1] > (4,)).says(
    "The server refuses a batch of more than four items with 400."
)
batches_over_2_are_refused = refuse_shapes(lambda self, shape: self.batching and shape[:1] > (2,), status=422).says(
    "The server refuses a batch of more than two items with 422."
)
more_than_500_elements_together_are_refused = steps.PARSE_INPUTS.refuse(
    when=lambda result: sum(_count_elements(result)) > 500
).says("The server refuses a request whose inputs have more than 500 elements together.")
more_than_1000_elements_of_an_output_are_refused = steps.RUN.refuse(
    when=lambda result: max(_count_elements(result)) > 1000
).says("The server refuses a request for an output of more than 1000 elements.")
json_over_16_kib_is_refused = steps.PARSE_JSON.refuse("OIP-BODY-SIZE", lambda data: len(data) > 16 * 1024).says(
    "The server refuses JSON of more than 16 KiB with 400 (RFC 8259, 9 allows such limits)."
)

# --- ids and strings --------------------------------------------------------------------------------------------------


def refuse_ids(is_refused: Callable[[str], object], *, status: int = 400) -> Fault:
    """Return a server that refuses some ids."""
    return steps.PARSE.refuse(when=lambda result: is_refused(result.id or ""), status=status)


def refuse_calls_with_ids(is_refused: Callable[[str], object]) -> Fault:
    """Return a server that refuses some ids over gRPC."""
    return steps.PARSE_CALL.refuse(when=lambda result: is_refused(result.id or ""))


def has_other_characters(text: str) -> bool:
    """Whether a text has characters other than ASCII letters, digits, hyphens and underscores."""
    return not re.fullmatch("[A-Za-z0-9_-]*", text)


def has_long_string(most: int) -> Callable[[Any], bool]:
    """Return a condition: a tensor that was read has a BYTES element of more bytes."""
    return lambda result: result.datatype == "BYTES" and max(map(len, result.elements), default=0) > most


ids_over_64_characters_are_refused = refuse_ids(lambda text: len(text) > 64).says(
    "The server refuses an id of more than 64 characters with 400."
)
ids_over_36_characters_are_refused = refuse_ids(lambda text: len(text) > 36, status=422).says(
    "The server refuses an id of more than 36 characters with 422."
)
ids_over_200_bytes_are_refused = refuse_ids(lambda text: len(text.encode()) > 200, status=413).says(
    "The server refuses an id of more than 200 bytes with 413."
)
ids_of_letters_and_digits_alone = combine(
    (), refuse_ids(has_other_characters), refuse_calls_with_ids(has_other_characters)
).says("The server refuses an id with characters other than ASCII letters, digits, hyphens and underscores.")
grpc_ids_of_letters_and_digits_alone = refuse_calls_with_ids(has_other_characters).says(
    "The server refuses an id with characters other than ASCII letters, digits, hyphens and underscores."
)
strings_over_1024_bytes_are_refused = steps.PARSE_INPUT.refuse(when=has_long_string(1024)).says(
    "The server refuses a BYTES element of more than 1024 bytes."
)
strings_over_100_bytes_are_refused = steps.PARSE_INPUT.refuse(when=has_long_string(100), status=413).says(
    "The server refuses a BYTES element of more than 100 bytes with 413."
)

# --- bytes ------------------------------------------------------------------------------------------------------------


def _count_bytes(tensor: Any) -> int:
    return sum(map(len, tensor.elements)) if tensor.datatype == "BYTES" else int(tensor.elements.nbytes)


def _is_deeper_than_8(value: Any) -> bool:
    level = [value]
    for _ in range(8):
        level = [
            child
            for parent in level
            if isinstance(parent, dict | list)
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
    return any(isinstance(found, dict | list) for found in level)


bodies_over_64_kib_are_bad_requests = steps.PARSE.refuse(when=lambda body: len(body) > LIMIT).says(
    "The server refuses a body of more than 64 KiB with 400."
)
bodies_over_256_kib_are_refused = steps.PARSE.refuse(when=lambda body: len(body) > 4 * LIMIT, status=422).says(
    "The server refuses a body of more than 256 KiB with 422."
)
json_over_64_kib_is_refused = steps.PARSE_JSON.refuse(when=lambda data: len(data) > LIMIT, status=413).says(
    "The server refuses JSON of more than 64 KiB with 413."
)
json_over_64_kib_is_a_bad_request = steps.PARSE_JSON.refuse("OIP-BODY-SIZE", lambda data: len(data) > LIMIT).says(
    "The server refuses JSON of more than 64 KiB with 400, and reads binary data of any size."
)
inputs_over_20000_bytes_are_refused = steps.PARSE_INPUTS.refuse(
    when=lambda result: sum(map(_count_bytes, result.values())) > 20_000
).says("The server refuses inputs that take more than 20000 bytes of memory.")
answers_over_64_kib_are_refused = steps.FRAME.refuse(
    when=lambda head, binary: len(head) + sum(map(len, binary)) > LIMIT
).says("The server refuses a request whose answer would be longer than 64 KiB.")
json_deeper_than_8_is_refused = steps.CHECK_DEPTH.refuse(when=_is_deeper_than_8).says(
    "The server refuses JSON that is nested more than eight levels deep."
)

# --- HTTP -------------------------------------------------------------------------------------------------------------


def count_header_bytes(http: Any) -> int:
    """Return the bytes of the headers of a request."""
    return sum(len(name) + len(value) for name, value in http.headers.raw)


headers_over_1_kib_are_refused = steps.INFER.refuse(when=lambda http: count_header_bytes(http) > 1024, status=431).says(
    "The server refuses headers of more than 1024 bytes with 431."
)
headers_over_4_kib_are_refused = steps.INFER.refuse(when=lambda http: count_header_bytes(http) > 4096, status=431).says(
    "The server refuses headers of more than 4096 bytes with 431."
)
more_than_16_headers_are_refused = steps.INFER.refuse(when=lambda http: len(http.headers.raw) > 16, status=431).says(
    "The server refuses more than sixteen headers with 431."
)
paths_over_80_characters_are_refused = steps.INFER.refuse(when=lambda http: len(http.url.path) > 80, status=414).says(
    "The server refuses a path of more than eighty characters with 414."
)
curl_and_requests_are_refused_by_name = steps.INFER.instead(
    "OIP-ERROR-ELSEWHERE",
    lambda: Response("<h1>403 Forbidden</h1>", 403, media_type="text/html"),
    when=lambda http: http.headers.get("User-Agent", "").startswith(("curl/", "python-requests/")),
).says("A gateway answers 403 and a page to clients that call themselves curl or python-requests.")

_at_work: list[int] = []


async def _in_turn(original: Any, service: app.Service, http: Any, most: int, status: int, work: float) -> Response:
    if len(_at_work) >= most:
        raise InferenceError("too many requests", status=status)
    _at_work.append(1)
    try:
        await asyncio.sleep(work)
        found: Response = await original(service, http)
    finally:
        _at_work.pop()
    return found


@variation(steps.INFER)
async def more_than_4_at_a_time_are_too_many(original: Any, service: app.Service, http: Any) -> Response:
    """The server refuses more than four concurrent requests with 429."""
    return await _in_turn(original, service, http, 4, 429, 0.001)


@variation(steps.INFER)
async def more_than_1_at_a_time_are_unavailable(original: Any, service: app.Service, http: Any) -> Response:
    """The server refuses more than one concurrent request with 503."""
    return await _in_turn(original, service, http, 1, 503, 0.001)


@variation(steps.INFER)
async def requests_in_flight_are_turned_away(original: Any, service: app.Service, http: Any) -> Response:
    """The server works for 20 ms on each request, and refuses the third of three concurrent requests with 503."""
    return await _in_turn(original, service, http, 2, 503, 0.02)


@variation(steps.INFER)
async def gateway_waits_no_longer_in_flight(original: Any, service: app.Service, http: Any) -> Response:
    """A gateway answers 504 to the third of three concurrent requests, because the server takes too long."""
    return await _in_turn(original, service, http, 2, 504, 0.02)


REQUESTS_PER_RESTART = 47
_requests: list[int] = [0]


def _begins_restart() -> bool:
    _requests[0] += 1
    return _requests[0] % REQUESTS_PER_RESTART == 0


gateway_does_not_reach_the_server_now_and_then = steps.INFER.instead(
    "OIP-ERROR-ELSEWHERE", lambda: HTMLResponse("<h1>502 Bad Gateway</h1>", 502), when=_begins_restart
).says("A gateway answers 502 and a page to every 47th request, because the server is started again just then.")


def _is_third() -> bool:
    _answers.append(1)
    return len(_answers) % 3 == 0


_answers: list[int] = []

connections_end_after_3_answers = steps.FRAME.after((), set_headers(Connection="close"), when=_is_third).says(
    "The server sends `Connection: close` with every third answer."
)


@variation(steps.HEADERS_COMPLETE)
def connections_end_after_5_requests(original: Any, protocol: Any) -> None:
    """The server closes a connection after the fifth answer, without `Connection: close`."""
    original(protocol)
    protocol.requests_of_this_connection = getattr(protocol, "requests_of_this_connection", 0) + 1
    if protocol.requests_of_this_connection >= 5:
        protocol.cycle.keep_alive = False


@variation(steps.HEADERS_COMPLETE)
def idle_connections_end_soon(original: Any, protocol: Any) -> None:
    """The server closes a connection that is idle for 0.1 s, without `Connection: close`."""
    original(protocol)
    protocol.timeout_keep_alive = 0.1


# --- classes ----------------------------------------------------------------------------------------------------------


def rank_only(*datatypes: str, status: int = 400) -> Fault:
    """Return a server that classifies outputs of these datatypes alone."""
    return steps.CLASSIFY.refuse(when=lambda tensor: tensor.datatype not in datatypes, status=status)


def is_infinite(tensor: Any) -> bool:
    """Whether a score is an infinity or NaN."""
    return tensor.elements.dtype.kind == "f" and not np.isfinite(tensor.elements).all()


floats_alone_are_ranked = rank_only("FP32", "FP64").says("The server classifies only FP32 and FP64.")
fp32_alone_is_ranked = rank_only("FP32", status=422).says(
    "The server classifies only FP32, and refuses other datatypes with 422."
)
floats_and_int32_are_ranked = rank_only("FP32", "FP64", "INT32", "INT64", status=501).says(
    "The server classifies only FP32, FP64, INT32 and INT64, and refuses other datatypes with 501, not implemented."
)
unsigned_outputs_are_not_ranked = steps.CLASSIFY.refuse(when=lambda tensor: tensor.datatype.startswith("UINT")).says(
    "The server refuses to classify unsigned integers."
)
integers_of_8_bits_are_not_ranked = steps.CLASSIFY.refuse(
    when=lambda tensor: tensor.datatype in ("INT8", "UINT8")
).says("The server refuses to classify INT8 and UINT8.")
more_than_100_classes_are_refused = steps.CLASSIFY.refuse(when=lambda count: count > 100).says(
    "The server refuses more than 100 classes of an output."
)
more_than_2_classes_are_refused = steps.CLASSIFY.refuse(when=lambda count: count > 2).says(
    "The server refuses more than two classes of an output, the largest number in the documents."
)
outputs_of_several_dimensions_are_not_ranked = steps.CLASSIFY.refuse(
    when=lambda tensor, batching: len(tensor.shape) > 1 + batching
).says("The server classifies vectors and batches of vectors, and refuses outputs of more dimensions.")
infinities_are_not_ranked = steps.CLASSIFY.refuse(when=is_infinite).says(
    "The server refuses to classify an output with an infinity or NaN."
)

# --- gRPC -------------------------------------------------------------------------------------------------------------


def refuse_elements(most: int) -> list[Fault]:
    """Return the parts of a server that refuses more elements of an input over gRPC."""
    return [step.refuse(when=lambda shape: math.prod(shape) > most) for step in (steps.DECODE_TYPED, steps.DECODE_RAW)]


def replace_code(name: str) -> Fault:
    """Return a part of a server, with another status for refusals by such a limit."""

    def change(status: tuple[Any, str]) -> tuple[Any, str]:
        from grpc import StatusCode

        code, text = status
        return (StatusCode[name] if text.endswith(MESSAGE) else code), text

    return steps.GET_STATUS.after((), change)


grpc_more_than_100_elements_are_refused = combine((), *refuse_elements(100)).says(
    "The server refuses an input of more than 100 elements."
)
grpc_more_than_100_elements_exhaust_the_server = combine(
    (), *refuse_elements(100), replace_code("RESOURCE_EXHAUSTED")
).says("The server refuses an input of more than 100 elements with RESOURCE_EXHAUSTED.")
grpc_more_than_1000_elements_raise = combine((), *refuse_elements(1000), replace_code("UNKNOWN")).says(
    "The server refuses an input of more than 1000 elements with UNKNOWN, as gRPC libraries answer an exception."
)
grpc_more_than_1000_elements_are_out_of_range = combine((), *refuse_elements(1000), replace_code("OUT_OF_RANGE")).says(
    "The server refuses an input of more than 1000 elements with OUT_OF_RANGE."
)
grpc_calls_over_1_mib_are_refused = combine(
    (), steps.PARSE_CALL.refuse(when=lambda message: message.ByteSize() > 1 << 20), replace_code("UNKNOWN")
).says("The server refuses a call of more than 1 MiB with UNKNOWN, which gRPC makes of the 413 of a gateway.")
grpc_batches_over_2_are_refused = steps.PARSE_CALL_INPUT.refuse(
    when=lambda model, result: model.batching and result.shape[0] > 2
).says("The server refuses a batch of more than two items.")
grpc_ids_over_36_characters_are_refused = refuse_calls_with_ids(lambda text: len(text) > 36).says(
    "The server refuses an id of more than 36 characters."
)
grpc_strings_over_100_bytes_are_refused = steps.PARSE_CALL_INPUT.refuse(when=has_long_string(100)).says(
    "The server refuses a BYTES element of more than 100 bytes."
)
grpc_floats_alone_are_ranked = combine(
    (),
    steps.CLASSIFY_OUTPUT.refuse(
        when=lambda output, tensor: output.classes is not None and tensor.datatype not in ("FP32", "FP64")
    ),
    replace_code("UNIMPLEMENTED"),
).says("The server classifies only FP32 and FP64, and refuses other datatypes with UNIMPLEMENTED.")
grpc_more_than_100_classes_are_refused = steps.CLASSIFY_OUTPUT.refuse(
    when=lambda output: (output.classes or 0) > 100
).says("The server refuses more than 100 classes of an output.")
grpc_more_than_2_classes_are_refused = steps.CLASSIFY_OUTPUT.refuse(when=lambda output: (output.classes or 0) > 2).says(
    "The server refuses more than two classes of an output, the largest number in the documents."
)
grpc_finite_vectors_alone_are_ranked = steps.CLASSIFY_OUTPUT.refuse(
    when=lambda model, output, tensor: (
        output.classes is not None and (len(tensor.shape) > 1 + model.batching or is_infinite(tensor))
    )
).says("The server refuses to classify an output of several dimensions, and one with an infinity or NaN.")
