"""The inference header counted in other units than bytes, or read as another number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from reference_server import strict_json
from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.faults.headers import parse_number
from reference_server.models import Model

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
