"""Reads the golden gRPC calls: every case of `fixtures/grpc`.

A case is a serialized ModelInferRequest and its expected answer. Reading a case encodes nothing and needs no protobuf.
`fixtures/README.md` describes the files, `schemas/grpc_fixture.schema.json` is their schema.
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
    """A golden gRPC call and its expected answer.

    Attributes:
        requirements: the ids of the requirements that the case checks; the first is the main one.
        source: the document section that the case is taken from, or None.
        role: the role of the requested model, which is also the model name in the message.
        refused: whether the server has to refuse the call.
        outputs: the exact outputs of the answer, in raw or typed contents. For a call that has to be refused: the
            outputs of a server that answers nevertheless; empty if unspecified.
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
    """Return all cases, sorted by the names of their folders.

    Raises FileNotFoundError: the installation is incomplete.
    """
    return tuple(_load_case(path.parent) for path in sorted((find_folder("fixtures") / "grpc").glob("*/case.json")))


def _load_case(folder: Path) -> GrpcCase:
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    outputs = case["answer"].get("outputs", case["answer"].get("otherwise", []))
    return GrpcCase(
        name=case["name"],
        title=case["title"],
        requirements=tuple(case["requirements"]),
        level=case["answer"]["level"],
        source=Source(**case["source"]) if case["source"] else None,
        role=case["role"],
        body=(folder / "request.bin").read_bytes(),
        refused=case["answer"].get("refused", False),
        outputs=tuple(read_output(folder, {"form": "either", **entry}) for entry in outputs),
    )
