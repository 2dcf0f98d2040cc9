"""The types of a report are those of its schema."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

from conformance.spec import schemas
from conformance.spec.report import Report

SCHEMA = schemas.load_schema("report")
OF_SUMMARIES = {"count"}  # members of rows that only the summary of a report has


def resolve(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a reference, and choose the alternative to null."""
    if "$ref" in schema:
        found: Any = SCHEMA
        for name in schema["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        return resolve(found)
    return resolve(schema["oneOf"][-1]) if "oneOf" in schema else schema


def compare(kind: Any, schema: Mapping[str, Any], place: str) -> list[str]:
    """Return how a type and a schema differ, in the members of all objects within them."""
    schema = resolve(schema)
    if get_origin(kind) is NotRequired:
        return compare(get_args(kind)[0], schema, place)
    if is_typeddict(kind):
        members = get_type_hints(kind, include_extras=True)
        required = {name for name in kind.__required_keys__ if get_origin(members[name]) is not NotRequired}
        names = members.keys() - OF_SUMMARIES
        return [
            *(f"{place}: {name}" for name in names ^ schema["properties"].keys()),
            *(f"{place}: {name} is required in one of them" for name in required ^ {*schema["required"]}),
            *(
                line
                for name in names & schema["properties"].keys()
                for line in compare(members[name], schema["properties"][name], f"{place}.{name}")
            ),
        ]
    if NoneType in get_args(kind):
        return compare(get_args(kind)[0], schema, place)
    inner = (get_args(kind) or [None])[-1]
    below = schema.get("items") or schema.get("additionalProperties")
    below = below or next(iter(schema.get("patternProperties", {}).values()), None)
    return compare(inner, below, place) if inner and isinstance(below, dict) else []


def test_types_of_a_report_have_the_members_of_its_schema() -> None:
    assert compare(Report, SCHEMA, "report") == []
