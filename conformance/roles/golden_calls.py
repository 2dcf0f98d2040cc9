"""Reads the golden gRPC calls: every case of `fixtures/grpc`, immutable.

A case is a serialized ModelInferRequest and its expected answer. Nothing is encoded here, and reading a case does not
need protobuf. `fixtures/README.md` describes the files, `schemas/grpc_fixture.schema.json` is their schema.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from conformance.roles.golden_requests import ExpectedOutput, Level, Source, read_output
from conformance.spec.data_files import find_folder


@dataclass(frozen=True)
class GrpcCase:
    """One call and its expected answer.

    Attributes:
        title: a short description.
        requirements: ledger ids; the first is the main one.
        level: the level of the expectation.
        source: the document section of the call, or None.
        role: the role of the requested model; in the message it is also the model's name.
        body: the serialized message.
        refused: whether the server must refuse the call.
        outputs: the exact outputs of the answer. For a call to be refused: the outputs of an answer that is given
            anyway, empty if unspecified. They may have either form.
    """

    name: str
    title: str
    requirements: tuple[str, ...]
    level: Level
    source: Source | None
    role: str
    body: bytes
    refused: bool
    outputs: tuple[ExpectedOutput, ...]


@cache
def load_all() -> tuple[GrpcCase, ...]:
    """Return every case by name.

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    return tuple(_load_case(path.parent) for path in sorted((find_folder("fixtures") / "grpc").glob("*/case.json")))


def _load_case(place: Path) -> GrpcCase:
    case = json.loads((place / "case.json").read_text(encoding="utf-8"))
    outputs = case["answer"].get("outputs", case["answer"].get("otherwise", []))
    return GrpcCase(
        name=case["name"],
        title=case["title"],
        requirements=tuple(case["requirements"]),
        level=case["answer"]["level"],
        source=Source(**case["source"]) if case["source"] else None,
        role=case["role"],
        body=(place / "request.bin").read_bytes(),
        refused=case["answer"].get("refused", False),
        outputs=tuple(read_output(place, {"form": "either", **entry}) for entry in outputs),
    )
