"""The declared tensors of a model: all that the functions that compute its outputs know of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class TensorSpec:
    """A declared input or output; `shape` is without the batch dimension."""

    name: str
    datatype: str
    shape: tuple[int, ...]


class Signature(Protocol):
    """What a model declares; `table` are the numbers that a model of compute `table` looks up."""

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """The inputs in declared order."""

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """The outputs in declared order."""

    @property
    def table(self) -> tuple[float, ...]:
        """The numbers of a table."""
