"""The faults that a JSON Schema of `schemas/` finds in a document, each with its place.

Which requirement a fault breaks is for the checks to say, by its place: one document answers for several requirements.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from conformance.spec import data_files
from conformance.wire.finding import format_value

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        path: members and places in arrays from the top of the document: ("outputs", 0, "name"). A missing member is
            named, as if it were there.
        rule: the keyword of the schema that is not met: "type", "required", "enum".
        expected: what the schema asks for there.
        value: what stands there, None for a missing member.
    """

    path: Path
    rule: str
    expected: str
    value: Any

    @property
    def place(self) -> str:
        """The path as a reader writes it: outputs[0].name."""
        steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path]
        return "".join(steps).lstrip(".") or "the document"

    @property
    def actual(self) -> str:
        """What stands there, as text."""
        return "nothing" if self.rule == "required" else format_value(self.value)


def find_faults(schema: str, document: Any) -> list[Fault]:
    """Return the faults of a document by their places; none where it is valid.

    Args:
        schema: the file's name without `.schema.json`.
        document: a parsed JSON value.

    Raises:
        FileNotFoundError: there is no such schema.
    """
    found: list[Fault] = []
    for error in _validator(schema).iter_errors(document):
        found += [fault for fault in _faults(error) if fault not in found]
    return sorted(found, key=lambda fault: [str(step) for step in fault.path])


@cache
def _validator(schema: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator  # slow to import, and needed by few checks

    return Draft202012Validator(json.loads((data_files.find_folder("schemas") / f"{schema}.schema.json").read_bytes()))


def _faults(error: ValidationError) -> Iterator[Fault]:
    path = tuple(error.absolute_path)
    if error.validator == "required" and isinstance(error.validator_value, list):
        for name in error.validator_value:
            if isinstance(error.instance, dict) and name not in error.instance:
                yield Fault((*path, name), "required", "there", None)
        return
    rule = str(error.validator)
    yield Fault(path, rule, _asked(rule, error.validator_value), error.instance)


def _asked(rule: str, value: Any) -> str:
    """Return what a keyword of the schema asks for, in words."""
    if rule == "type":
        return " or ".join(_TYPES[name] for name in ([value] if isinstance(value, str) else value))
    return f"{rule} {json.dumps(value)[:120]}"


_TYPES = {
    **{name: f"a {name}" for name in ("string", "number", "boolean")},
    **{name: f"an {name}" for name in ("array", "integer", "object")},
    "null": "null",
}
