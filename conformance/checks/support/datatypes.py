"""Groups of datatypes, the identity role for each datatype, and rows for each role."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.roles.roles import load
from conformance.spec.check import Only, Row
from conformance.spec.extensions import BINARY, HTTP
from conformance.wire.datatypes import INTEGERS

# Datatypes that are specified by their size alone: BOOL, FP16 and BYTES have requirements of their own.
PLAIN = (*INTEGERS, "FP32", "FP64")
JSON_CAPABLE = ("BOOL", *PLAIN, "BYTES")
_RAW_CONTENTS = Only(HTTP, "GRPC-FP16 and GRPC-BF16 say it of tensors that have no typed contents")


def get_identity_role(datatype: str) -> str:
    """Return the name of the role that returns tensors of a datatype unchanged."""
    return f"identity_{datatype.lower()}"


def make_datatype_rows(datatypes: Sequence[str]) -> list[Row]:
    """Return a row for each datatype, with its identity role."""
    return [Row(datatype, role=get_identity_role(datatype)) for datatype in datatypes]


def make_role_rows() -> list[Row]:
    """Return a row for each role that answers a request without a version in only one way."""
    return [
        Row(name, role=name) if role.is_json_capable else Row(name, role=name, needs=BINARY, only=_RAW_CONTENTS)
        for name, role in load().items()
        if not role.versions
    ]


KIB = 1024
