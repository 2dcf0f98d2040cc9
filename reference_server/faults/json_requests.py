"""The JSON of requests read by whoever knows one way to write it, and paths with a version that do less."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from reference_server.errors import InferenceError
from reference_server.faults import fault

Object = dict[str, Any]

# --- order of members ------------------------------------------------------------------------------------------------


def _inputs(found: Object) -> list[Object]:
    inputs = found.get("inputs")
    return [entry for entry in inputs if isinstance(entry, dict)] if isinstance(inputs, list) else []


def _behind(owner: Object, name: str, other: str) -> bool:
    """Whether one member stands behind another, both being there."""
    names = list(owner)
    return name in owner and other in owner and names.index(name) > names.index(other)


@fault("strict_json.parse_object", breaks="OIP-WRITTEN")
def shape_behind_the_data_not_seen(original: Any, data: Any) -> Object:
    """An input is read up to its `data`, so that a `shape` behind it is missing."""
    found: Object = original(data)
    for entry in _inputs(found):
        if _behind(entry, "shape", "data"):
            del entry["shape"]
    return found


@fault("strict_json.parse_object", breaks="OIP-WRITTEN")
def sizes_in_front_of_the_name_lost(original: Any, data: Any) -> Object:
    """`parameters` of an input that stand before its `name` are not looked at."""
    found: Object = original(data)
    for entry in _inputs(found):
        if _behind(entry, "name", "parameters"):
            del entry["parameters"]
    return found


@fault("strict_json.parse_object", breaks="OIP-WRITTEN")
def id_behind_the_inputs_lost(original: Any, data: Any) -> Object:
    """An `id` that stands behind `inputs` is not looked at."""
    found: Object = original(data)
    if _behind(found, "id", "inputs"):
        del found["id"]
    return found


# --- escapes and white space -----------------------------------------------------------------------------------------


def _refusing(pattern: bytes, what: str) -> Callable[[Any, Any], Object]:
    """Return what reads JSON but for a text in which the pattern is found."""

    def parse(original: Any, data: Any) -> Object:
        if re.search(pattern, bytes(data)):
            raise InferenceError(what)
        found: Object = original(data)
        return found

    return parse


@fault("strict_json.parse_object", breaks="OIP-WRITTEN")
def escaped_names_of_tensors_not_recognised(original: Any, data: Any) -> Object:
    """A tensor whose name is written with an escape is not found."""
    return _refusing(rb'"name"\s*:\s*"[^"]*\\u', "no such tensor")(original, data)


@fault("strict_json.parse_object", breaks="OIP-WRITTEN")
def escaped_members_not_recognised(original: Any, data: Any) -> Object:
    """A member whose name is written with an escape is not found."""
    return _refusing(rb'\\u[0-9a-fA-F]{4}[^":,]*"\s*:', "inputs is missing")(original, data)


@fault("strict_json.parse_object", breaks="OIP-WRITTEN")
def blanks_before_a_colon_refused(original: Any, data: Any) -> Object:
    """White space between the name of a member and its colon is refused."""
    return _refusing(rb'"\s+:', "a colon is expected")(original, data)


# --- members that no object defines ----------------------------------------------------------------------------------


def _refuse_others(found: Object, owner: str, known: Sequence[str]) -> Object:
    entries = found.get(owner)
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.keys() - set(known):
            raise InferenceError(f"unknown members in {owner}", 422)
    return found


@fault("strict_json.parse_object", breaks="OIP-MEMBERS")
def undefined_members_of_inputs_refused(original: Any, data: Any) -> Object:
    """An input with a member that is not defined is refused."""
    return _refuse_others(original(data), "inputs", ("name", "shape", "datatype", "parameters", "data"))


@fault("strict_json.parse_object", breaks="OIP-MEMBERS")
def undefined_members_of_outputs_refused(original: Any, data: Any) -> Object:
    """A requested output with a member that is not defined is refused."""
    return _refuse_others(original(data), "outputs", ("name", "parameters"))


# --- paths with a version --------------------------------------------------------------------------------------------


def _has_version(http: Request) -> bool:
    return "/versions/" in http.url.path


@fault("app.Service.find", breaks="OIP-VERSION-UNKNOWN")
def versions_are_ignored(original: Any, service: Any, http: Request) -> Any:
    """A path with any version is that of the only one."""
    http.path_params.pop("version", None)
    return original(service, http)


@fault("app.Service.infer", breaks="OIP-VERSIONED")
async def another_version_named_under_a_version(original: Any, service: Any, http: Request) -> Response:
    """An answer at the path with a version names another one."""
    answer: Response = await original(service, http)
    if _has_version(http):
        answer.body = bytes(answer.body).replace(b'"model_version":"1"', b'"model_version":"2"')
    return answer
