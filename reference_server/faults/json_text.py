"""JSON as text, and the data in it: written so that it is no JSON, or read and written in the wrong order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.tensors import Tensor

Answer = dict[str, Any]

# --- the text --------------------------------------------------------------------------------------------------------


@fault("response.encode", breaks="OIP-JSON")
def json_in_latin_1(original: Any, answer: Answer) -> bytes:
    """The JSON of answers is written in Latin-1 where that has all its letters."""
    octets: bytes = original(answer)
    try:
        return octets.decode().encode("latin-1")
    except UnicodeEncodeError:
        return octets


@fault("response.frame", breaks="OIP-JSON")
def nul_behind_the_json(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """An answer in JSON alone ends with the NUL that ends strings in C."""
    response: Response = original(head if binary else head + b"\0", binary)
    return response


@fault("tensors.text", "response.encode", breaks="OIP-JSON")
def bytes_that_are_no_text_written_into_json(_original: Any, value: Any) -> Any:
    """BYTES that are not UTF-8 are copied into JSON strings."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogateescape")


# --- data ------------------------------------------------------------------------------------------------------------


@fault("tensors.flatten", breaks=("OIP-DATA", "OIP-ANSWER"))
def nested_data_refused(original: Any, data: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """Only flat data are read."""
    if data and isinstance(data[0], list):
        raise InferenceError("data must be flat")
    items: list[Any] = original(data, shape)
    return items


@fault("tensors.decode_json", breaks=("OIP-DATA", "OIP-ANSWER"))
def flat_strings_read_by_columns(original: Any, datatype: str, shape: tuple[int, ...], data: Any) -> Tensor:
    """Flat strings of rank 2 are read column by column, into an array of columns."""
    tensor: Tensor = original(datatype, shape, data)
    if datatype != "BYTES" or len(shape) != 2 or (data and isinstance(data[0], list)):
        return tensor
    return replace(tensor, elements=tensor.elements.reshape(shape[::-1]).T.reshape(-1))


def _nested(items: list[Any], shape: Sequence[int]) -> list[Any]:
    """Return flat elements nested as a shape, row by row."""
    for extent in reversed(shape[1:]):
        items = [items[at : at + extent] for at in range(0, len(items), extent)]
    return items


@fault("tensors.encode_json", breaks="OIP-DATA")
def data_nested_one_level_too_deep(original: Any, tensor: Tensor) -> list[Any]:
    """JSON data of rank 2 and more are returned inside one more array, a batch of one."""
    items: list[Any] = original(tensor)
    return [_nested(items, tensor.shape)] if len(tensor.shape) > 1 and items else items


@fault("strict_json.parse_object", breaks="OIP-MEMBERS")
def members_that_are_not_defined_refused(original: Any, data: Any) -> Any:
    """A request with a member that no request object defines is refused."""
    found = original(data)
    if unknown := found.keys() - {"id", "parameters", "inputs", "outputs"}:
        raise InferenceError(f"unknown members {sorted(unknown)}", 422)
    return found
