"""The table of the protocol's datatypes.

Thirteen datatypes are those of the Open Inference Protocol, REST, "Tensor Data Types". The last is BF16, which Triton
adds; no document of the binary data extension names BF16. `OIP_DATATYPES` does not contain BF16.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import ml_dtypes
import numpy as np

Kind = Literal["bool", "integer", "float", "text"]


@dataclass(frozen=True, slots=True)
class Datatype:
    """One datatype and its properties.

    Attributes:
        dtype: the numpy dtype of an element, little-endian; for BYTES `object`, with elements of type `bytes`.
        contents: the field of `InferTensorContents` for typed gRPC contents; empty if the datatype has no field.
        has_json_form: whether elements can be sent as JSON. "FP16 and BF16 data must be sent as binary" (Triton).
        json_tolerance: the relative error up to which a decimal number in JSON counts as equal.
        is_standard: whether the Open Inference Protocol names the datatype.
        words: for a datatype that numpy supports only in native byte order, the little-endian integer dtype of the same
            size; else None.
    """

    name: str
    dtype: np.dtype[Any]
    kind: Kind
    contents: str = ""
    has_json_form: bool = True
    json_tolerance: float = 0.0
    is_standard: bool = True
    words: np.dtype[Any] | None = None

    @property
    def size(self) -> int | None:
        """The bytes of an element in binary data; None for BYTES."""
        return None if self.kind == "text" else self.dtype.itemsize

    @property
    def is_float(self) -> bool:
        """Whether the elements are floating-point numbers."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Whether the elements are integers."""
        return self.kind == "integer"


def _build_integer_datatype(name: str, code: str, contents: str) -> Datatype:
    return Datatype(name, np.dtype(code), "integer", contents)


# Many JSON parsers read integers as doubles, which hold none beyond this exactly (RFC 8259, 6); they may refuse those.
MAX_EXACT_INTEGER = 2**53 - 1

# JSON "allows implementations to set limits on the range and precision of numbers" (RFC 8259, 6), and the protocol says
# nothing more. The tolerances are about one step of FP16 and of BF16; half of the sixth digit of FP32 (FLT_DIG, the
# default precision of C++ streams) and its rounding; and 45 steps of FP64 (15 digits, DBL_DIG). One unit in the last
# place always counts as the same.
_TABLE = {
    datatype.name: datatype
    for datatype in (
        Datatype("BOOL", np.dtype("?"), "bool", "bool_contents"),
        _build_integer_datatype("UINT8", "u1", "uint_contents"),
        _build_integer_datatype("UINT16", "<u2", "uint_contents"),
        _build_integer_datatype("UINT32", "<u4", "uint_contents"),
        _build_integer_datatype("UINT64", "<u8", "uint64_contents"),
        _build_integer_datatype("INT8", "i1", "int_contents"),
        _build_integer_datatype("INT16", "<i2", "int_contents"),
        _build_integer_datatype("INT32", "<i4", "int_contents"),
        _build_integer_datatype("INT64", "<i8", "int64_contents"),
        Datatype("FP16", np.dtype("<f2"), "float", has_json_form=False, json_tolerance=1e-3),
        Datatype("FP32", np.dtype("<f4"), "float", "fp32_contents", json_tolerance=5.1e-6),
        Datatype("FP64", np.dtype("<f8"), "float", "fp64_contents", json_tolerance=1e-14),
        Datatype("BYTES", np.dtype(object), "text", "bytes_contents"),
        Datatype(
            "BF16",
            np.dtype(ml_dtypes.bfloat16),
            "float",
            has_json_form=False,
            json_tolerance=1e-2,
            is_standard=False,
            words=np.dtype("<u2"),
        ),
    )
}
DATATYPES: Mapping[str, Datatype] = MappingProxyType(_TABLE)

OIP_DATATYPES: tuple[str, ...] = tuple(one.name for one in DATATYPES.values() if one.is_standard)
INTEGERS: tuple[str, ...] = tuple(one.name for one in DATATYPES.values() if one.is_integer and one.is_standard)
FLOATS: tuple[str, ...] = tuple(one.name for one in DATATYPES.values() if one.is_float and one.is_standard)


def lookup(name: str) -> Datatype:
    """Return the datatype with this name.

    Raises ValueError: no datatype has this name, such as STRING, an erratum in the examples of classification.
    """
    try:
        return DATATYPES[name]
    except KeyError:
        raise ValueError(f"unknown datatype {name!r}: one of {', '.join(DATATYPES)} is expected") from None


def has_json_form(name: str) -> bool:
    """Return whether JSON can represent a datatype; True for one that the protocol lacks, which an answer may have."""
    datatype = DATATYPES.get(name)
    return datatype is None or datatype.has_json_form
