"""Inputs for a model of which nothing is known but what its metadata say. Sans-I/O.

Metadata do not tell which batch sizes, lengths and elements a model takes, and servers differ in whether they show the
batch dimension. So there is a fixed list of guesses, the most telling first: which one a model takes is for the target
to say. Elements stay small, because an index beyond a table has ended models: integers are 0 and 1 at first. Floating
point elements are fractions that every datatype and JSON hold exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from conformance.roles.roles import TensorSpec
from conformance.wire.datatypes import FLOATS
from conformance.wire.tensor import Tensor

Shape = tuple[int, ...]


class GivenTensor(NamedTuple):
    """An input that a user gives: the elements are flat; the datatype is empty where the metadata say it."""

    shape: Sequence[int]
    data: Sequence[Any]
    datatype: str = ""


Given = Mapping[str, GivenTensor]  # tensor -> what is sent

ELEMENTS_LIMIT = 4_000_000  # of all guessed tensors of a request together
PERIOD = 1001  # elements after which a long tensor begins again; no shape is made of multiples of it


class GivenInputError(ValueError):
    """What a user gives is no tensor of the model; the message is one line that begins with the input's place."""


@dataclass(frozen=True, slots=True)
class _Sizes:
    """How a shape is filled in: a leading variable dimension, all others, and what is put in front.

    The only dimension of a tensor counts with the others. `shift` leaves the leading dimension out where it is
    variable: a batch that requests do not have.
    """

    leading: int
    others: int
    front: Shape = ()
    shift: bool = False

    def fill(self, shape: Shape) -> Shape:
        if self.shift and shape[:1] == (-1,):
            shape = shape[1:]
        leading = self.leading if len(shape) > 1 else self.others
        sizes = (leading, *[self.others] * len(shape))
        return (*self.front, *[sizes[k] if size < 0 else size for k, size in enumerate(shape)])


# Batches of two show more than batches of one; images and the like need room.
_SIZES = (
    _Sizes(2, 3),
    _Sizes(1, 3),
    _Sizes(1, 1),
    _Sizes(3, 3, (2,)),
    _Sizes(3, 3, (1,)),
    _Sizes(1, 1, (1,)),
    _Sizes(1, 16),
    _Sizes(1, 64),
    _Sizes(1, 224),
    _Sizes(64, 64, (1,)),
    _Sizes(224, 224, (1,)),
    _Sizes(3, 3, shift=True),
)

_BITS = ("100110101111", "011011000101", "110100101000")


def _bit(k: int, n: int) -> int:
    return int(_BITS[n % 3][(k + k // 12) % 12])


def _eighths(k: int, n: int) -> float:
    return ((5 * k + 3 * n) % 8 + 1) / 8


def _count(k: int, n: int) -> int:
    return (k + n) % 3 + 1


@dataclass(frozen=True, slots=True)
class _Values:
    """The elements of a guess, by element k of input n: integers and booleans, floating point, strings."""

    integer: Callable[[int, int], int]
    fraction: Callable[[int, int], float]
    text: Callable[[int, int], str]

    def element(self, datatype: str, k: int, n: int) -> Any:
        if datatype == "BYTES":
            return self.text(k, n)
        if datatype in (*FLOATS, "BF16"):
            return self.fraction(k, n)
        return bool(self.integer(k, n)) if datatype == "BOOL" else self.integer(k, n)


def _same(integer: int, text: str) -> _Values:
    return _Values(lambda _k, _n: integer, lambda _k, _n: float(integer), lambda _k, _n: text)


_VALUES = (
    _Values(_bit, _eighths, lambda k, n: f' é "{k}\\{n}"' + "x" * (k % 4)),
    _Values(_count, lambda k, n: float(_count(k, n)), lambda k, n: str(_count(k, n) * 10 ** (k % 3))),
    _same(1, "{}"),
    _same(0, "0"),
)


def guesses(specs: Sequence[TensorSpec], given: Given) -> Iterator[tuple[Tensor, ...]]:
    """Yield inputs for a model, all of them each time, until one is taken: every size, then other elements.

    Args:
        specs: the inputs as the metadata have them; -1 is a variable dimension.
        given: inputs that a user knows better; they are part of every guess. The first guess is these alone, for a
            model of which the other inputs are optional.

    Raises:
        GivenInputError: what is given is no tensor of the model.
    """
    fixed = _given_tensors(specs, given)
    if fixed:
        yield tuple(fixed[spec.name] for spec in specs if spec.name in fixed)
    seen: set[tuple[object, ...]] = set()
    for place, values in enumerate(_VALUES if len(fixed) < len(specs) else ()):
        for sizes in _SIZES:
            shapes = tuple(sizes.fill(spec.shape) for spec in specs if spec.name not in fixed)
            if (place, shapes) in seen or sum(map(prod, shapes)) > ELEMENTS_LIMIT:
                continue
            seen.add((place, shapes))
            yield tuple(
                fixed[spec.name] if spec.name in fixed else _tensor(spec, sizes.fill(spec.shape), values, n)
                for n, spec in enumerate(specs)
            )


def _tensor(spec: TensorSpec, shape: Shape, values: _Values, n: int) -> Tensor:
    count = prod(shape)
    elements = [values.element(spec.datatype, k, n) for k in range(min(count, PERIOD))]
    array = np.resize(Tensor.of(spec.name, spec.datatype, elements).array, count)
    return Tensor.of(spec.name, spec.datatype, array, shape)


def _given_tensors(specs: Sequence[TensorSpec], given: Given) -> dict[str, Tensor]:
    datatypes = {spec.name: spec.datatype for spec in specs}
    return {name: _given_tensor(name, datatypes, entry) for name, entry in given.items()}


def _given_tensor(name: str, datatypes: Mapping[str, str], entry: GivenTensor) -> Tensor:
    shape, data, datatype = entry
    if name not in datatypes:
        raise GivenInputError(f"inputs.{name}: the model has no such input, but {', '.join(datatypes)}")
    if datatype not in ("", datatypes[name]):
        raise GivenInputError(f"inputs.{name}: datatype {datatype}, and {datatypes[name]} in the metadata")
    if len(data) != prod(shape):
        raise GivenInputError(f"inputs.{name}: {len(data)} elements of data for shape {list(shape)}")
    try:
        return Tensor.of(name, datatypes[name], list(data), tuple(shape))
    except (ValueError, TypeError, OverflowError) as error:
        raise GivenInputError(f"inputs.{name}: data is no {datatypes[name]} ({error})") from error
