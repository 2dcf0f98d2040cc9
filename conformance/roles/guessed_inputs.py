"""Guesses inputs for a model from its metadata alone. Sans-I/O.

Metadata do not define which batch sizes, lengths and elements a model accepts. Servers also differ in whether the
shapes in their metadata include the batch dimension. So there is a fixed list of guesses, the most informative first;
discovery sends them until the model accepts one. Integers stay small (at first 0 and 1), because an index beyond the
end of a table has crashed models. Floating-point elements are fractions that every datatype and JSON represent exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import cycle
from math import prod
from typing import Any, NamedTuple

import numpy as np

from conformance.roles.roles import TensorSpec
from conformance.wire.datatypes import lookup
from conformance.wire.tensor import Tensor

Shape = tuple[int, ...]


class UserTensor(NamedTuple):
    """An input that the user gives in the file for `--target-config`.

    Attributes:
        data: the elements in row-major order, or a list of such lists, one for each alternative tensor.
        datatype: the datatype; empty: the datatype in the metadata.
    """

    shape: Sequence[int]
    data: Sequence[Any]
    datatype: str = ""

    @property
    def samples(self) -> Sequence[Sequence[Any]]:
        """The elements of each alternative tensor."""
        return self.data if self.data and isinstance(self.data[0], list) else [self.data]


UserInputs = Mapping[str, UserTensor]  # tensor name -> tensor to send

MAX_GUESSED_ELEMENTS = 4_000_000  # the total of all guessed tensors of a request
PERIOD = 1001  # elements after which a long tensor repeats; no shape consists of multiples of it


class UserInputError(ValueError):
    """The user's input does not match the metadata of the model. The message is one line that begins `inputs.NAME:`."""


@dataclass(frozen=True, slots=True)
class _DimensionSizes:
    """How to replace the variable dimensions of a shape by sizes.

    Attributes:
        leading: the size of a variable first dimension, unless it is the only dimension.
        shift: whether to remove a variable first dimension, for servers whose requests have no batch dimension.
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


# Batches of two reveal more than batches of one; images and similar inputs need larger sizes.
_DIMENSION_SIZES = (
    _DimensionSizes(2, 3),
    _DimensionSizes(1, 3),
    _DimensionSizes(1, 1),
    _DimensionSizes(3, 3, (2,)),
    _DimensionSizes(3, 3, (1,)),
    _DimensionSizes(1, 1, (1,)),
    _DimensionSizes(1, 16),
    _DimensionSizes(1, 64),
    _DimensionSizes(1, 224),
    _DimensionSizes(64, 64, (1,)),
    _DimensionSizes(224, 224, (1,)),
    _DimensionSizes(3, 3, shift=True),
)

_BITS = ("100110101111", "011011000101", "110100101000")


def _compute_bit(k: int, n: int) -> int:
    return int(_BITS[n % 3][(k + k // 12) % 12])


def _compute_fraction(k: int, n: int) -> float:
    return ((5 * k + 3 * n) % 8 + 1) / 8


def _compute_small_integer(k: int, n: int) -> int:
    return (k + n) % 3 + 1


@dataclass(frozen=True, slots=True)
class _ElementFunctions:
    """Functions that compute an element of a guess from the index of the element (k) and of the input (n).

    Attributes:
        integer: computes integers and booleans.
        fraction: computes floats.
        text: computes strings.
    """

    integer: Callable[[int, int], int]
    fraction: Callable[[int, int], float]
    text: Callable[[int, int], str]

    def compute_element(self, datatype: str, k: int, n: int) -> Any:
        if datatype == "BYTES":
            return self.text(k, n)
        if lookup(datatype).is_float:
            return self.fraction(k, n)
        return bool(self.integer(k, n)) if datatype == "BOOL" else self.integer(k, n)


def _build_constant_functions(integer: int, text: str) -> _ElementFunctions:
    return _ElementFunctions(lambda _k, _n: integer, lambda _k, _n: float(integer), lambda _k, _n: text)


_ELEMENT_FUNCTIONS = (
    _ElementFunctions(_compute_bit, _compute_fraction, lambda k, n: f' é "{k}\\{n}"' + "x" * (k % 4)),
    _ElementFunctions(
        _compute_small_integer,
        lambda k, n: float(_compute_small_integer(k, n)),
        lambda k, n: str(_compute_small_integer(k, n) * 10 ** (k % 3)),
    ),
    _build_constant_functions(1, "{}"),
    _build_constant_functions(0, "0"),
)


def guess_inputs(specs: Sequence[TensorSpec], user_inputs: UserInputs) -> Iterator[tuple[Tensor, ...]]:
    """Yield complete sets of inputs for a model: for each kind of elements, every guess of the sizes.

    Args:
        specs: the inputs in the metadata; -1 is a variable dimension.
        user_inputs: inputs from the user, which are part of every guess. If there are any, the first guess consists of
            them alone, because the other inputs of the model may be optional.

    Raises UserInputError: an input of the user does not match the metadata.
    """
    fixed = build_user_tensors(specs, user_inputs)
    if fixed:
        yield tuple(fixed[spec.name] for spec in specs if spec.name in fixed)
    seen: set[tuple[object, ...]] = set()
    for index, values in enumerate(_ELEMENT_FUNCTIONS if len(fixed) < len(specs) else ()):
        for sizes in _DIMENSION_SIZES:
            shapes = tuple(sizes.fill(spec.shape) for spec in specs if spec.name not in fixed)
            if (index, shapes) in seen or sum(map(prod, shapes)) > MAX_GUESSED_ELEMENTS:
                continue
            seen.add((index, shapes))
            yield tuple(
                fixed[spec.name] if spec.name in fixed else _build_tensor(spec, sizes.fill(spec.shape), values, n)
                for n, spec in enumerate(specs)
            )


def _build_tensor(spec: TensorSpec, shape: Shape, values: _ElementFunctions, n: int) -> Tensor:
    count = prod(shape)
    elements = [values.compute_element(spec.datatype, k, n) for k in range(min(count, PERIOD))]
    array = np.resize(Tensor.from_values(spec.name, spec.datatype, elements).array, count)
    return Tensor.from_values(spec.name, spec.datatype, array, shape)


def build_user_tensors(specs: Sequence[TensorSpec], user_inputs: UserInputs, alternative: int = 0) -> dict[str, Tensor]:
    """Return name -> tensor for the inputs of the user.

    `alternative`: the index of the tensor to use, for inputs with several alternative tensors.

    Raises UserInputError: an input of the user does not match the metadata.
    """
    datatypes = {spec.name: spec.datatype for spec in specs}
    return {name: _build_user_tensor(name, datatypes, entry, alternative) for name, entry in user_inputs.items()}


def _build_user_tensor(name: str, datatypes: Mapping[str, str], entry: UserTensor, alternative: int) -> Tensor:
    shape, data, datatype = entry.shape, entry.samples[alternative % len(entry.samples)], entry.datatype
    if name not in datatypes:
        raise UserInputError(f"inputs.{name}: the model has no such input; it has {', '.join(datatypes)}")
    if datatype not in ("", datatypes[name]):
        raise UserInputError(f"inputs.{name}: datatype {datatype}, but {datatypes[name]} in the metadata")
    if len(data) != prod(shape):
        raise UserInputError(f"inputs.{name}: data has {len(data)} elements, which do not fit shape {list(shape)}")
    try:
        return Tensor.from_values(name, datatypes[name], list(data), tuple(shape))
    except (ValueError, TypeError, OverflowError) as error:
        raise UserInputError(f"inputs.{name}: data is not {datatypes[name]} ({error})") from error


# --- variations of accepted inputs -----------------------------------------------------------------------------------

_WIDTH = 16  # floating-point elements of variations are eighths, up to twice this number


def vary_inputs(tensors: Sequence[Tensor], salt: int) -> tuple[Tensor, ...]:
    """Return inputs of the same names and shapes with other elements for each salt; for salt 0 the inputs unchanged.

    Integers stay between the minimum and the maximum of the tensor. If all its integers are equal, the range also
    includes 0 and 1. A string gets a number appended; a string of digits stays a string of digits.
    """
    if not salt:
        return tuple(tensors)
    return tuple(
        (_vary_tensor if tensor.elements > PERIOD else _vary_short_tensor)(tensor, n, salt)
        for n, tensor in enumerate(tensors)
    )


# Factors for floating-point elements, whose range a model may expect: pixels, normalised or raw features. A negative
# factor changes the sign of about half of the elements.
_SCALES = (4.0, -1.0, 16.0, -4.0, 0.25, 64.0, -16.0, 1000.0, -256.0, -0.25)
_FIRST_SALT = 16  # of scaled inputs, whose elements differ from those of variations


def scale_inputs(tensors: Sequence[Tensor]) -> Iterator[tuple[Tensor, ...]]:
    """Yield inputs of the same names and shapes without end, with floating-point elements of other ranges.

    Other elements vary as in `vary_inputs`: an integer beyond the end of a table has crashed models.
    """
    for salt, scale in enumerate(cycle(_SCALES), _FIRST_SALT):
        varied = vary_inputs(tensors, salt)
        yield tuple(_scale_tensor(tensor, n, salt, scale) for n, tensor in enumerate(varied))


def _scale_tensor(tensor: Tensor, n: int, salt: int, scale: float) -> Tensor:
    if not lookup(tensor.datatype).is_float:
        return tensor
    signs = [-1 if scale < 0 and _mix_bits(k, n, salt) & 64 else 1 for k in range(min(tensor.elements, PERIOD))]
    factors = np.resize(np.array(signs) * abs(scale), tensor.shape)
    return Tensor(tensor.name, tensor.datatype, tensor.shape, (tensor.array * factors).astype(tensor.array.dtype))


def _vary_tensor(tensor: Tensor, n: int, salt: int) -> Tensor:
    flat, dtype = tensor.array.reshape(-1), tensor.array.dtype
    count = min(flat.size, PERIOD)
    if tensor.datatype == "BYTES":
        elements: Any = [_vary_text(flat[k], salt + k) for k in range(count)]
    elif lookup(tensor.datatype).is_float and not _may_be_guessed(flat):
        elements = np.roll(flat[:count], salt)
    elif lookup(tensor.datatype).is_float:
        elements = [(_mix_bits(k, n, salt) % _WIDTH + 1) / 8 for k in range(count)]
    else:
        least, most = (int(flat.min()), int(flat.max())) if flat.size else (0, 0)
        least, most = (least, most) if least < most else (min(least, 0), max(least, 1))
        elements = [least + _mix_bits(k, n, salt) % (most - least + 1) for k in range(count)]
    values = elements if isinstance(elements, np.ndarray) else np.array(elements, dtype=object).astype(dtype)
    return Tensor(tensor.name, tensor.datatype, tensor.shape, np.resize(values, tensor.shape))


# Rows draw the same inputs of a model again and again. Long ones are not kept: they would take much memory.
_vary_short_tensor = lru_cache(maxsize=1024)(_vary_tensor)


def _may_be_guessed(elements: np.ndarray[Any, Any]) -> bool:
    """Whether floating-point elements may come from a guess, not from the user: all are small multiples of 1/8."""
    eighths = elements.astype("<f8") * 8
    return bool(np.all((eighths == np.floor(eighths)) & (np.abs(eighths) <= 8 * _WIDTH)))


def _vary_text(text: bytes, number: int) -> bytes:
    """Append a number to a string; in a string of digits, add the number to the value instead."""
    return b"%d" % (int(text) + number) if text.isdigit() else text + b"%d" % number


def _mix_bits(k: int, n: int, salt: int) -> int:
    """Return a pseudo-random number of 16 bits for element k of input n; neighbouring elements are unrelated."""
    mixed = (k * 0x9E3779B1 + n * 0x85EBCA77 + salt * 0xC2B2AE3D) & 0xFFFFFFFF
    return (mixed ^ mixed >> 15) * 0x2C1B3C6D >> 12 & 0xFFFF
