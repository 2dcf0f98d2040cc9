"""The JSON of a request in other spellings: the same document to every reader of JSON.

Source: RFC 8259, 2 "JSON Grammar", 4 "Objects", 6 "Numbers" and 7 "Strings".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from conformance.checks.walk.covering import Step

UNKNOWN = "oip_conformance_unknown"
_BLANKS: Mapping[str, tuple[str, str]] = {"none": (",", ":"), "blanks": (" , ", " : "), "lines": (",\r\n\t", ":\n ")}
_IN_LONG_DATA = 512  # elements from which on data are written by the library alone


def write_json(document: Mapping[str, Any], step: Step) -> bytes:
    """Return the JSON text of a document as the step's axes of writing say."""
    return _text(_in_order(_with_unknown(document, step["unknown"]), step["members"]), step).encode()


def _with_unknown(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the document with a member, or a parameter, that no request object defines."""
    made = dict(document)
    if where == "top":
        made[UNKNOWN] = {"shape": [3], "data": [1, 2, 3]}
    elif where in ("input", "output") and made.get(f"{where}s"):
        first, *others = made[f"{where}s"]
        made[f"{where}s"] = [{**first, UNKNOWN: [1]}, *others]
    elif where == "parameters":
        made["parameters"] = {**made.get("parameters", {}), UNKNOWN: "x"}
    return made


def _in_order(value: Any, order: str) -> Any:
    """Return a value whose objects have their members in another order, at every level."""
    if order == "usual" or not isinstance(value, dict | list):
        return value
    if isinstance(value, list):
        return [_in_order(item, order) for item in value] if value and isinstance(value[0], dict) else value
    names = sorted(value) if order == "sorted" else list(reversed(value))
    return {name: _in_order(value[name], order) for name in names}


def _text(value: Any, step: Step) -> str:
    """Return the text of a value."""
    comma, colon = _BLANKS[step["spaces"]]
    if isinstance(value, dict):
        members = [f"{_string(name, step, is_name=True)}{colon}{_text(item, step)}" for name, item in value.items()]
        return "{" + comma.join(members) + "}"
    if isinstance(value, list):
        if len(value) >= _IN_LONG_DATA or _is_as_usual(value, step):
            return json.dumps(value, ensure_ascii=step["escapes"] != "none", separators=(comma, colon))
        return "[" + comma.join(_text(item, step) for item in value) + "]"
    if isinstance(value, str):
        return _string(value, step, is_name=False)
    return _number(value, step["numbers"]) if isinstance(value, float) else json.dumps(value)


def _is_as_usual(value: list[Any], step: Step) -> bool:
    """Say whether the library writes every element of a list as the step does."""
    types = set(map(type, value))
    return (
        types <= {int, bool}
        or (types == {float} and step["numbers"] == "usual")
        or (types == {str} and step["escapes"] in ("none", "ascii"))
    )


def _string(text: str, step: Step, *, is_name: bool) -> str:
    """Return a string; an escape may stand for any letter, two of them for one beyond U+FFFF."""
    escapes = step["escapes"]
    if escapes == "every":
        return '"' + _escaped(text) + '"'
    if escapes == "names" and text and (is_name or text.isascii()):
        return '"' + _escaped(text[0]) + json.dumps(text[1:], ensure_ascii=False)[1:]
    return json.dumps(text, ensure_ascii=escapes == "ascii")


def _escaped(text: str) -> str:
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[k : k + 2].hex()}" for k in range(0, len(units), 2))


def _number(value: float, style: str) -> str:
    """Return a number in another spelling of the same double."""
    if style == "long":
        return f"{value:.17g}" if value != int(value) else f"{value:.1f}"
    if style == "usual":
        return json.dumps(value)
    mantissa, exponent = f"{value:.16e}".split("e")
    return f"{mantissa}{'E' if style == 'capitals' else 'e'}{exponent if style == 'capitals' else int(exponent)}"
