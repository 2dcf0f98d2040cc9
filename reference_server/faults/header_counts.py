"""The inference header counted in other units than bytes, or read as another number."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from starlette.responses import Response

from reference_server import strict_json
from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.faults.headers import parse_number
from reference_server.framing import HEADER
from reference_server.models import Model

# --- letters ---------------------------------------------------------------------------------------------------------


def _of_four_bytes(octets: bytes) -> int:
    """Return how many letters of four bytes there are in UTF-8."""
    return sum(letter > "\uffff" for letter in octets.decode("utf-8", "ignore"))


def _of_three_bytes(octets: bytes) -> int:
    """Return how many letters of three bytes there are in UTF-8."""
    return sum("\u07ff" < letter <= "\uffff" for letter in octets.decode("utf-8", "ignore"))


def _shifted(original: Any, model: Model, values: Sequence[str], body: bytes, by: Callable[[bytes], int]) -> Any:
    """Parse with the header moved by what `by` makes of the JSON that it marks off."""
    length = parse_number(values)
    moved = None if not length else length + by(body[:length])
    return original(model, values if moved is None else [str(moved)], body)


@fault("request.parse", breaks="BIN-HEADER-I")
def request_header_counts_surrogates_for_three_bytes_each(
    original: Any, model: Model, values: Sequence[str], body: bytes
) -> Any:
    """The end of a request's JSON is looked for with letters beyond U+FFFF counted as six bytes."""
    return _shifted(original, model, values, body, lambda head: -2 * _of_four_bytes(head))


@fault("request.parse", breaks=("BIN-HEADER-I", "OIP-ANSWER"))
def request_header_counts_two_bytes_beyond_ascii(
    original: Any, model: Model, values: Sequence[str], body: bytes
) -> Any:
    """The end of a request's JSON is looked for with letters of three bytes counted as two."""
    return _shifted(original, model, values, body, _of_three_bytes)


@fault("response.frame", breaks="BIN-HEADER-IN-BYTES")
def answer_header_counts_surrogates_for_three_bytes_each(original: Any, head: bytes, binary: Any) -> Response:
    """The inference header of an answer counts letters beyond U+FFFF as six bytes."""
    answer: Response = original(head, binary)
    if HEADER in answer.headers:
        answer.headers[HEADER] = str(int(answer.headers[HEADER]) + 2 * _of_four_bytes(head))
    return answer


# --- numbers ---------------------------------------------------------------------------------------------------------


@fault("request.parse", breaks="BIN-HEADER-WRONG-ON-JSON")
def header_past_the_end_of_json_alone_cut_down(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """A header that is larger than a body of JSON alone is taken for the length of that body."""
    length = parse_number(values)
    try:
        is_json_alone = length is not None and length > len(body) and bool(strict_json.parse_object(body))
    except InferenceError:
        is_json_alone = False
    return original(model, [str(len(body))] if is_json_alone else values, body)


def _octal(values: Sequence[str]) -> int | None:
    """Return the number that a header with a zero in front is as an octal one, or None."""
    found = re.fullmatch("0+([0-7]+)", values[0]) if values else None
    return int(found[1], 8) if found else None


@fault("framing.json_length", breaks="BIN-HEADER-TOO-LONG")
def header_with_a_zero_in_front_read_as_octal(original: Any, values: Sequence[str], body_length: int) -> Any:
    """A header that begins with 0 is read as an octal number, as C reads one."""
    octal = _octal(values)
    return original(values if octal is None else [str(octal)], body_length)


@fault("request.parse", breaks=("BIN-HEADER-I", "BIN-HEADER-TOO-LONG"))
def octal_header_without_a_look_at_the_end(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """A header that begins with 0 is read as an octal number, and bytes left over under it are dropped."""
    octal = _octal(values)
    return original(model, values, body) if octal is None else original(model, [str(octal)], body[: octal + 4])
