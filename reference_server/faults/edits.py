"""Helpers of faults: conditions on requests, and edits of JSON, tensors and answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from reference_server.framing import HEADER
from reference_server.members import Object
from reference_server.models import Model
from reference_server.request import RequestedOutput
from reference_server.tensors import Tensor, make_objects

Elements = Any
Function = Callable[..., Any]

# --- requests and answers over HTTP ---------------------------------------------------------------------------------


def is_chunked(http: Request) -> bool:
    """Whether a request is chunked."""
    return "transfer-encoding" in http.headers


def is_raw(http: Request) -> bool:
    """Whether a request is a raw binary request."""
    return http.headers.get(HEADER) == "0"


def is_binary(answer: Response) -> bool:
    """Whether an answer contains binary data."""
    return HEADER in answer.headers


def has_version(http: Request) -> bool:
    """Whether the path of a request names a version of the model."""
    return "version" in http.path_params


def get_media_type(http: Request) -> str:
    """Return the Content-Type of a request, empty if absent."""
    return http.headers.get("content-type", "")


def set_headers(**headers: str) -> Function:
    """Return a function that sets headers of an answer; underscores in the names stand for hyphens."""

    def change(answer: Response) -> Response:
        answer.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
        return answer

    return change


def set_header(response: Response, name: str, value: object | None) -> Response:
    """Set a header of an answer; None removes it."""
    if value is None:
        del response.headers[name]
    else:
        response.headers[name] = str(value)
    return response


def replace_body(answer: Response, body: bytes) -> Response:
    """Return the answer with another body."""
    answer.body = body
    return set_header(answer, "Content-Length", len(body))


def set_status(status: int) -> Function:
    """Return a function that gives an answer another status."""

    def change(answer: Response) -> Response:
        answer.status_code = status
        return answer

    return change


# --- JSON -----------------------------------------------------------------------------------------------------------


def drop_members(item: Mapping[str, Any], *members: str) -> Object:
    """Return a JSON object without the given members."""
    return {member: value for member, value in item.items() if member not in members}


def get_parameters(owner: object) -> Object:
    """Return the parameters of an object; empty if it has none."""
    found = owner.get("parameters") if isinstance(owner, dict) else None
    return found if isinstance(found, dict) else {}


def set_parameter(owner: Object, name: str, value: object) -> Object:
    """Return an object with another value of a parameter."""
    return owner | {"parameters": {**get_parameters(owner), name: value}}


def get_entries(request: object, name: str) -> list[Object]:
    """Return the objects in an array member; empty if it is not an array."""
    entries = request.get(name) if isinstance(request, dict) else None
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def change_members(owner: Object, change: Function, name: str) -> Object:
    """Return an object in which `change` has replaced each item of a member that is an array of objects."""
    return owner | {name: list(map(change, owner[name]))} if name in owner else owner


def has_listed_objects(request: Object, name: str) -> bool:
    """Whether a member is an array of objects that is not empty, for faults that run before the server checks this."""
    entries = request.get(name)
    return isinstance(entries, list) and bool(entries) and all(isinstance(item, dict) for item in entries)


def has_named_inputs(request: Object) -> bool:
    """Whether `inputs` is an array of objects with names, for faults that run before the server checks this."""
    inputs = request.get("inputs")
    return isinstance(inputs, list) and all(isinstance(item, dict) and "name" in item for item in inputs)


def sort_inputs(request: Object, key: Callable[[Object], Any]) -> Object:
    """Return a request with its inputs in another order."""
    return request | {"inputs": sorted(request["inputs"], key=key)} if has_named_inputs(request) else request


def sort_as_declared(request: Object, model: Model) -> Object:
    """Return a request with its inputs in the order of the model's declaration."""
    places = {spec.name: place for place, spec in enumerate(model.inputs)}
    return sort_inputs(request, lambda entry: places.get(str(entry["name"]), 0))


def is_member_after(owner: Object, name: str, other: str) -> bool:
    """Whether both members exist and `name` comes after `other`."""
    names = list(owner)
    return name in owner and other in owner and names.index(name) > names.index(other)


def dump_json(value: object) -> str:
    """Return a value as JSON; NaN and infinities become bare words."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def find_json_end(body: bytes) -> int:
    """Return the offset at which the first JSON value of a body ends; 0 if the body has no JSON value."""
    text = body.decode("latin-1")  # one character per byte
    try:
        return json.JSONDecoder().raw_decode(text, len(text) - len(text.lstrip()))[1]
    except ValueError:
        return 0


# --- sizes and lists of outputs ---------------------------------------------------------------------------------------


def get_size(entry: Object) -> Any:
    """Return the binary_data_size of an input, whatever its type; None if absent."""
    return (entry.get("parameters") or {}).get("binary_data_size")


def set_size(entry: Object, size: object) -> Object:
    """Return an input or output whose only parameter is this binary_data_size; None makes the size absent."""
    return entry | {"parameters": {"binary_data_size": size}}


def set_binary(requested: list[RequestedOutput], flags: Iterable[bool]) -> list[RequestedOutput]:
    """Return requested outputs with other values of `binary`."""
    return [replace(output, binary=binary) for output, binary in zip(requested, flags, strict=False)]


def set_classes(requested: list[RequestedOutput], choose: Function) -> list[RequestedOutput]:
    """Return requested outputs with the number of classes that `choose` returns for each."""
    return [replace(output, classes=choose(output)) for output in requested]


# --- tensors --------------------------------------------------------------------------------------------------------


def on_elements(change: Callable[[Elements], Elements], *datatypes: str) -> Callable[[Tensor], Tensor]:
    """Return a function that changes the elements of tensors of these datatypes; of all but BYTES if none is named."""

    def change_tensor(tensor: Tensor) -> Tensor:
        is_changed = tensor.datatype in datatypes if datatypes else tensor.datatype != "BYTES"
        return replace(tensor, elements=change(tensor.elements)) if is_changed else tensor

    return change_tensor


def on_each(change: Callable[[Tensor], Tensor]) -> Callable[[Mapping[str, Tensor]], dict[str, Tensor]]:
    """Return a function that changes each of several tensors."""
    return lambda tensors: {name: change(tensor) for name, tensor in tensors.items()}


def on_strings(change: Callable[[bytes], bytes]) -> Callable[[Tensor], Tensor]:
    """Return a function that changes each element of BYTES tensors."""
    return on_elements(lambda elements: make_objects(map(change, elements)), "BYTES")


def set_elements(elements: Elements, where: Any, values: Any) -> Elements:
    """Return a copy of elements with other values at an index or a slice."""
    copied = elements.copy()
    copied[where] = values
    return copied


def copy_row(tensor: Tensor, threshold: int, source: Any, destination: Any) -> Tensor:
    """Copy row `source` over row `destination` of a tensor; return a tensor of `threshold` rows or fewer unchanged."""
    if tensor.shape[0] <= threshold:
        return tensor
    rows = tensor.elements.reshape(tensor.shape)
    return replace(tensor, elements=set_elements(rows, destination, rows[source]).reshape(-1))


def read_by_columns(tensor: Tensor) -> Tensor:
    """Return a tensor whose elements were read in column-major order."""
    return replace(tensor, elements=tensor.elements.reshape(tensor.shape, order="F").reshape(-1))


def swap_bytes(elements: Elements) -> Elements:
    """Return numbers with the byte order of each reversed."""
    return elements.view(f"u{elements.itemsize}").byteswap().view(elements.dtype)


def round_to_single(elements: Elements) -> Elements:
    """Return FP64 elements, rounded to FP32 precision."""
    with np.errstate(all="ignore"):
        return elements.astype("<f4").astype("<f8")


def flush_subnormals(elements: Elements) -> Elements:
    """Return floats with zeros of the same sign in place of subnormal numbers."""
    is_subnormal = np.abs(elements) < np.finfo(elements.dtype).tiny
    return np.where(is_subnormal, np.copysign(elements.dtype.type(0), elements), elements)
