"""The datatypes of the protocol, as one table.

Open Inference Protocol, REST, "Tensor Data Types": thirteen names with their sizes. Triton adds BF16, which no document
of the extension names; it stands last and is not among `OIP_DATATYPES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np


@dataclass(frozen=True, slots=True)
class Datatype:
    """One datatype.

    Attributes:
        name: as the JSON spells it.
        dtype: how numpy holds an element; little-endian, `object` (of `bytes`) for BYTES.
        size: bytes of an element in binary data, None for BYTES.
    """

    name: str
    dtype: np.dtype[Any]
    size: int | None


def _native(name: str, code: str) -> Datatype:
    dtype = np.dtype(code)
    return Datatype(name, dtype, dtype.itemsize)


DATATYPES: Mapping[str, Datatype] = MappingProxyType(
    {
        datatype.name: datatype
        for datatype in (
            _native("BOOL", "?"),
            _native("UINT8", "u1"),
            _native("UINT16", "<u2"),
            _native("UINT32", "<u4"),
            _native("UINT64", "<u8"),
            _native("INT8", "i1"),
            _native("INT16", "<i2"),
            _native("INT32", "<i4"),
            _native("INT64", "<i8"),
            _native("FP16", "<f2"),
            _native("FP32", "<f4"),
            _native("FP64", "<f8"),
            Datatype("BYTES", np.dtype(object), None),
            # ml_dtypes has this dtype in the host's byte order only: tensor.py goes through "<u2", which costs nothing
            # on a little-endian host and swaps on any other.
            Datatype("BF16", np.dtype(ml_dtypes.bfloat16), 2),
        )
    }
)

OIP_DATATYPES: tuple[str, ...] = tuple(name for name in DATATYPES if name != "BF16")
INTEGERS: tuple[str, ...] = ("UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64")
FLOATS: tuple[str, ...] = ("FP16", "FP32", "FP64")
NUMERIC: tuple[str, ...] = INTEGERS + FLOATS


def lookup(name: str) -> Datatype:
    """Return the datatype of that name.

    Raises:
        ValueError: no datatype has this name (STRING, for one, is an erratum of the classification examples).
    """
    try:
        return DATATYPES[name]
    except KeyError:
        raise ValueError(f"unknown datatype {name!r}: one of {', '.join(DATATYPES)} is expected") from None
