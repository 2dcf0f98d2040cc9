"""The JSON schemas of the project's files, and validation against them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from conformance.spec import data_files
from conformance.spec.text import escape_text

if TYPE_CHECKING:  # slow to import, and only needed for files
    from jsonschema import ValidationError


@cache
def load_schema(name: str) -> dict[str, Any]:
    """Load `schemas/NAME.schema.json`; callers must not change the cached result."""
    path = data_files.find_folder("schemas") / f"{name}.schema.json"
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema


def find_error(document: Any, schema: Mapping[str, Any], *, checks_formats: bool = False) -> ValidationError | None:
    """Return the most relevant validation error of a document; None if the document is valid.

    Args:
        document: the data parsed from JSON or TOML.
        schema: the schema to validate against; schemas that it refers to apply as well.
        checks_formats: whether to validate formats such as dates and URLs.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    checker = Draft202012Validator.FORMAT_CHECKER if checks_formats else None
    error: ValidationError | None = best_match(
        Draft202012Validator(schema, format_checker=checker).iter_errors(document)
    )
    return error


def describe_error(error: ValidationError) -> str:
    """Return the location and description of a validation error, as one line."""
    return f"{escape_text(error.json_path)}: {escape_text(error.message)}"
