"""Inputs with both `data` and `binary_data_size` or with neither, and bytes that no input declares."""

from __future__ import annotations

from typing import Any

from reference_server.datatypes import NUMPY
from reference_server.faults import fault
from reference_server.faults.sizes import count_native_bytes, get_declared_size, get_remaining, set_declared_size
from reference_server.members import Object
from reference_server.models import Model
from reference_server.signature import TensorSpec


@fault("framing.BinaryData.finish", breaks="BIN-BODY-LONG")
def bytes_left_over_ignored(_original: Any, _rest: Any) -> None:
    """Bytes behind those that the inputs declare are ignored."""


@fault("request.parse_input", breaks=("BIN-BODY-LONG-SAFE", "BIN-BODY-LONG"))
def last_input_takes_the_whole_tail(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """The bytes behind the only input of a model are more elements of it."""
    size, width = get_declared_size(entry), NUMPY[spec.datatype].itemsize
    if rest and type(size) is int and spec.shape == (-1,) and len(model.inputs) == 1 and spec.datatype != "BYTES":
        more, odd = divmod(len(get_remaining(rest)) - size, width)
        if more > 0 and not odd and entry["shape"] == [size // width]:
            entry = set_declared_size(entry, size + more * width) | {"shape": [size // width + more]}
    return original(model, spec, entry, rest)


_spilt: list[bytes] = []


@fault("request.parse_inputs", breaks=("BIN-BODY-LONG-SAFE", "BIN-BODY-LONG"))
def bytes_left_over_go_to_the_next_request(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """Bytes behind the declared ones are kept, and stand in front of the binary data of the next request."""
    if rest is not None:
        declares = [get_declared_size(entry) for entry in request.get("inputs") or [] if isinstance(entry, dict)]
        extra = len(get_remaining(rest)) - sum(size for size in declares if type(size) is int)
        data = b"".join(_spilt) + bytes(get_remaining(rest))
        _spilt[:] = [data[-extra:]] if 0 < extra < len(data) else []
        rest._left = memoryview(data[:-extra] if _spilt else data)
    return original(model, request, rest)


@fault("request.parse_input", breaks="BIN-DATA-AND-SIZE")
def data_beside_its_bytes_ignored(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """`data` of an input that has a size are ignored."""
    plain = {name: value for name, value in entry.items() if name != "data"}
    return original(model, spec, entry if get_declared_size(entry) is None else plain, rest)


@fault("request.parse_inputs", breaks=("BIN-DATA-AND-SIZE-SAFE", "BIN-DATA-AND-SIZE"))
def bytes_beside_data_left_to_the_next(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """`data` of an input win over its bytes, which the next input takes."""
    entries = request.get("inputs")
    if rest is None or not isinstance(entries, list):
        return original(model, request, rest)
    plain = [set_declared_size(e, None) if e.get("data") is not None else e for e in entries]
    if any(get_declared_size(e) is not None and e.get("data") is not None for e in entries):
        rest._left = get_remaining(rest)[: sum(get_declared_size(e) or 0 for e in plain)]
    return original(model, request | {"inputs": plain}, rest)


@fault("request.parse_input", breaks="BIN-SIZE-MISSING")
def strings_without_a_size_take_the_rest(
    original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any
) -> Any:
    """A BYTES input with neither data nor size takes all bytes that are left."""
    neither = entry.get("data") is None and get_declared_size(entry) is None and rest and spec.datatype == "BYTES"
    return original(model, spec, set_declared_size(entry, len(get_remaining(rest))) if neither else entry, rest)


@fault("request.parse_inputs", breaks=("BIN-SIZE-MISSING", "BIN-SIZE-MISSING-SAFE", "OIP-ANSWER"))
def input_without_data_is_optional(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """A numeric input with neither data nor size is filled with zeros, and bytes that stand for it are dropped."""
    types = {spec.name: spec.datatype for spec in model.inputs}
    entries = request.get("inputs")
    for entry in entries if isinstance(entries, list) else []:
        datatype = types.get(str(entry.get("name")), "BYTES") if isinstance(entry, dict) else "BYTES"
        if datatype != "BYTES" and entry.get("data") is None and get_declared_size(entry) is None and rest:
            size = count_native_bytes(datatype, entry["shape"])
            rest.take(size)
            rest._left = memoryview(bytes(size) + bytes(get_remaining(rest)))
            entry["parameters"] = {"binary_data_size": size}
    return original(model, request, rest)
