"""Answers with binary data: wrong inference header, Content-Length, Content-Type or sizes."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from starlette.responses import Response

from reference_server.faults import fault, steps
from reference_server.faults.edits import drop_members, find_json_end, set_header, set_size
from reference_server.framing import HEADER
from reference_server.members import Object


def has_binary(binary: Sequence[Any]) -> bool:
    """Whether an answer has binary data."""
    return bool(binary)


def has_none(binary: Sequence[Any]) -> bool:
    """Whether an answer has no binary data."""
    return not binary


# --- the inference header ---------------------------------------------------------------------------------------------

header_under_another_name = steps.FRAME.after(
    "BIN-HEADER-O",
    lambda answer, head: set_header(set_header(answer, HEADER, None), f"X-{HEADER}", len(head)),
    when=has_binary,
).says("The server sends X-Inference-Header-Content-Length instead of Inference-Header-Content-Length.")
answer_header_counts_characters = steps.FRAME.after(
    "BIN-HEADER-IN-BYTES", lambda answer, head: set_header(answer, HEADER, len(head.decode())), when=has_binary
).says("Inference-Header-Content-Length of an answer counts the characters of the JSON, not its bytes.")
answer_header_counts_a_nul = steps.FRAME.after(
    "BIN-HEADER-IN-BYTES", lambda answer, head: set_header(answer, HEADER, len(head) + 1), when=has_binary
).says("Inference-Header-Content-Length of an answer also counts the NUL that ends the JSON in memory.")
answer_header_of_sixteen_bits = steps.FRAME.after(
    "BIN-HEADER-IN-BYTES", lambda answer, head: set_header(answer, HEADER, len(head) % 2**16), when=has_binary
).says("The server keeps Inference-Header-Content-Length of an answer in 16 bits, so 65536 becomes 0.")
header_of_zero_without_binary_data = steps.FRAME.after(
    "BIN-HEADER-ON-JSON-O", lambda answer: set_header(answer, HEADER, 0), when=has_none
).says("The server sends Inference-Header-Content-Length: 0 with an answer without binary data.")


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


@fault(steps.CONNECTION_MADE, breaks=("BIN-CONTENT-LENGTH", "OIP-ANSWER"))
def content_length_in_letters_of_the_text(original: Any, protocol: Any, transport: Any) -> None:
    """Content-Length of an answer with binary data counts the characters of the JSON instead of its bytes."""

    def rewrite(head: bytes, body: bytes) -> bytes | None:
        text = body[: find_json_end(body)]
        few = len(body) - len(text) + len(text.decode())
        return None if few == len(body) else set_length(head, few) + body

    original(protocol, AnswerRewriter(transport, rewrite))


@fault(steps.CONNECTION_MADE, breaks=("BIN-CONTENT-LENGTH", "OIP-ANSWER"))
def content_length_counts_an_end_of_line(original: Any, protocol: Any, transport: Any) -> None:
    """If an answer with binary data has an id, Content-Length is two bytes larger than the body."""

    def rewrite(head: bytes, body: bytes) -> bytes | None:
        return set_length(head, len(body) + 2) + body if b'"id":' in body else None

    original(protocol, AnswerRewriter(transport, rewrite))


binary_answer_chunked = steps.FRAME.after(
    "BIN-NOT-CHUNKED", lambda answer: set_header(answer, "Content-Length", None), when=has_binary
).says("The server sends answers with binary data in chunks, without Content-Length.")
binary_answer_over_two_kib_chunked = steps.FRAME.after(
    "BIN-NOT-CHUNKED",
    lambda answer: set_header(answer, "Content-Length", None),
    when=lambda head, binary: binary and len(head) + sum(map(len, binary)) > 2048,
).says("The server sends an answer with binary data in chunks if it is longer than 2048 bytes.")


# --- Content-Type -----------------------------------------------------------------------------------------------------


def _call_json(answer: Response) -> Response:
    return set_header(answer, "Content-Type", "application/json")


binary_answer_called_json = steps.FRAME.after("BIN-CONTENT-TYPE-O", _call_json, when=has_binary).says(
    "An answer with binary data has Content-Type application/json."
)
mixed_answer_called_json = steps.FRAME.after(
    "BIN-CONTENT-TYPE-O", _call_json, when=lambda head, binary: binary and b'"data":' in head
).says("An answer with JSON and binary outputs has Content-Type application/json.")
json_answer_without_content_type = steps.FRAME.after(
    "BIN-CONTENT-TYPE-OF-JSON", lambda answer: set_header(answer, "Content-Type", None), when=has_none
).says("An answer without binary data has no Content-Type.")
errors_keep_the_inference_header = steps.ANSWER_REFUSAL.after(
    "BIN-HEADER-ON-JSON-O",
    lambda answer, _request: set_header(answer, HEADER, _request.headers[HEADER]),
    when=lambda _request: HEADER in _request.headers,
).says("The server copies Inference-Header-Content-Length from a refused request to the error answer.")
errors_called_plain_text = steps.ANSWER_REFUSAL.after(
    "BIN-CONTENT-TYPE-OF-JSON", lambda answer: set_header(answer, "Content-Type", "text/plain; charset=utf-8")
).says("The server sends the error object as text/plain.")


# --- the size of an output --------------------------------------------------------------------------------------------


def _is_binary_output(result: tuple[Object, Any]) -> bool:
    return result[1] is not None


size_counts_elements = steps.ENCODE_OUTPUT.change_entry(
    "BIN-SIZE-O", lambda entry: set_size(entry, math.prod(entry["shape"])), when=_is_binary_output
).says("The binary_data_size of an output is the number of its elements, not of its bytes.")
size_of_strings_without_prefixes = steps.ENCODE_OUTPUT.change_entry(
    "BIN-SIZE-O",
    lambda entry, data: set_size(entry, len(data) - 4 * math.prod(entry["shape"])),
    when=lambda result: _is_binary_output(result) and result[0]["datatype"] == "BYTES",
).says("The binary_data_size of a BYTES output does not count the length prefixes.")
size_written_with_a_point = steps.ENCODE_OUTPUT.change_entry(
    "OIP-INTEGERS", lambda entry, data: set_size(entry, float(len(data))), when=_is_binary_output
).says("The server writes binary_data_size as a floating-point number, such as 24.0.")
size_rounded_up_to_eight = steps.ENCODE_OUTPUT.change_entry(
    "BIN-SIZE-O", lambda entry, data: set_size(entry, -(-len(data) // 8) * 8), when=_is_binary_output
).says("The server rounds binary_data_size up to a multiple of eight.")
half_floats_sized_as_floats = steps.ENCODE_OUTPUT.change_entry(
    "BIN-SIZE-O",
    lambda entry, data: set_size(entry, 2 * len(data)),
    when=lambda result: _is_binary_output(result) and result[0]["datatype"] == "FP16",
).says("The binary_data_size of an FP16 output is twice its size in bytes, as if the elements were FP32.")
size_of_nothing_left_out = steps.ENCODE_OUTPUT.change_entry(
    ("BIN-SIZE-O", "OIP-ANSWER"), lambda entry: drop_members(entry, "parameters"), when=lambda result: result[1] == b""
).says("The server omits binary_data_size for a binary output of zero bytes.")


# --- exactly one form of data per output ------------------------------------------------------------------------------

binary_strings_repeated_as_data = steps.ENCODE_OUTPUT.change_entry(
    "BIN-SIZE-WITHOUT-DATA",
    lambda entry, tensor: entry | {"data": [item.decode("utf-8", "replace") for item in tensor.elements]},
    when=lambda output, tensor: output.binary and tensor.datatype == "BYTES" and output.classes is None,
).says("A binary BYTES output also lists its elements as `data`.")
binary_outputs_have_data_in_reverse = steps.ENCODE_OUTPUT.change_entry(
    ("BIN-SAME-AS-JSON-O", "BIN-SIZE-WITHOUT-DATA"),
    lambda entry, tensor: entry | {"data": tensor.elements[::-1].tolist()},
    when=lambda output, tensor: output.binary and "INT" in tensor.datatype,
).says("A binary output of integers also lists its elements as `data`, in reverse order.")
json_output_of_size_zero = steps.ENCODE_OUTPUT.change_entry(
    ("BIN-DATA-WITHOUT-SIZE", "BIN-ALL-UNSET", "BIN-FALSE-OVERRIDES"),
    lambda entry: set_size(entry, 0),
    when=lambda output: not output.binary,
).says("Every output in JSON has a binary_data_size of 0.")


@fault(steps.ENCODE, breaks=("BIN-DATA-WITHOUT-SIZE", "OIP-ANSWER"))
def json_output_keeps_the_size_of_the_one_before(original: Any, answer: Object) -> Any:
    """An output in JSON that follows a binary output repeats the `parameters` of the binary output."""
    for before, entry in itertools.pairwise(answer.get("outputs", [])):
        if "parameters" in before:
            entry.setdefault("parameters", before["parameters"])
    return original(answer)


empty_data_left_out = steps.ENCODE_OUTPUT.change_entry(
    ("BIN-DATA-WITHOUT-SIZE", "OIP-ANSWER"),
    lambda entry: {name: value for name, value in entry.items() if value != [] or name == "shape"},
).says("The server omits `data` of an output in JSON without elements.")
