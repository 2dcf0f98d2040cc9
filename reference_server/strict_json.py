"""JSON as RFC 8259 has it, and no more: what Python's reader lets through besides is refused.

Refused are repeated members (which value counts would be a matter of taste), NaN and Infinity, and nesting so deep that
only an attack needs it.
"""

from __future__ import annotations

import json
from typing import Any

from reference_server.errors import InferenceError, shown

MAX_DEPTH = 32


def parse_object(data: bytes | memoryview) -> dict[str, Any]:
    """Return the one JSON object that `data` is, blanks around it allowed."""
    try:
        value = json.loads(str(data, "utf-8"), object_pairs_hook=distinct_members, parse_constant=refuse_constant)
    except UnicodeDecodeError as error:
        raise InferenceError(f"the JSON is not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise too_deep() from None
    except json.JSONDecodeError as error:
        raise InferenceError(f"not JSON: {error.msg} at character {error.pos}") from None
    except ValueError:  # Python's own bound on the digits of an integer
        raise InferenceError("the JSON has an integer of too many digits") from None
    if not isinstance(value, dict):
        raise InferenceError(f"the JSON must be an object, not {shown(value)}")
    check_depth(value)
    return value


def distinct_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object, refusing a repeated member."""
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise InferenceError(f"the JSON has the member {shown(name)} twice in one object")
        members[name] = value
    return members


def refuse_constant(name: str) -> None:
    """Refuse the literals that Python reads and JSON does not have."""
    raise InferenceError(f"not JSON: {name} is not a JSON number")


def check_depth(value: dict[str, Any]) -> None:
    """Refuse nesting beyond MAX_DEPTH, level by level so that the check itself cannot recurse."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise too_deep()


def too_deep() -> InferenceError:
    """Return the refusal of deep nesting."""
    return InferenceError(f"the JSON is nested more than {MAX_DEPTH} levels deep")
