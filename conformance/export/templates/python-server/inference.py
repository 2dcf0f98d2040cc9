"""Answers inference requests, independent of any framework: request body in, response body out.

Requests are JSON, JSON followed by binary tensor data, or raw binary data. Outputs are requested as JSON, as binary
data, or as classes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import role_compute
import tensors
from role_compute import Array, RefusedError, Role

MODELS: Mapping[str, Role] = json.loads((Path(__file__).parent / "roles.json").read_text(encoding="utf-8"))
VERSION, HEADER = "1", "Inference-Header-Content-Length"

Answer = tuple[bytes, int, dict[str, str]]  # body, status, headers


def answer(name: str, body: bytes, lengths: Sequence[str]) -> Answer:
    """Answer a request to a model; `lengths` are the values of the inference header, at most one.

    Raises:
        ValueError: the request is refused.
    """
    role, end = MODELS[name], json_length(body, lengths)
    if lengths and end == 0:
        document: dict[str, Any] = {"parameters": {"binary_data_output": True}}
        inputs = read_raw(role, body)
    else:
        document = read_json(body[:end])
        inputs = read_inputs(role, document, body[end:])
    outputs = read_outputs(role, document)
    arrays = dict(zip([spec["name"] for spec in role["outputs"]], role_compute.run(role, inputs), strict=True))
    members = {"model_name": name, "model_version": VERSION, "id": member(document, "id", str, None)}
    return write(members, [(output, *output.made(arrays[output.name], role)) for output in outputs])


# --- members of JSON objects -----------------------------------------------------------------------------------------


def member(owner: Any, name: str, kind: type, *default: Any) -> Any:
    """Return a member of an object, of exactly this type; the default if it is absent or null."""
    found = owner.get(name) if type(owner) is dict else None
    if found is None and default:
        return default[0]
    if type(found) is not kind:  # True is an int to isinstance
        raise RefusedError(f"{name} is missing, or not of the type {kind.__name__}")
    return found


def parameter(owner: Any, name: str, kind: type) -> Any:
    """Return a parameter; None if it is absent."""
    return member(member(owner, "parameters", dict, {}), name, kind, None)


# --- a request -------------------------------------------------------------------------------------------------------


def json_length(body: bytes, lengths: Sequence[str]) -> int:
    """Return the length of the JSON: from the header, or the whole body without it."""
    if not lengths:
        return len(body)
    text = lengths[0]
    if len(lengths) > 1 or not (text.isascii() and text.isdecimal()) or len(text) > 18 or int(text) > len(body):
        raise RefusedError(f"{HEADER} is no length of JSON in {len(body)} bytes: {', '.join(lengths)[:80]}")
    return int(text)


def read_json(text: bytes) -> dict[str, Any]:
    """Parse the JSON of a request; refuse NaN and Infinity, which Python accepts."""

    def refuse(name: str) -> float:
        raise RefusedError(name)

    try:
        document = json.loads(text.decode(), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"the request is not JSON: {error}") from error
    if type(document) is not dict:
        raise RefusedError("the request is not a JSON object")
    return document


def read_inputs(role: Role, document: Any, binary: bytes) -> dict[str, Array]:
    """Return the inputs, from the JSON or from the binary data after it, which follow the order of the JSON."""
    arrays, place = {}, 0
    given = member(document, "inputs", list)
    described = [(member(each, "name", str), member(each, "datatype", str), read_shape(each)) for each in given]
    role_compute.check(role, described)
    for each, (name, datatype, shape) in zip(given, described, strict=True):
        size, data = parameter(each, "binary_data_size", int), member(each, "data", list, None)
        if (size is None) == (data is None) or not 0 <= (size or 0) <= len(binary) - place:
            raise RefusedError(
                f"input {name} has both data and binary data, has neither, or needs more bytes than are left"
            )
        if size is None:
            arrays[name] = tensors.from_json(data, datatype, shape)
        else:
            arrays[name] = tensors.from_bytes(binary[place : place + size], datatype, shape)
            place += size
    if place != len(binary):
        raise RefusedError(f"{len(binary) - place} bytes are left over")
    return arrays


def read_shape(tensor: Any) -> list[int]:
    """Return the shape of an input."""
    sizes: list[int] = member(tensor, "shape", list)
    if not all(type(size) is int and 0 <= size < 2**63 for size in sizes):
        raise RefusedError(f"no shape: {str(sizes)[:80]}")
    return sizes


def read_raw(role: Role, body: bytes) -> dict[str, Array]:
    """Return the single input from the whole body: a batch of 1; a variable dimension is computed from the size."""
    (spec, *others), datatype = role["inputs"], role["inputs"][0]["datatype"]
    shape = [1, *spec["shape"][1:]] if role["batching"] else list(spec["shape"])
    if others or shape.count(-1) > 1 or (datatype == "BYTES" and shape != [1]):
        raise RefusedError("the model does not accept raw binary requests")
    if datatype == "BYTES":  # the element itself, without its length
        return {spec["name"]: role_compute.texts([body], shape)}
    if -1 in shape:
        shape[shape.index(-1)] = len(body) // (-prod(shape) * tensors.DTYPES[datatype].itemsize)
    return {spec["name"]: tensors.from_bytes(body, datatype, shape)}


# --- outputs ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Output:
    """A requested output; `classes` is the number of classes, or None for the tensor itself."""

    name: str
    datatype: str
    is_binary: bool
    classes: int | None

    def made(self, array: Array, role: Role) -> tuple[Array, str]:
        """Return the array to send for this output, or its classes, and the datatype."""
        if self.classes is None:
            return array, self.datatype
        labels = role["labels"].get(self.name, [])
        return tensors.classes(array, self.datatype, self.classes, labels, batching=role["batching"]), "BYTES"


def read_outputs(role: Role, document: Any) -> list[Output]:
    """Return the listed outputs, or all; `binary_data` of an output overrides `binary_data_output` of the request."""
    datatypes = {spec["name"]: spec["datatype"] for spec in role["outputs"]}
    usual, found = parameter(document, "binary_data_output", bool), []
    for each in member(document, "outputs", list, []) or [{"name": name} for name in datatypes]:
        name, own = member(each, "name", str), parameter(each, "binary_data", bool)
        if name not in datatypes:
            raise RefusedError(f"output {name} does not exist, or is listed twice")
        is_binary = bool(usual if own is None else own)
        found.append(Output(name, datatypes.pop(name), is_binary, parameter(each, "classification", int)))
    return found


def write(members: Mapping[str, Any], outputs: Sequence[tuple[Output, Array, str]]) -> Answer:
    """Return the answer: JSON, followed by the binary data in the same order."""
    entries, binary = [], []
    for output, array, datatype in outputs:
        entry = {"name": output.name, "datatype": datatype, "shape": list(array.shape)}
        if output.is_binary:
            binary.append(tensors.to_bytes(array, datatype))
            entries.append({**entry, "parameters": {"binary_data_size": len(binary[-1])}})
        else:
            entries.append({**entry, "data": tensors.to_json(array, datatype)})
    document = {**{name: each for name, each in members.items() if each is not None}, "outputs": entries}
    head = json.dumps(document).encode()
    if not binary:
        return head, 200, {"Content-Type": "application/json"}
    return b"".join([head, *binary]), 200, {"Content-Type": "application/octet-stream", HEADER: str(len(head))}
