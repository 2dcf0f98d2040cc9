"""`binary_data_size` of outputs, written wrongly, and outputs that have both forms or none."""

from __future__ import annotations

import itertools
import math
from typing import Any

from reference_server.faults import fault
from reference_server.members import Object
from reference_server.models import Model
from reference_server.request import RequestedOutput
from reference_server.tensors import Tensor

Part = tuple[dict[str, Any], bytes | memoryview | None]

# --- the size of an output -----------------------------------------------------------------------------------------


def set_size(part: Part, size: object) -> Part:
    """Return an output that states another size, if it is binary."""
    entry, data = part
    return (entry if data is None else entry | {"parameters": {"binary_data_size": size}}), data


@fault("response.output_part", breaks="BIN-SIZE-O")
def size_counts_elements(original: Any, model: Model, wish: RequestedOutput, tensor: Tensor) -> Part:
    """The size of a binary output is its number of elements."""
    part: Part = original(model, wish, tensor)
    return set_size(part, math.prod(part[0]["shape"]))


@fault("response.output_part", breaks="BIN-SIZE-O")
def size_of_strings_without_prefixes(original: Any, model: Model, wish: RequestedOutput, tensor: Tensor) -> Part:
    """The size of a BYTES output does not count the length prefixes."""
    part: Part = original(model, wish, tensor)
    entry, data = part
    strings = entry["datatype"] == "BYTES" and data is not None
    return set_size(part, len(data or b"") - 4 * math.prod(entry["shape"])) if strings else part


@fault("response.output_part", breaks="OIP-INTEGERS")
def size_written_with_a_point(original: Any, model: Model, wish: RequestedOutput, tensor: Tensor) -> Part:
    """The size of a binary output is written as a floating point number."""
    part: Part = original(model, wish, tensor)
    return set_size(part, float(len(part[1] or b"")))


@fault("response.output_part", breaks="BIN-SIZE-O")
def size_rounded_up_to_eight(original: Any, model: Model, wish: RequestedOutput, tensor: Tensor) -> Part:
    """The size of a binary output is that of the memory it takes, in multiples of eight."""
    part: Part = original(model, wish, tensor)
    return set_size(part, -(-len(part[1] or b"") // 8) * 8)


@fault("response.output_part", breaks="BIN-SIZE-O")
def half_floats_sized_as_floats(original: Any, model: Model, wish: RequestedOutput, tensor: Tensor) -> Part:
    """The size of an FP16 output is that of FP32, as in the examples of one document."""
    part: Part = original(model, wish, tensor)
    return set_size(part, 2 * len(part[1] or b"")) if part[0]["datatype"] == "FP16" else part


@fault(
    "response.output_part",
    breaks=("BIN-SIZE-O", "OIP-ANSWER"),
)
def size_of_nothing_left_out(original: Any, model: Model, wish: RequestedOutput, tensor: Tensor) -> Part:
    """A binary output of no bytes states no size."""
    entry, data = original(model, wish, tensor)
    return ({name: value for name, value in entry.items() if name != "parameters"} if data == b"" else entry), data


# --- one form, not both and not none -------------------------------------------------------------------------------


@fault("response.output_part", breaks="BIN-SIZE-WITHOUT-DATA")
def binary_strings_repeated_as_data(original: Any, model: Model, wish: RequestedOutput, tensor: Tensor) -> Part:
    """A binary BYTES output has its elements as data too."""
    entry, data = original(model, wish, tensor)
    if data is not None and tensor.datatype == "BYTES" and wish.classes is None:
        entry = entry | {"data": [item.decode("utf-8", "replace") for item in tensor.elements]}
    return entry, data


@fault("response.output_part", breaks=("BIN-SAME-AS-JSON-O", "BIN-SIZE-WITHOUT-DATA"))
def binary_outputs_have_data_in_reverse(original: Any, model: Model, wish: RequestedOutput, tensor: Tensor) -> Part:
    """A binary output of integers has its elements as data too, in reverse."""
    entry, data = original(model, wish, tensor)
    if data is not None and "INT" in tensor.datatype:
        entry = entry | {"data": tensor.elements[::-1].tolist()}
    return entry, data


@fault("response.output_part", breaks=("BIN-DATA-WITHOUT-SIZE", "BIN-ALL-UNSET", "BIN-FALSE-OVERRIDES"))
def json_output_of_size_zero(original: Any, model: Model, wish: RequestedOutput, tensor: Tensor) -> Part:
    """A JSON output has a size of 0."""
    entry, data = original(model, wish, tensor)
    return entry | ({"parameters": {"binary_data_size": 0}} if data is None else {}), data


@fault("response.encode", breaks=("BIN-DATA-WITHOUT-SIZE", "OIP-ANSWER"))
def json_output_keeps_the_size_of_the_one_before(original: Any, answer: Object) -> Any:
    """A JSON output behind a binary one has the parameters of that one, which were not cleared."""
    for before, entry in itertools.pairwise(answer.get("outputs", [])):
        if "parameters" in before:
            entry.setdefault("parameters", before["parameters"])
    return original(answer)


@fault("response.output_part", breaks=("BIN-DATA-WITHOUT-SIZE", "OIP-ANSWER"))
def empty_data_left_out(original: Any, model: Model, wish: RequestedOutput, tensor: Tensor) -> Part:
    """A JSON output without elements has no `data`."""
    entry, data = original(model, wish, tensor)
    return {name: value for name, value in entry.items() if value != [] or name == "shape"}, data
