"""BYTES elements that the server cuts, counts or writes wrongly, or refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.models import Model
from reference_server.tensors import Tensor, make_objects

RUN_STEP = "models.Model.run"
Tensors = Mapping[str, Tensor]
LONG_BYTES = 1_000_000


def _change_strings(tensors: Tensors, change: Callable[[list[bytes]], list[bytes]]) -> dict[str, Tensor]:
    """Return tensors; `change` replaces the elements of those that are BYTES."""
    return {
        name: replace(tensor, elements=make_objects(change(list(tensor.elements))))
        if tensor.datatype == "BYTES"
        else tensor
        for name, tensor in tensors.items()
    }


@fault(RUN_STEP, breaks=("BIN-BYTES-I", "BIN-BYTES-O", "OIP-VALUE"))
def strings_lose_the_nuls_at_their_end(original: Any, model: Model, inputs: Tensors) -> Tensors:
    """The server strips NUL bytes from the end of BYTES inputs, as numpy's fixed-width arrays do."""
    return original(model, _change_strings(inputs, lambda items: [item.rstrip(b"\0") for item in items]))


@fault(RUN_STEP, breaks="BIN-BYTES-O")
def strings_of_a_million_bytes_cut_to_a_tenth(original: Any, model: Model, inputs: Tensors) -> Tensors:
    """The server keeps six digits of the longest BYTES length, and cuts elements of a million bytes to a tenth."""

    def change(items: list[bytes]) -> list[bytes]:
        width = max(map(len, items), default=0)
        return [item[: width // 10] for item in items] if width >= LONG_BYTES else items

    return _change_strings(original(model, inputs), change)


@fault(RUN_STEP, broad=True)
def string_outputs_without_elements_fail(original: Any, model: Model, inputs: Tensors) -> Tensors:
    """The server fails with an internal error if a BYTES output has no elements."""
    outputs: Tensors = original(model, inputs)
    if any(tensor.datatype == "BYTES" and not tensor.elements.size for tensor in outputs.values()):
        raise TypeError("a bytes-like object is required, not 'tuple'")
    return outputs


# --- JSON data --------------------------------------------------------------------------------------------------------


@fault("tensors.decode_json", breaks=("OIP-DATA", "OIP-ANSWER"))
def nested_strings_counted_by_their_last_row(original: Any, datatype: str, shape: tuple[int, ...], data: Any) -> Tensor:
    """The server allocates space for only the last row of nested BYTES data, and refuses several rows."""
    if datatype == "BYTES" and isinstance(data, list) and len(data) > 1 and isinstance(data[0], list):
        raise InferenceError("the shape does not match the true shape of the data")
    return original(datatype, shape, data)


@fault("tensors.decode_json", broad=True)
def strings_in_json_have_lengths_of_the_machine(
    original: Any, datatype: str, shape: tuple[int, ...], data: Any
) -> Tensor:
    """The server writes lengths of BYTES from JSON as big-endian, reads them as little-endian, and fails."""
    tensor: Tensor = original(datatype, shape, data)
    if datatype == "BYTES" and any(tensor.elements):
        raise RuntimeError("unpack_from requires a larger buffer")
    return tensor


@fault("tensors.decode_text", broad=True)
def strings_in_json_begin_with_their_lengths(original: Any, item: bytes) -> str:
    """The server writes BYTES into JSON with the binary length prefix of each element."""
    text: str = original(item)
    return len(item).to_bytes(4, "little").decode("latin-1") + text
