"""Write the JSON of a request in the spelling of a step: spaces, escapes, numbers, order and unknown members.

All spellings of a document have the same meaning.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from conformance.checks.support.covering import Step
from conformance.wire.json_writing import JsonStyle, write_ascii, write_escaped, write_first_escaped, write_plain

UNKNOWN = "oip_conformance_unknown"
_MAX_ELEMENTS = 511  # the most elements to write in another spelling; the library writes longer data


def write_json(document: Mapping[str, Any], step: Step) -> bytes:
    """Return a document as JSON text in the spelling of a step."""
    comma, colon = {"none": (",", ":"), "blanks": (" , ", " : "), "lines": (",\r\n\t", ":\n ")}[step["spaces"]]
    texts = {"none": write_plain, "ascii": write_ascii, "names": _escape_first_if_ascii, "every": write_escaped}
    style = JsonStyle(
        comma,
        colon,
        name=write_first_escaped if step["escapes"] == "names" else texts[step["escapes"]],
        text=texts[step["escapes"]],
        number=_NUMBERS[step["numbers"]],
        sort=_ORDERS[step["members"]],
        max_elements=_MAX_ELEMENTS,
    )
    return style.write(_add_unknown_member(document, step["unknown"]))


def _add_unknown_member(document: Mapping[str, Any], location: str) -> dict[str, Any]:
    """Return the document with a member or parameter that the protocol does not define, at this location."""
    changed = dict(document)
    if location == "top":
        changed[UNKNOWN] = {"shape": [3], "data": [1, 2, 3]}
    elif location in ("input", "output") and changed.get(f"{location}s"):
        first, *others = changed[f"{location}s"]
        changed[f"{location}s"] = [{**first, UNKNOWN: [1]}, *others]
    elif location == "parameters":
        changed["parameters"] = {**changed.get("parameters", {}), UNKNOWN: "x"}
    return changed


def _escape_first_if_ascii(text: str) -> str:
    return write_first_escaped(text) if text.isascii() else write_plain(text)


# Alternative spellings of the same floating-point number.


def _write_all_digits(value: float) -> str:
    return f"{value:.17g}" if value != int(value) else f"{value:.1f}"


def _write_short_exponent(value: float) -> str:
    mantissa, exponent = f"{value:.16e}".split("e")
    return f"{mantissa}e{int(exponent)}"


_NUMBERS: Mapping[str, Callable[[float], str]] = {
    "usual": json.dumps,
    "long": _write_all_digits,
    "exponents": _write_short_exponent,
    "capitals": lambda value: f"{value:.16E}",
}
_ORDERS: Mapping[str, Callable[[list[str]], Iterable[str]]] = {"usual": list, "reversed": reversed, "sorted": sorted}
