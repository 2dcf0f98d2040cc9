"""Groups of datatypes, and the identity role for each datatype."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.spec.check import Row
from conformance.wire.datatypes import INTEGERS

# Datatypes that are specified by their size alone: BOOL, FP16 and BYTES have requirements of their own.
PLAIN = (*INTEGERS, "FP32", "FP64")
JSON_CAPABLE = ("BOOL", *PLAIN, "BYTES")


def get_identity_role(datatype: str) -> str:
    """Return the name of the role that returns tensors of a datatype unchanged."""
    return f"identity_{datatype.lower()}"


def make_datatype_rows(datatypes: Sequence[str]) -> list[Row]:
    """Return a row for each datatype, with its identity role."""
    return [Row(datatype, role=get_identity_role(datatype)) for datatype in datatypes]


KIB = 1024
