"""Faults that appear only if a certain kind of request spells its JSON in a certain way."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reference_server.faults import fault, steps
from reference_server.faults.edits import drop_members, get_entries, is_member_after, set_binary, sort_as_declared
from reference_server.faults.ordering import answer_in_declared_order
from reference_server.models import Model
from reference_server.request import InferRequest

Values = Sequence[str]


def _split_json(values: Values, body: bytes) -> tuple[bytes, int]:
    """Return the JSON of a request and its length; both are empty for a raw request."""
    length = int(values[0]) if values and values[0].isdecimal() else len(body)
    return body[:length], length


def _count_twice_less(is_counted: Callable[[str], bool]) -> Callable[[Values, bytes], Values]:
    """Return a function that lowers the inference header by two for certain characters of the JSON."""

    def change(header_values: Values, body: bytes) -> Values:
        head, length = _split_json(header_values, body)
        more = sum(map(is_counted, head.decode("utf-8", "replace")))
        return [str(length - 2 * more)] if header_values and length and more else header_values

    return change


escaped_names_not_recognised = steps.PARSE.refuse(
    "OIP-WRITTEN", lambda body: b'"\\u0069nputs"' in body or b'"\\u0069\\u006e' in body, walks="json"
).says("The server does not find the member `inputs` if the JSON spells its name with escapes.")
escapes_beside_binary_data_refused = steps.PARSE.refuse(
    "BIN-HEADER-I",
    lambda header_values, body: header_values and b"\\u" in _split_json(header_values, body)[0],
    walks="binary",
).says("The server refuses a request with binary data if its JSON contains a Unicode escape.")
wishes_before_inputs_forgotten = steps.PARSE_OUTPUTS.after(
    "BIN-OUTPUT-TRUE",
    lambda requested: set_binary(requested, [False] * len(requested)),
    when=lambda request: is_member_after(request, "inputs", "outputs"),
    walks="binary",
).says("If the JSON lists `outputs` before `inputs`, the server returns every output as JSON.")
parameters_before_the_shape_forgotten = steps.PARSE_INPUT.before(
    "BIN-SIZE-I",
    entry=lambda entry: drop_members(entry, "parameters"),
    when=lambda entry: is_member_after(entry, "shape", "parameters"),
    walks="binary",
).says("The server ignores the `parameters` of an input, such as binary_data_size, if they precede `shape`.")
header_taken_for_utf_16_units = steps.PARSE.before(
    "BIN-HEADER-I", header_values=_count_twice_less(lambda character: character > "\uffff"), walks="binary"
).says("To find the end of the JSON, the server counts a character beyond U+FFFF as two bytes instead of four.")
header_taken_for_characters = steps.PARSE.before(
    "BIN-HEADER-I", header_values=_count_twice_less(lambda character: "\u07ff" < character <= "\uffff"), walks="binary"
).says("To find the end of the JSON, the server counts a character of three bytes as one byte.")


@fault(steps.PARSE, breaks="BIN-HEADER-I", walks="binary")
def line_breaks_in_front_of_binary_data_not_counted(
    original: Any, model: Model, values: Values, body: bytes
) -> InferRequest:
    """The server removes CRLF line breaks from the JSON, but still uses the length in the inference header."""
    head, length = _split_json(values, body)
    if values and length and b"\r\n" in head:
        body = head.replace(b"\r\n", b"") + body[length:]
    return original(model, values, body)


def _read_by_columns(items: list[Any], shape: tuple[int, ...]) -> list[Any]:
    boxes = np.empty(len(items), dtype=object)
    boxes[:] = items
    return boxes.reshape(shape, order="F").reshape(-1).tolist()


long_nested_data_read_by_columns = steps.FLATTEN.after(
    "OIP-DATA",
    _read_by_columns,
    when=lambda data, shape: len(shape) > 1 and max(shape) > 8 and isinstance(data[0], list),
    walks="json",
).says("The server reads nested JSON data in column-major order if a dimension is larger than 8.")
ids_lose_their_second_surrogate = steps.PARSE.after(
    "OIP-ID",
    lambda found: replace(found, id=found.id and found.id[1:]),
    when=lambda header_values, body: re.search(rb"\\ud83d", _split_json(header_values, body)[0], re.IGNORECASE),
    walks="json",
).says("If the JSON contains the escaped surrogate D83D, the server drops the first character of the id.")
ids_composed = steps.PARSE.after(
    "OIP-ID", lambda found: replace(found, id=found.id and unicodedata.normalize("NFC", found.id))
).says("The server composes letters and accents of an id (NFC).")
ids_without_byte_order_mark = steps.PARSE.after(
    "OIP-ID", lambda found: replace(found, id=found.id and found.id.removeprefix("\ufeff"))
).says("The server drops U+FEFF at the start of an id, as decoders of text do.")
long_ids_cut = steps.PARSE.after(
    "OIP-ID", lambda found: replace(found, id=found.id and found.id[:64]), walks="json"
).says("The server cuts an id after 64 characters.")


declared_order_of_bytes_with_an_id = steps.BUILD.instead(
    "BIN-ORDER-O",
    answer_in_declared_order,
    when=lambda request: request.id is not None and len(request.outputs) > 2,
    walks="binary",
).says("If a request has an id and three or more outputs, the binary data of the answer follow the model's order.")


def _asks_for_all_as_binary_data(request: InferRequest, model: Model) -> bool:
    names = [output.name for output in request.outputs if output.binary]
    return request.id is not None and len(names) > 1 and names == [spec.name for spec in model.outputs]


binary_outputs_forgotten_beside_an_id = steps.BUILD.before(
    ("BIN-OUTPUT-TRUE", "BIN-ALL-TRUE"),
    request=lambda request: replace(request, outputs=set_binary(request.outputs, [False] * len(request.outputs))),
    when=_asks_for_all_as_binary_data,
    walks="binary",
).says("If a request with an id asks for all of several outputs as binary data, the server returns them as JSON.")
json_inputs_take_bytes_in_another_order = steps.PARSE_INPUTS.before(
    "BIN-MIXED-I",
    request=sort_as_declared,
    when=lambda request, rest: rest is not None and any("data" in entry for entry in get_entries(request, "inputs")),
    walks="binary",
).says("If a request mixes JSON and binary inputs, the server reads the binary data in declared order.")
