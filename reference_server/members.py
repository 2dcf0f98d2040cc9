"""Members of the request's JSON, each read with the type it must have. A member that is null counts as absent."""

from __future__ import annotations

from typing import Any

from reference_server.errors import InferenceError, format_value
from reference_server.limits import get_limits

Object = dict[str, Any]


def get_string(owner: Object, name: str) -> str:
    """Return a required member that is a string."""
    value = owner.get(name)
    if not isinstance(value, str):
        raise InferenceError(
            f"{name} must be a string, not {format_value(value)}" if value is not None else f"{name} is missing"
        )
    return value


def get_objects(owner: Object, name: str) -> list[Object]:
    """Return a member that is an array of objects, empty when absent; refuse more entries than the limit."""
    value = owner.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InferenceError(f"{name} must be an array, not {format_value(value)}")
    if len(value) > get_limits().entries:
        raise InferenceError(f"{name} has {len(value)} entries, more than the limit of {get_limits().entries}")
    for index, item in enumerate(value):
        if not isinstance(item, dict):
            raise InferenceError(f"{name}[{index}] must be an object, not {format_value(item)}")
    return value


def get_parameters(owner: Object) -> Object:
    """Return the member `parameters`; an empty object when absent."""
    value = owner.get("parameters")
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InferenceError(f"parameters must be an object, not {format_value(value)}")
    return value


def get_flag(given: Object, name: str) -> bool | None:
    """Return a boolean parameter; None when absent."""
    value = given.get(name)
    if value is not None and not isinstance(value, bool):
        raise InferenceError(f"parameters.{name} must be true or false, not {format_value(value)}")
    return value


def get_integer(given: Object, name: str, minimum: int) -> int | None:
    """Return an integer parameter of at least `minimum`; None when absent. 2.0 is refused."""
    value = given.get(name)
    if value is None:
        return None
    if type(value) is not int or value < minimum:
        raise InferenceError(f"parameters.{name} must be an integer of at least {minimum}, not {format_value(value)}")
    return value


def get_shape(owner: Object) -> tuple[int, ...]:
    """Return the required member `shape`: an array of integers from 0 to 2^63 - 1."""
    value = owner.get("shape")
    if value is None:
        raise InferenceError("shape is missing")
    if not isinstance(value, list):
        raise InferenceError(f"shape must be an array, not {format_value(value)}")
    for axis, extent in enumerate(value):
        if type(extent) is not int or not 0 <= extent < 2**63:
            raise InferenceError(f"shape[{axis}] must be an integer from 0 to 2^63 - 1, not {format_value(extent)}")
    return tuple(value)
