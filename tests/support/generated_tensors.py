"""Draws the tensors of `conformance/roles/generated_tensors.json` by Hypothesis, under fixed seeds.

    python -m tests.support.generated_tensors

Other versions of Hypothesis draw other tensors. Draw again only if a role, a strategy or a row is new.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache, partial
from typing import Any
from zlib import crc32

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from conformance.roles import generated_tensors, roles, tensor_strategies
from conformance.roles.corner_values import (
    BYTE_STRINGS,
    INTEGER_CORNERS,
    TEXTS,
    get_bit_groups,
    make_corner_tensor,
)
from conformance.roles.generated_tensors import ROLES, SHAPED_ROLES, TENSORS_PER_ROW, THROUGH_JSON, Sending
from conformance.roles.roles import Role
from conformance.wire.tensor import Tensor

EXAMPLES = 100  # drawn for each row
MAX_ELEMENTS = 24
MAX_BYTES = 320
MAX_BATCH = 8
MAX_EXACT = 2**24  # FP32 has every integer up to it
FIRST_GROUPS = frozenset({"zeros", "infinities", "nan", "subnormal", "limits"})  # of corner values, if all are too many

DRAWING = settings(
    max_examples=EXAMPLES,
    phases=[Phase.generate],
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def draw(role: Role, sending: Sending) -> list[Tensor]:
    """Return the tensors of a row: those of the drawn ones with most corner values."""
    return _choose(_draw_all(role, sending))


def _draw_all(role: Role, sending: Sending) -> list[Tensor]:
    drawn: list[Tensor] = []

    @seed(crc32(f"{sending} {role.name}".encode()))
    @DRAWING
    @given(_tensors(role, sending))
    def collect(tensor: Tensor) -> None:
        drawn.append(_fit(role, tensor))

    collect()
    return [tensor for tensor in drawn if tensor.size <= MAX_BYTES]


def _tensors(role: Role, sending: Sending) -> SearchStrategy[Tensor]:
    """Return the strategy for a row; tensors without elements have rows of their own."""
    spec, output = role.inputs[0], role.outputs[0]
    # A 32-bit float that is cast to 16 bits is drawn as those: no document defines how a server rounds.
    is_narrowed = role.compute == "cast" and output.datatype in ("FP16", "BF16")
    shapes = tensor_strategies.shapes(generated_tensors.get_shape_pattern(role, sending), MAX_ELEMENTS)
    # The rows about dimensions compare with JSON.
    is_json = sending in THROUGH_JSON or role.name in SHAPED_ROLES
    filled = shapes.filter(lambda shape: math.prod(shape) > 0 and not (role.batching and shape[0] > MAX_BATCH))
    return filled.flatmap(
        lambda shape: tensor_strategies.tensors(
            spec.name, output.datatype if is_narrowed else spec.datatype, shape, json=is_json
        )
    )


def _fit(role: Role, tensor: Tensor) -> Tensor:
    """Return a tensor of the datatype of the role's input, which a cast to its output preserves."""
    spec = role.inputs[0]
    array = tensor.array
    if spec.datatype != tensor.datatype:
        with np.errstate(invalid="ignore"):  # a signalling NaN
            array = array.astype("<f4")
    elif role.compute == "cast" and spec.datatype == "INT32":
        array = np.where(abs(array.astype("<i8")) > MAX_EXACT, array >> 8, array)
    return Tensor.from_values(spec.name, spec.datatype, array, tensor.shape)


def _choose(drawn: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors with most groups of corner values, of different shapes if possible."""
    chosen: list[Tensor] = []
    for _ in range(TENSORS_PER_ROW):
        others = [tensor for tensor in drawn if all(tensor is not one for one in chosen)]
        chosen.append(max(others, key=partial(_rank, chosen=tuple(chosen))))
    return chosen


def _rank(tensor: Tensor, chosen: Sequence[Tensor]) -> tuple[Any, ...]:
    own, known = _elements(tensor), {element for one in chosen for element in _elements(one)}
    new_groups = _list_groups(tensor) - {name for one in chosen for name in _list_groups(one)}
    is_other_shape = tensor.shape not in {one.shape for one in chosen}
    return is_other_shape, len(own) > 1, len(new_groups & FIRST_GROUPS), len(new_groups), len(own - known)


def _elements(tensor: Tensor) -> set[bytes]:
    flat = tensor.array.reshape(-1)
    return set(flat) if tensor.datatype == "BYTES" else {element.tobytes() for element in flat}


def _list_groups(tensor: Tensor) -> set[str]:
    """Return the groups of corner values that a tensor has an element of."""
    own = _elements(tensor)
    return {name for name, corners in _corner_groups(tensor.datatype).items() if own & corners}


@cache
def _corner_groups(datatype: str) -> Mapping[str, Set[bytes]]:
    if datatype == "BYTES":
        return {name: set(elements) for name, elements in {**TEXTS, **BYTE_STRINGS}.items()}
    if datatype == "BOOL":
        return {}
    names = INTEGER_CORNERS.get(datatype) or get_bit_groups(datatype)
    groups = {name: {element.tobytes() for element in make_corner_tensor("", datatype, name).array} for name in names}
    if "zeros" in groups:
        groups["zeros"] = {element for element in groups["zeros"] if any(element)}  # -0 alone is special
    return groups


def _entry(tensor: Tensor) -> list[Any]:
    elements = (
        [element.hex() for element in tensor.array.reshape(-1)]
        if tensor.datatype == "BYTES"
        else bytes(tensor.to_bytes()).hex()
    )
    return [list(tensor.shape), elements]


def render() -> Iterator[str]:
    """Yield the lines of the file."""
    yield "{"
    for sending, names in ROLES.items():
        yield f' "{sending}": {{'
        for name in names:
            entries = map(_entry, draw(roles.load()[name], sending))
            lines = ",\n   ".join(json.dumps(entry, separators=(",", ":")) for entry in entries)
            yield f'  "{name}": [\n   {lines}\n  ]' + ("," if name != names[-1] else "")
        yield " }" + ("," if sending != list(ROLES)[-1] else "")
    yield "}"


if __name__ == "__main__":
    generated_tensors.FILE.write_text("\n".join(render()) + "\n", encoding="utf-8")
