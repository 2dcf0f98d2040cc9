"""Tensors that Hypothesis generated once and the suite stores, so that every run of a version sends the same tensors.

`generated_tensors.json` maps an encoding of requests (`Sending`) and a role to tensors. Each entry is a shape, and the
binary data in hexadecimal digits. For BYTES, each element has its own digits in a list.
`tests/support/generated_tensors.py` writes the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal

from conformance.roles.roles import Role, TensorSpec, map_identity_roles
from conformance.spec.data_files import PACKAGE_FOLDER
from conformance.wire.datatypes import DATATYPES
from conformance.wire.tensor import Tensor, decode

# How a tensor is sent: as a binary input ("read" by the server), as a binary output ("written" by the server), as both,
# as a raw request, and over gRPC in typed or in raw contents.
Sending = Literal["read", "written", "both", "raw", "typed-contents", "raw-contents"]

FILE = PACKAGE_FOLDER / "roles" / "generated_tensors.json"
TENSORS_PER_ROW = 2

_IDENTITIES = tuple(map_identity_roles().values())
_JSON_CAPABLE = tuple(role for name, role in map_identity_roles().items() if DATATYPES[name].has_json_form)
_CASTS = ("cast_fp16_fp32", "cast_fp32_fp16", "cast_bf16_fp32", "cast_fp32_bf16")
SHAPED_ROLES = ("rank0", "rank2", "rank3", "rank4", "rank2_bytes", "batching")
ROLES: Mapping[Sending, Sequence[str]] = {
    "read": (*_JSON_CAPABLE, "cast_fp16_fp32", "cast_bf16_fp32", "string_length", *SHAPED_ROLES, "weighted_sum"),
    "written": (*_JSON_CAPABLE, "cast_fp32_fp16", "cast_fp32_bf16", *SHAPED_ROLES),
    "both": (*_IDENTITIES, *_CASTS, "string_length", *SHAPED_ROLES),
    "raw": (
        *[role for role in _IDENTITIES if role != "identity_bytes"],
        *("cast_fp16_fp32", "cast_bf16_fp32", "raw_fixed", "raw_variable", "raw_middle", "raw_bytes_one"),
        *("batching", "raw_batching", "raw_batching_variable"),
    ),
    "typed-contents": (*_JSON_CAPABLE, "string_length", *SHAPED_ROLES, "weighted_sum"),
    "raw-contents": (*_IDENTITIES, *_CASTS, "string_length", *SHAPED_ROLES, "weighted_sum"),
}
# Ways of sending for which a tensor needs a JSON form.
THROUGH_JSON: frozenset[Sending] = frozenset({"read", "written"})


def get_shape_pattern(role: Role, sending: Sending) -> tuple[int, ...]:
    """Return the shape of a role's first input, with -1 for variable dimensions; the batch is 1 in a raw request."""
    shape = role.inputs[0].shape
    return (1 if sending == "raw" else -1, *shape) if role.batching else shape


def load_tensors(role: Role, sending: Sending) -> tuple[Tensor, ...]:
    """Return the stored tensors for the first input of a role.

    Raises:
        KeyError: the file has no tensors for this role and this encoding.
    """
    return tuple(_parse_tensor(role.inputs[0], *entry) for entry in _load_file()[sending][role.name])


@cache
def _load_file() -> Mapping[str, Mapping[str, Sequence[Any]]]:
    found: Mapping[str, Mapping[str, Sequence[Any]]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def _parse_tensor(spec: TensorSpec, shape: Sequence[int], elements: str | Sequence[str]) -> Tensor:
    if not isinstance(elements, str):
        return Tensor.from_values(spec.name, spec.datatype, list(map(bytes.fromhex, elements)), shape)
    return Tensor(spec.name, spec.datatype, tuple(shape), decode(spec.datatype, shape, bytes.fromhex(elements)))
