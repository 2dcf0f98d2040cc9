"""Answers with binary data: wrong inference header, Content-Length, Content-Type or sizes."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.faults.request_headers import find_json_end
from reference_server.framing import HEADER
from reference_server.members import Object
from reference_server.models import Model
from reference_server.request import RequestedOutput
from reference_server.response import Octets
from reference_server.tensors import Tensor

Binary = Sequence[Octets]
EncodedOutput = tuple[dict[str, Any], bytes | memoryview | None]


# --- the inference header ---------------------------------------------------------------------------------------------


def set_header(response: Response, name: str, value: object | None) -> Response:
    """Set a header of an answer; None removes it."""
    if value is None:
        del response.headers[name]
    else:
        response.headers[name] = str(value)
    return response


@fault("response.frame", breaks="BIN-HEADER-O")
def header_under_another_name(original: Any, head: bytes, binary: Binary) -> Response:
    """The server sends X-Inference-Header-Content-Length instead of Inference-Header-Content-Length."""
    response: Response = original(head, binary)
    return set_header(set_header(response, HEADER, None), f"X-{HEADER}", len(head)) if binary else response


def rewrite_inference_header(original: Any, head: bytes, binary: Binary, value: object) -> Response:
    """Return an answer; replace its Inference-Header-Content-Length if the answer has binary data."""
    response: Response = original(head, binary)
    return set_header(response, HEADER, value) if binary else response


@fault("response.frame", breaks="BIN-HEADER-IN-BYTES")
def answer_header_counts_characters(original: Any, head: bytes, binary: Binary) -> Response:
    """Inference-Header-Content-Length of an answer counts the characters of the JSON, not its bytes."""
    return rewrite_inference_header(original, head, binary, len(head.decode()))


@fault("response.frame", breaks="BIN-HEADER-IN-BYTES")
def answer_header_counts_a_nul(original: Any, head: bytes, binary: Binary) -> Response:
    """Inference-Header-Content-Length of an answer also counts the NUL that ends the JSON in memory."""
    return rewrite_inference_header(original, head, binary, len(head) + 1)


@fault("response.frame", breaks="BIN-HEADER-IN-BYTES")
def answer_header_of_sixteen_bits(original: Any, head: bytes, binary: Binary) -> Response:
    """The server keeps Inference-Header-Content-Length of an answer in 16 bits, so 65536 becomes 0."""
    return rewrite_inference_header(original, head, binary, len(head) % 2**16)


@fault("response.frame", breaks="BIN-HEADER-ON-JSON-O")
def header_of_zero_without_binary_data(original: Any, head: bytes, binary: Binary) -> Response:
    """The server sends Inference-Header-Content-Length: 0 with an answer without binary data."""
    response: Response = original(head, binary)
    return response if binary else set_header(response, HEADER, 0)


# --- Content-Length ---------------------------------------------------------------------------------------------------


class AnswerRewriter:
    """A transport that rewrites answers with binary data, and closes the connection after a rewritten answer."""

    def __init__(self, transport: Any, rewrite: Callable[[bytes, bytes], bytes | None]) -> None:
        self._transport = transport
        self._rewrite = rewrite
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, octets: bytes | memoryview) -> None:
        """Write data; hold the head of an answer with binary data until its body comes, then rewrite both."""
        data = bytes(octets)
        if f"\r\n{HEADER.lower()}: ".encode() in data:
            self._head = data
            return
        head, self._head = self._head, b""
        rewritten = self._rewrite(head, data) if head else None
        self._transport.write(rewritten or head + data)
        if rewritten:
            self._transport.close()


def set_length(head: bytes, length: int) -> bytes:
    """Return the head of an answer with another Content-Length and with `Connection: close`."""
    return re.sub(rb"(?<=\ncontent-length: )[0-9]+", str(length).encode() + b"\r\nconnection: close", head)


@fault("http_protocol.OipHttpProtocol.connection_made", breaks=("BIN-CONTENT-LENGTH", "OIP-ANSWER"))
def content_length_in_letters_of_the_text(original: Any, protocol: Any, transport: Any) -> None:
    """Content-Length of an answer with binary data counts the characters of the JSON instead of its bytes."""

    def rewrite(head: bytes, body: bytes) -> bytes | None:
        text = body[: find_json_end(body)]
        few = len(body) - len(text) + len(text.decode())
        return None if few == len(body) else set_length(head, few) + body

    original(protocol, AnswerRewriter(transport, rewrite))


@fault("http_protocol.OipHttpProtocol.connection_made", breaks=("BIN-CONTENT-LENGTH", "OIP-ANSWER"))
def content_length_counts_an_end_of_line(original: Any, protocol: Any, transport: Any) -> None:
    """If an answer with binary data has an id, Content-Length is two bytes larger than the body."""

    def rewrite(head: bytes, body: bytes) -> bytes | None:
        return set_length(head, len(body) + 2) + body if b'"id":' in body else None

    original(protocol, AnswerRewriter(transport, rewrite))


@fault("response.frame", breaks="BIN-NOT-CHUNKED")
def binary_answer_chunked(original: Any, head: bytes, binary: Binary) -> Response:
    """The server sends answers with binary data in chunks, without Content-Length."""
    response: Response = original(head, binary)
    return set_header(response, "Content-Length", None) if binary else response


@fault("response.frame", breaks="BIN-NOT-CHUNKED")
def binary_answer_over_two_kib_chunked(original: Any, head: bytes, binary: Binary) -> Response:
    """The server sends an answer with binary data in chunks if it is longer than 2048 bytes."""
    response: Response = original(head, binary)
    fits = len(head) + sum(map(len, binary)) <= 2048
    return response if fits or not binary else set_header(response, "Content-Length", None)


# --- Content-Type -----------------------------------------------------------------------------------------------------


def set_content_type(original: Any, head: bytes, binary: Binary, content_type: str | None, *, when: bool) -> Response:
    """Return an answer; replace its Content-Type if `when` is true."""
    response: Response = original(head, binary)
    return set_header(response, "Content-Type", content_type) if when else response


@fault("response.frame", breaks="BIN-CONTENT-TYPE-O")
def binary_answer_called_json(original: Any, head: bytes, binary: Binary) -> Response:
    """An answer with binary data has Content-Type application/json."""
    return set_content_type(original, head, binary, "application/json", when=bool(binary))


@fault("response.frame", breaks="BIN-CONTENT-TYPE-O")
def mixed_answer_called_json(original: Any, head: bytes, binary: Binary) -> Response:
    """An answer with JSON and binary outputs has Content-Type application/json."""
    return set_content_type(original, head, binary, "application/json", when=bool(binary) and b'"data":' in head)


@fault("response.frame", breaks="BIN-CONTENT-TYPE-OF-JSON")
def json_answer_without_content_type(original: Any, head: bytes, binary: Binary) -> Response:
    """An answer without binary data has no Content-Type."""
    return set_content_type(original, head, binary, None, when=not binary)


@fault("app.answer_refusal", breaks="BIN-HEADER-ON-JSON-O")
async def errors_keep_the_inference_header(original: Any, http: Request, exception: InferenceError) -> Response:
    """The server copies Inference-Header-Content-Length from a refused request to the error answer."""
    answer: Response = await original(http, exception)
    return set_header(answer, HEADER, http.headers[HEADER]) if HEADER in http.headers else answer


@fault("app.answer_refusal", breaks="BIN-CONTENT-TYPE-OF-JSON")
async def errors_called_plain_text(original: Any, http: Request, exception: InferenceError) -> Response:
    """The server sends the error object as text/plain."""
    answer: Response = await original(http, exception)
    return set_header(answer, "Content-Type", "text/plain; charset=utf-8")


# --- the size of an output --------------------------------------------------------------------------------------------


def set_binary_data_size(part: EncodedOutput, size: object) -> EncodedOutput:
    """Return an encoded output; replace its binary_data_size if the output is binary."""
    entry, data = part
    return (entry if data is None else entry | {"parameters": {"binary_data_size": size}}), data


@fault("response.encode_output", breaks="BIN-SIZE-O")
def size_counts_elements(original: Any, model: Model, output: RequestedOutput, tensor: Tensor) -> EncodedOutput:
    """The binary_data_size of an output is the number of its elements, not of its bytes."""
    part: EncodedOutput = original(model, output, tensor)
    return set_binary_data_size(part, math.prod(part[0]["shape"]))


@fault("response.encode_output", breaks="BIN-SIZE-O")
def size_of_strings_without_prefixes(
    original: Any, model: Model, output: RequestedOutput, tensor: Tensor
) -> EncodedOutput:
    """The binary_data_size of a BYTES output does not count the length prefixes."""
    part: EncodedOutput = original(model, output, tensor)
    entry, data = part
    strings = entry["datatype"] == "BYTES" and data is not None
    return set_binary_data_size(part, len(data or b"") - 4 * math.prod(entry["shape"])) if strings else part


@fault("response.encode_output", breaks="OIP-INTEGERS")
def size_written_with_a_point(original: Any, model: Model, output: RequestedOutput, tensor: Tensor) -> EncodedOutput:
    """The server writes binary_data_size as a floating-point number, such as 24.0."""
    part: EncodedOutput = original(model, output, tensor)
    return set_binary_data_size(part, float(len(part[1] or b"")))


@fault("response.encode_output", breaks="BIN-SIZE-O")
def size_rounded_up_to_eight(original: Any, model: Model, output: RequestedOutput, tensor: Tensor) -> EncodedOutput:
    """The server rounds binary_data_size up to a multiple of eight."""
    part: EncodedOutput = original(model, output, tensor)
    return set_binary_data_size(part, -(-len(part[1] or b"") // 8) * 8)


@fault("response.encode_output", breaks="BIN-SIZE-O")
def half_floats_sized_as_floats(original: Any, model: Model, output: RequestedOutput, tensor: Tensor) -> EncodedOutput:
    """The binary_data_size of an FP16 output is twice its size in bytes, as if the elements were FP32."""
    part: EncodedOutput = original(model, output, tensor)
    return set_binary_data_size(part, 2 * len(part[1] or b"")) if part[0]["datatype"] == "FP16" else part


@fault("response.encode_output", breaks=("BIN-SIZE-O", "OIP-ANSWER"))
def size_of_nothing_left_out(original: Any, model: Model, output: RequestedOutput, tensor: Tensor) -> EncodedOutput:
    """The server omits binary_data_size for a binary output of zero bytes."""
    entry, data = original(model, output, tensor)
    return ({name: value for name, value in entry.items() if name != "parameters"} if data == b"" else entry), data


# --- exactly one form of data per output ------------------------------------------------------------------------------


@fault("response.encode_output", breaks="BIN-SIZE-WITHOUT-DATA")
def binary_strings_repeated_as_data(
    original: Any, model: Model, output: RequestedOutput, tensor: Tensor
) -> EncodedOutput:
    """A binary BYTES output also lists its elements as `data`."""
    entry, data = original(model, output, tensor)
    if data is not None and tensor.datatype == "BYTES" and output.classes is None:
        entry = entry | {"data": [item.decode("utf-8", "replace") for item in tensor.elements]}
    return entry, data


@fault("response.encode_output", breaks=("BIN-SAME-AS-JSON-O", "BIN-SIZE-WITHOUT-DATA"))
def binary_outputs_have_data_in_reverse(
    original: Any, model: Model, output: RequestedOutput, tensor: Tensor
) -> EncodedOutput:
    """A binary output of integers also lists its elements as `data`, in reverse order."""
    entry, data = original(model, output, tensor)
    if data is not None and "INT" in tensor.datatype:
        entry = entry | {"data": tensor.elements[::-1].tolist()}
    return entry, data


@fault("response.encode_output", breaks=("BIN-DATA-WITHOUT-SIZE", "BIN-ALL-UNSET", "BIN-FALSE-OVERRIDES"))
def json_output_of_size_zero(original: Any, model: Model, output: RequestedOutput, tensor: Tensor) -> EncodedOutput:
    """Every output in JSON has a binary_data_size of 0."""
    entry, data = original(model, output, tensor)
    return entry | ({"parameters": {"binary_data_size": 0}} if data is None else {}), data


@fault("response.encode", breaks=("BIN-DATA-WITHOUT-SIZE", "OIP-ANSWER"))
def json_output_keeps_the_size_of_the_one_before(original: Any, answer: Object) -> Any:
    """An output in JSON that follows a binary output repeats the `parameters` of the binary output."""
    for before, entry in itertools.pairwise(answer.get("outputs", [])):
        if "parameters" in before:
            entry.setdefault("parameters", before["parameters"])
    return original(answer)


@fault("response.encode_output", breaks=("BIN-DATA-WITHOUT-SIZE", "OIP-ANSWER"))
def empty_data_left_out(original: Any, model: Model, output: RequestedOutput, tensor: Tensor) -> EncodedOutput:
    """The server omits `data` of an output in JSON without elements."""
    entry, data = original(model, output, tensor)
    return {name: value for name, value in entry.items() if value != [] or name == "shape"}, data
