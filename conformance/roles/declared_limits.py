"""The limits of a server that the table `[limits]` of its target file declares.

No document asks a server for a model of each datatype, for variable shapes, for batches or for class labels. So what
needs more than a declared limit does not apply, and the limits stand beside the verdict. A table of limits is plain
data, the same in the target file, the discovery result, the report and the manifest of a certification.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.roles.roles import Role
from conformance.spec.fit import DeclaredTensor
from conformance.wire.datatypes import DATATYPES, OIP_DATATYPES

# The names and values of a table `[limits]`.
Limits = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Limit:
    """One kind of limit.

    Attributes:
        meaning: the meaning of a value, for a comment in the file.
        describe: returns the words beside the verdict for a value; empty if the value limits nothing.
        find_excess: returns what exceeds a value; arguments: the value, tensors without their batch dimension, and the
            role, None for a model without one. Empty if nothing does.
        propose: returns the value that deployed models with these tensors suggest; None if there is none.
    """

    meaning: str
    describe: Callable[[Any], str]
    find_excess: Callable[[Any, Sequence[DeclaredTensor], Role | None], str]
    propose: Callable[[Sequence[DeclaredTensor]], Any]


def _describe_datatypes(supported: Sequence[str]) -> str:
    present = [name for name in OIP_DATATYPES if name in supported]
    absent = [name for name in OIP_DATATYPES if name not in supported]
    if len(absent) > len(present):
        return f"with {_join(present)} alone"
    return f"without {_join(absent)}" if absent else ""


def _join(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _find_other_datatypes(supported: Sequence[str], tensors: Sequence[DeclaredTensor], _: Role | None) -> str:
    others = sorted({tensor.datatype for tensor in tensors} & DATATYPES.keys() - {*supported})
    return f"{_join(others)} tensors" if others else ""


def _propose_datatypes(tensors: Sequence[DeclaredTensor]) -> list[str] | None:
    found = {tensor.datatype for tensor in tensors}
    return [name for name in DATATYPES if name in found] if not found.issuperset(OIP_DATATYPES) else None


def _is_variable(tensor: DeclaredTensor) -> bool:
    return any(size < 0 for size in tensor.shape)


LIMITS: Mapping[str, Limit] = {
    "datatypes": Limit("and no others", _describe_datatypes, _find_other_datatypes, _propose_datatypes),
    "fixed_shapes": Limit(
        "no model has a variable dimension, except that of a batch",
        lambda fixed: "with fixed shapes alone" if fixed else "",
        lambda _, tensors, __: "a variable shape" if any(map(_is_variable, tensors)) else "",
        lambda tensors: None if any(map(_is_variable, tensors)) else True,
    ),
    "max_batch": Limit(
        "items in the largest batch; 0: no model takes batches",
        lambda most: f"with batches of at most {most}" if most else "without batches",
        lambda most, _, role: "batches" if role and role.batching and not most else "",
        lambda _: None,  # metadata do not tell
    ),
    "labels": Limit(
        "false: no model has labels of classes",
        lambda has_labels: "" if has_labels else "without labels",
        lambda has_labels, _, role: "labels" if role and role.labels and not has_labels else "",
        lambda _: None,  # metadata do not tell
    ),
}


def drop_empty(limits: Limits) -> dict[str, Any]:
    """Return the limits without those that limit nothing, such as a list of every datatype."""
    return {name: value for name, value in limits.items() if LIMITS[name].describe(value)}


def describe_limits(limits: Limits | None) -> str:
    """Return the words beside a verdict, such as "without BYTES, with fixed shapes alone"; empty without limits."""
    return ", ".join(limit.describe(limits[name]) for name, limit in LIMITS.items() if limits and name in limits)


def find_excess(limits: Limits, tensors: Sequence[DeclaredTensor], role: Role | None = None) -> tuple[str, str] | None:
    """Return the first limit that a model exceeds, and by what; None if it exceeds none. See `Limit.find_excess`."""
    found = ((name, LIMITS[name].find_excess(value, tensors, role)) for name, value in limits.items())
    return next(((name, excess) for name, excess in found if excess), None)


def find_excess_of_role(limits: Limits, role: Role) -> tuple[str, str] | None:
    """Return the first limit that the models of a role exceed, and by what; None if they exceed none."""
    return find_excess(limits, (*role.inputs, *role.outputs), role)


def propose_limits(tensors: Iterable[DeclaredTensor]) -> dict[str, Any]:
    """Return the limits that deployed models suggest, by their tensors without the batch dimension."""
    found = list(tensors)
    proposed = {name: limit.propose(found) for name, limit in LIMITS.items()}
    return {name: value for name, value in proposed.items() if value is not None}
