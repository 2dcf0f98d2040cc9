"""The form of an entry of a recording, as far as it is read: a recording may come from anybody.

Every member that is read is in one of the tables. What is not there is of no interest, and can be anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Final

Kinds = type | tuple[type, ...]

_ENTRY: Final[Mapping[str, Kinds]] = {
    "startedDateTime": str,
    "time": (int, float),
    "request": dict,
    "response": dict,
    "_scope": str,
    "_call": int,
    "_place": int,
}
_OPTIONAL: Final[Mapping[str, Kinds]] = {
    "_note": str,
    "_lost": str,
    "_go_ahead": str,
    "_died": bool,
    "_failure": str,
    "_failure_kind": str,
    "_grpc": dict,
    "_client": str,
    "_received": dict,
}
_REQUEST: Final[Mapping[str, Kinds]] = {"method": str, "url": str, "headers": list}
_RESPONSE: Final[Mapping[str, Kinds]] = {"status": int, "httpVersion": str, "headers": list, "content": dict}
_HEADER: Final[Mapping[str, Kinds]] = {"name": str, "value": str}
_BODY: Final[Mapping[str, Kinds]] = {
    "text": str,
    "encoding": str,
    "_encoding": str,
    "_sha256": str,
    "_length": int,
    "_head": str,
    "_tail": str,
}
_GRPC: Final[Mapping[str, Kinds]] = {"code": str, "details": str}


def expect_form(entry: Any) -> None:
    """See that every member of an entry that is read is of its type.

    Raises:
        ValueError: one is not; the message is one line that names it.
    """
    _expect(entry, "entry", _ENTRY, _OPTIONAL)
    if not isfinite(entry["time"]) or entry["time"] < 0:
        raise ValueError("time is no number of milliseconds")
    sent, came = entry["request"], entry["response"]
    _expect(sent, "request", _REQUEST, {"postData": dict})
    _expect(came, "response", _RESPONSE)
    _expect(came["content"], "content", {}, _BODY)
    if "postData" in sent:
        _expect(sent["postData"], "postData", {}, _BODY)
    if "_grpc" in entry:
        _expect(entry["_grpc"], "_grpc", _GRPC)
    for header in (*sent["headers"], *came["headers"]):
        if not _is_header(header):  # which is told at once, of a hundred thousand
            _expect(header, "header", _HEADER)


def _expect(found: Any, name: str, members: Mapping[str, Kinds], optional: Mapping[str, Kinds] | None = None) -> None:
    if not isinstance(found, dict):
        raise ValueError(f"{name} is no object")
    missing = next((member for member in members if member not in found), None)
    if missing is not None:
        raise ValueError(f"{name} has no {missing}")
    for member, kinds in (*members.items(), *(optional or {}).items()):
        if member in found and not _is_of(found[member], kinds):
            raise ValueError(f"{name}: {member} is of another type")


def _is_header(found: Any) -> bool:
    return type(found) is dict and type(found.get("name")) is str and type(found.get("value")) is str


def _is_of(value: Any, kinds: Kinds) -> bool:
    """Say whether a value is of one of these types; true and false are no numbers."""
    return isinstance(value, kinds) and (not isinstance(value, bool) or kinds is bool)
