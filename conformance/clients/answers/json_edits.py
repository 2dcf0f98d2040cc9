"""Changes of an answer's JSON that leave what it says as it is: order of members, and members nobody has to know."""

from __future__ import annotations

from typing import Any, Final

from conformance.clients.answers.honest import Document

# Members of a server's own, of every kind that JSON has.
OWN_MEMBERS: Final[Document] = {
    "x_timing": {"queue_us": 12, "compute_us": [3, 4.5], "cached": False},
    "x_note": "binary_data_size",
    "x_nothing": None,
}
# Parameters, whose values are strings, numbers and booleans.
OWN_PARAMETERS: Final[Document] = {
    "x_end": True,
    "x_queue_us": 12,
    "x_share": 0.5,
    "x_note": "binary_data_size",
}


def reverse_members(document: Document) -> Document:
    """Return the JSON with the members of every object in the opposite order: parameters first, the name last."""
    reversed_document: Document = _reversed(document)
    return reversed_document


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _reversed(value[name]) for name in reversed(value)}
    return [_reversed(member) for member in value] if isinstance(value, list) else value


def add_unknown_members(document: Document) -> Document:
    """Return the JSON with members of the server's own: of the answer, of each output."""
    outputs = [{**OWN_MEMBERS, **entry, "x_rank": len(entry["shape"])} for entry in document["outputs"]]
    return {**OWN_MEMBERS, **document, "outputs": outputs}


def add_own_parameters(document: Document) -> Document:
    """Return the JSON with parameters of the server's own: of the answer, of each output."""
    outputs = [
        {**entry, "parameters": {**OWN_PARAMETERS, **entry.get("parameters", {})}} for entry in document["outputs"]
    ]
    return {**document, "parameters": OWN_PARAMETERS, "outputs": outputs}


def put_outputs_first(document: Document) -> Document:
    """Return the JSON with the outputs in front of what else there is."""
    return {"outputs": document["outputs"], **document}


def put_size_last(document: Document) -> Document:
    """Return the JSON with parameters of the server's own in front of the size, which is the very last member."""
    outputs = [_size_last(entry) for entry in document["outputs"]]
    rest = {name: member for name, member in document.items() if name != "outputs"}
    return {**rest, "outputs": outputs}


def _size_last(entry: Document) -> Document:
    own = {"x_layout": "row-major", "x_strides": "[4,1]"}
    rest = {name: member for name, member in entry.items() if name != "parameters"}
    return {**rest, "parameters": {**own, **entry.get("parameters", {})}}
