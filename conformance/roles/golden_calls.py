"""The golden gRPC calls as the suite reads them: every case of `fixtures/grpc`, frozen.

A case is one serialized ModelInferRequest and what must be true of the answer. Nothing is encoded here; no protobuf is
needed to read a case. `fixtures/README.md` describes the files, `schemas/grpc_fixture.schema.json` is their schema.
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
    """One call and what must be true of its answer.

    Attributes:
        title: what it shows, in a few words.
        requirements: ledger ids; the first is the one that the case is about above all.
        level: whether the answer has to be so, or should.
        source: the passage of a document that the call is taken from, or None.
        role: the role whose model is called; the message has it as the model's name.
        body: the serialized message.
        refused: whether the call is to be refused.
        outputs: exactly the outputs of the answer; for a call that is to be refused those that an answer must hold
            all the same, empty where nothing is said. They may come in either form.
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
    return tuple(_load(path.parent) for path in sorted((find_folder("fixtures") / "grpc").glob("*/case.json")))


def _load(place: Path) -> GrpcCase:
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
