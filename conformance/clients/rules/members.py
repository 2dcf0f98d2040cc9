"""The rules for JSON members and parameters of an HTTP request: their types, and where they may appear."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from conformance.clients.rules.rule import Fault, Faults, to_fault
from conformance.wire.finding import format_value
from conformance.wire.parsed_request import ParsedRequest

# Findings about `inputs` and its elements. `_find_member_faults` judges names itself, since it accepts an empty string.
_MEMBERS: Final = frozenset(
    {"inputs-missing", "inputs-invalid", "input-invalid", "datatype-unknown", "shape-no-integers"}
)
_MAX_DIMENSION: Final = 2**64 - 1

# The place of each parameter of the extensions.
_BINARY_OWNERS: Final[Mapping[str, str]] = {
    "binary_data_size": "an input",
    "binary_data": "a requested output",
    "binary_data_output": "the request",
}
_BOOLEANS: Final = frozenset({"binary_data", "binary_data_output"})
CLASSIFICATION: Final = "classification"
_OUTPUT: Final = "a requested output"
_CLASSIFICATION_OWNERS: Final[Mapping[str, str]] = {CLASSIFICATION: _OUTPUT}


def judge_members(request: ParsedRequest) -> Faults:
    """Inputs, requested outputs, the id and parameters have the types that the protocol defines."""
    return None if request.document is None else _find_member_faults(request, request.document)


def _find_member_faults(request: ParsedRequest, document: Mapping[str, Any]) -> Iterator[Fault]:
    yield from (to_fault(finding) for finding in request.findings if finding.kind in _MEMBERS)
    for index, item in request.items().items():
        yield from _expect_string(f"inputs[{index}].name", item.get("name"))
        shape = item.get("shape")
        if not _is_shape(shape):
            yield Fault("an array of unsigned integers", f"inputs[{index}].shape: {_format_optional(shape)}")
    outputs = document.get("outputs")
    if outputs is not None and not isinstance(outputs, list):
        yield Fault("an array", f"outputs: {format_value(outputs)}")
    for index, item in enumerate(outputs if isinstance(outputs, list) else ()):
        if isinstance(item, dict):
            yield from _expect_string(f"outputs[{index}].name", item.get("name"))
        else:
            yield Fault("an object", f"outputs[{index}]: {format_value(item)}")
    if document.get("id") is not None:
        yield from _expect_string("id", document["id"])
    yield from _find_parameter_faults(document)


def _expect_string(field: str, value: Any) -> Iterator[Fault]:
    if not isinstance(value, str):
        yield Fault("a string", f"{field}: {_format_optional(value)}")


def _format_optional(value: Any) -> str:
    return "nothing" if value is None else format_value(value)


def _is_shape(value: Any) -> bool:
    """Whether a JSON value is a list of unsigned integers of at most 64 bits; 3.0 counts as the integer 3."""
    return isinstance(value, list) and all(_is_integer(size) and 0 <= size <= _MAX_DIMENSION for size in value)


def _is_integer(value: Any) -> bool:
    return type(value) is int or (type(value) is float and value.is_integer())


# --- parameters ------------------------------------------------------------------------------------------------------


def judge_parameters(request: ParsedRequest) -> Faults:
    """The parameters of the binary tensor data extension have the right types. Skips misplaced parameters."""
    if request.document is None:
        return None
    found = [to_fault(finding) for finding in request.findings if finding.kind in _SIZE_KINDS]
    named = list(_list_parameters(request.document, _BINARY_OWNERS))
    found += [
        Fault("a boolean", f"{field}.{name}: {format_value(value)}")
        for owner, field, name, value in named
        if owner == _BINARY_OWNERS[name] and name in _BOOLEANS and not isinstance(value, bool)
    ]
    return found if found or named else None


_SIZE_KINDS: Final = frozenset({"size-missing", "size-not-integer"})


def judge_parameter_places(request: ParsedRequest) -> Faults:
    """Parameters of the binary tensor data extension are only in the objects for which they are defined."""
    return (
        None
        if request.document is None
        else _find_misplaced_parameters(_list_parameters(request.document, _BINARY_OWNERS), _BINARY_OWNERS)
    )


def _find_misplaced_parameters(named: Iterable[_NamedParameter], allowed_owners: Mapping[str, str]) -> Faults:
    found = list(named)
    astray = [
        Fault(f"{name} in the parameters of {allowed_owners[name]}", f"{field}.{name}")
        for owner, field, name, _ in found
        if owner != allowed_owners[name]
    ]
    return astray if found else None


def _find_parameter_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield parameters of no type that the protocol has; `null` counts as absent. Skips extensions."""
    owners = {**_BINARY_OWNERS, **_CLASSIFICATION_OWNERS}
    for owner, field, value in _list_parameter_owners(document):
        given = value.get("parameters")
        if given is not None and not isinstance(given, dict):
            yield Fault("an object", f"{field}parameters: {format_value(given)}")
        for name, one in given.items() if isinstance(given, dict) else ():
            if owners.get(name) != owner and isinstance(one, dict | list):
                kind = "a string, a number or a boolean"
                yield Fault(kind, f"{field}parameters: {format_value(name)}: {format_value(one)}")


def judge_classification(request: ParsedRequest) -> Faults:
    """`classification`, in the parameters of a requested output, is a number of classes."""
    if request.document is None:
        return None
    counts = [
        (field, value)
        for owner, field, _, value in _list_parameters(request.document, _CLASSIFICATION_OWNERS)
        if owner == _OUTPUT
    ]
    found = [
        Fault("a number of classes", f"{field}.{CLASSIFICATION}: {format_value(value)}")
        for field, value in counts
        if not is_count(value)
    ]
    return found if counts else None


def judge_classification_place(request: ParsedRequest) -> Faults:
    """A number of classes is only in the parameters of a requested output."""
    if request.document is None:
        return None
    # Elsewhere, a value that is not a count is a custom parameter of the server.
    counts = [named for named in _list_parameters(request.document, _CLASSIFICATION_OWNERS) if is_count(named[3])]
    return _find_misplaced_parameters(counts, _CLASSIFICATION_OWNERS)


def is_count(value: Any) -> bool:
    """Whether a JSON value is a number of classes; 2.0 counts as 2, and 0 is allowed."""
    return _is_integer(value) and value >= 0


_ParameterOwner = tuple[str, str, Mapping[str, Any]]
_NamedParameter = tuple[str, str, str, Any]


def _list_parameters(document: Mapping[str, Any], names: Iterable[str]) -> Iterator[_NamedParameter]:
    """Yield (owner, field, name, value) for each parameter with one of these names; `null` counts as absent.

    Owners and fields are those of `_list_parameter_holders`.
    """
    for owner, field, given in _list_parameter_holders(document):
        yield from ((owner, field, name, given[name]) for name in names if given.get(name) is not None)


def _list_parameter_holders(document: Mapping[str, Any]) -> Iterator[_ParameterOwner]:
    """Yield (owner, field, object) for each object that may contain parameters of an extension.

    The owner of `parameters` is the request, the input or the requested output that contains them. Each request, input
    and output is yielded itself as well, with the owner "nobody": a parameter beside `parameters` is misplaced.
    """
    for owner, field, value in _list_parameter_owners(document):
        given = value.get("parameters")
        if isinstance(given, dict):
            yield owner, f"{field}parameters", given
        yield "nobody", field.rstrip(".") or "the request", value


def _list_parameter_owners(document: Mapping[str, Any]) -> Iterator[_ParameterOwner]:
    """Yield (kind, prefix of field names, JSON object) for the request, each input and each requested output."""
    yield "the request", "", document
    for member, owner in (("inputs", "an input"), ("outputs", _OUTPUT)):
        items = document.get(member)
        objects: Sequence[Any] = items if isinstance(items, list) else ()
        yield from (
            (owner, f"{member}[{index}].", item) for index, item in enumerate(objects) if isinstance(item, dict)
        )
