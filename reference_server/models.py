"""The models of this server and their statistics: one for each role of `roles.toml`.

The file is data shared with the conformance suite; it is located in the package `conformance` without importing it.
Its header comment explains each member. Each request passes the queue of the Statistics Extension without a wait. This
server has no cache, so the counter for the cache stays 0.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numpy as np

from reference_server import compute
from reference_server.errors import InferenceError, format_value
from reference_server.tensors import Tensor, TensorSpec

PACKS: Final = "oip_conformance.packs"  # the group of the entry points of packs
COMPUTE_STEPS: Final = (
    "compute_input",
    "compute_infer",
    "compute_output",
)  # the request is read, the model runs, the answer is written
OTHER_STEPS: Final = ("queue", "cache_hit", "cache_miss")


@dataclass
class Duration:
    """The count of an operation, and its total time in nanoseconds."""

    count: int = 0
    ns: int = 0

    def add(self, ns: int) -> None:
        """Add one occurrence of `ns` nanoseconds."""
        self.count += 1
        self.ns += ns

    def to_dict(self) -> dict[str, int]:
        """Return the count and the time in the format of the extension."""
        return {"count": self.count, "ns": self.ns}


def make_durations(*names: str) -> dict[str, Duration]:
    """Return a duration for each name."""
    return {name: Duration() for name in names}


@dataclass
class Statistics:
    """The statistics of one model, over both transports; updates are thread-safe.

    Attributes:
        inferences: number of inferences of successful requests; a batch of n counts n times.
        last: time of the last request, in milliseconds since the epoch; 0 before the first.
        totals: durations over all requests, by step.
        batches: durations by batch size; a model without batching has batch size 1.
    """

    inferences: int = 0
    last: int = 0
    totals: dict[str, Duration] = field(
        default_factory=lambda: make_durations("success", "fail", *OTHER_STEPS, *COMPUTE_STEPS)
    )
    batches: dict[int, dict[str, Duration]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock, repr=False)

    def count_failure(self, ns: int) -> None:
        """Count a refused request."""
        with self.lock:
            self.last = time.time_ns() // 1_000_000
            self.totals["fail"].add(ns)

    def count_success(self, batch: int, steps: tuple[int, int, int]) -> None:
        """Count a successful request; `steps` are the nanoseconds of each of `COMPUTE_STEPS`."""
        with self.lock:
            self.last = time.time_ns() // 1_000_000
            self.inferences += batch
            self.totals["success"].add(sum(steps))
            self.totals["queue"].add(0)
            if batch not in self.batches:
                self.batches[batch] = make_durations(*COMPUTE_STEPS)
            of_batch = self.batches[batch]
            for name, ns in zip(COMPUTE_STEPS, steps, strict=True):
                self.totals[name].add(ns)
                of_batch[name].add(ns)

    def to_dict(self) -> dict[str, Any]:
        """Return the statistics in the format of the extension, without the model's name and version."""
        with self.lock:
            return {
                "last_inference": self.last,
                "inference_count": self.inferences,
                "execution_count": self.totals["success"].count,  # requests are never batched together
                "inference_stats": {name: total.to_dict() for name, total in self.totals.items()},
                "batch_stats": [
                    {"batch_size": size, **{name: total.to_dict() for name, total in of_batch.items()}}
                    for size, of_batch in sorted(self.batches.items())
                ],
                "response_stats": {},  # of models that send several responses
                "memory_usage": [],  # of models that are loaded into devices
            }


VERSION = "1"  # of a model whose role lists no versions
VARIABLE = -1  # in a declared shape: a dimension of any size
MAX_BATCH = 64
MAX_ELEMENTS = 2**40  # of a tensor; keeps sizes in bytes far below 64 bits


@dataclass(frozen=True)
class Model:
    """A version of a model: its declared tensors, the function that computes all outputs, and its statistics.

    `versions` has all versions of the model by name, this one among them; the default is the last one.
    """

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    compute: str
    batching: bool
    labels: Mapping[str, list[str]]
    table: tuple[float, ...]
    version: str = field(default=VERSION, kw_only=True)
    versions: dict[str, Model] = field(default_factory=dict, compare=False, kw_only=True, repr=False)
    statistics: Statistics = field(default_factory=Statistics, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        """Register this version."""
        self.versions.setdefault(self.version, self)

    def get_declared_shape(self, spec: TensorSpec) -> tuple[int, ...]:
        """Return the shape that requests use: with a leading batch dimension for a batching model."""
        return (VARIABLE, *spec.shape) if self.batching else spec.shape

    def check_shape(self, spec: TensorSpec, shape: tuple[int, ...]) -> None:
        """Refuse a shape that does not match the declared one."""
        declared = self.get_declared_shape(spec)
        fits = len(shape) == len(declared) and all(
            want in (VARIABLE, have) for want, have in zip(declared, shape, strict=True)
        )
        if not fits:
            raise InferenceError(f"shape is {list(shape)}, but the model takes {list(declared)}")
        if self.batching and not 1 <= shape[0] <= MAX_BATCH:
            raise InferenceError(f"shape is {list(shape)}, but the model takes a batch of 1 to {MAX_BATCH}")

    def get_version(self, version: str) -> Model:
        """Return a version of this model; refuse a version that it does not have."""
        if version not in self.versions:
            known = " and ".join(map(format_value, self.versions))
            raise InferenceError(
                f"model {format_value(self.name)} has no version {format_value(version)}, only {known}", status=404
            )
        return self.versions[version]

    def run(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return every output by name, in declared order."""
        with np.errstate(all="ignore"):  # overflow and NaN are valid results
            tensors = compute.FUNCTIONS[self.compute](self, inputs)
        return {spec.name: tensor for spec, tensor in zip(self.outputs, tensors, strict=True)}


def load(*packs: str) -> dict[str, Model]:
    """Return the models of all roles by name: those of the suite, and of installed packs.

    Raises ValueError: a pack is not installed, or its roles cannot be served.
    """
    found = read_models(find_roles_file())
    for pack in packs:
        file = find_pack_file(pack)
        try:
            of_pack = read_models(file) if file.exists() else {}
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise ValueError(f"pack {pack}: {file}: {type(error).__name__}: {error}") from None
        if other := [name for name in of_pack if name in found or not name.startswith(f"{pack}_")]:
            raise ValueError(f"pack {pack}: {file}: the role {other[0]} is another one's")
        found |= of_pack
    return found


def read_models(file: Path) -> dict[str, Model]:
    """Return the models of a file of roles by name."""
    return {name: make_model(name, role) for name, role in tomllib.loads(file.read_text("utf-8")).items()}


def find_roles_file() -> Path:
    """Return the path of `roles.toml`."""
    spec = find_spec("conformance")  # does not import a top-level package
    if spec is None or spec.origin is None:
        raise FileNotFoundError("roles.toml is missing: reinstall oip-conformance")
    return Path(spec.origin).parent / "roles" / "roles.toml"


def find_pack_file(pack: str) -> Path:
    """Return the path of the roles of an installed pack, which need not exist; nothing of the pack is imported.

    Raises ValueError: no such pack is installed.
    """
    for entry in entry_points(group=PACKS, name=pack):
        with suppress(ImportError):  # of the packages around it
            if (spec := find_spec(entry.value)) is not None and spec.origin is not None:
                return Path(spec.origin).parent / "roles.toml"
    raise ValueError(f"no pack {format_value(pack)} is installed")


def make_model(name: str, role: Mapping[str, Any]) -> Model:
    """Build a model from its entry in `roles.toml`; return its default version."""
    versions: dict[str, Model] = {}
    for version in role.get("versions", [VERSION]):
        default = Model(
            name=name,
            inputs=tuple(map(make_tensor_spec, role["inputs"])),
            outputs=tuple(map(make_tensor_spec, role["outputs"])),
            compute=role["compute"],
            batching=role.get("batching", False),
            labels=role.get("labels", {}),
            table=tuple(role.get("table", ())),
            version=version,
            versions=versions,
        )
    return default


def make_tensor_spec(entry: Mapping[str, Any]) -> TensorSpec:
    """Build a declared tensor from its entry in `roles.toml`."""
    return TensorSpec(entry["name"], entry["datatype"], tuple(entry["shape"]))
