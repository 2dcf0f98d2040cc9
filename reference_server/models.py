"""The models this server serves: one for each role of `roles.toml`, named after it, in version "1".

The file is data that the conformance suite shares with us, found beside the package `conformance` without importing
it. Its header comment says what each member means.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from reference_server import compute
from reference_server.errors import InferenceError
from reference_server.inference_counts import Statistics
from reference_server.signature import TensorSpec
from reference_server.tensors import Tensor

VERSION = "1"
VARIABLE = -1  # in a declared shape: a dimension of any size
MAX_BATCH = 8
MAX_ELEMENTS = 2**40  # of a tensor; keeps sizes in bytes far below 64 bits


@dataclass(frozen=True)
class Model:
    """A model: its declared tensors, the function that computes all outputs from all inputs, and what it has done."""

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    compute: str
    batching: bool
    labels: Mapping[str, list[str]]
    table: tuple[float, ...]
    statistics: Statistics = field(default_factory=Statistics, compare=False, kw_only=True)

    def declared_shape(self, spec: TensorSpec) -> tuple[int, ...]:
        """Return the shape as requests have it: a batching model has the batch dimension in front."""
        return (VARIABLE, *spec.shape) if self.batching else spec.shape

    def check_shape(self, spec: TensorSpec, shape: tuple[int, ...]) -> None:
        """Refuse a shape that the declared one does not cover."""
        declared = self.declared_shape(spec)
        fits = len(shape) == len(declared) and all(
            want in (VARIABLE, have) for want, have in zip(declared, shape, strict=True)
        )
        if not fits:
            raise InferenceError(f"shape is {list(shape)}, but the model takes {list(declared)}")
        if self.batching and not 1 <= shape[0] <= MAX_BATCH:
            raise InferenceError(f"shape is {list(shape)}, but the model takes a batch of 1 to {MAX_BATCH}")

    def run(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return every output by name, in declared order."""
        with np.errstate(all="ignore"):  # overflow and NaN are results here, not accidents
            tensors = compute.FUNCTIONS[self.compute](self, inputs)
        return {spec.name: tensor for spec, tensor in zip(self.outputs, tensors, strict=True)}


def load() -> dict[str, Model]:
    """Return the models by name."""
    return {name: make_model(name, role) for name, role in tomllib.loads(find_roles_file().read_text("utf-8")).items()}


def find_roles_file() -> Path:
    """Return where `roles.toml` is."""
    spec = find_spec("conformance")  # of a top-level package: looked up, not imported
    if spec is None or spec.origin is None:
        raise FileNotFoundError("roles.toml is missing: reinstall oip-conformance")
    return Path(spec.origin).parent / "roles" / "roles.toml"


def make_model(name: str, role: Mapping[str, Any]) -> Model:
    """Build a model from its entry in `roles.toml`."""
    return Model(
        name=name,
        inputs=tuple(map(make_tensor_spec, role["inputs"])),
        outputs=tuple(map(make_tensor_spec, role["outputs"])),
        compute=role["compute"],
        batching=role.get("batching", False),
        labels=role.get("labels", {}),
        table=tuple(role.get("table", ())),
    )


def make_tensor_spec(entry: Mapping[str, Any]) -> TensorSpec:
    """Build a declared tensor from its entry in `roles.toml`."""
    return TensorSpec(entry["name"], entry["datatype"], tuple(entry["shape"]))
