"""Reads the golden HTTP requests: every case of `fixtures/valid` and `fixtures/invalid`.

A case is one request, byte for byte, and its expected answer. Reading a case converts JSON notations to Python values
("NaN" to a float, {"hex": ...} to bytes), but encodes and decodes no tensor. `fixtures/README.md` describes the files,
`schemas/fixture.schema.json` is their schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from conformance.spec.data_files import find_folder
from conformance.wire.datatypes import lookup
from conformance.wire.request import Form

Value = bool | int | float | bytes
OutputForm = Form | Literal["either"]
Level = Literal["MUST", "SHOULD", "MAY", "OBSERVE"]
Framing = Literal["required", "absent_or_body_length", "either"]


@dataclass(frozen=True)
class Source:
    """The document section that a case is taken from."""

    document: str
    section: str


@dataclass(frozen=True)
class Part:
    """The binary data of one input in the body of a request.

    Attributes:
        offset: the offset of the first byte in the body.
        size: the actual number of bytes; the JSON of an invalid case may declare another size.
        values: the elements in row-major order; None if the bytes do not match datatype and shape.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    offset: int
    size: int
    values: tuple[Value, ...] | None


@dataclass(frozen=True)
class ExpectedClass:
    """One expected class of a classified output; `label` is None if the model has no label for the index."""

    value: int | float
    index: int
    label: str | None


@dataclass(frozen=True)
class ExpectedOutput:
    """One expected output of the answer.

    Attributes:
        form: `binary` or `json`, as the answer has to encode the output; `either` if the documents allow both.
        values: the elements in row-major order; None for a classification.
        binary: the elements as binary data, even if `form` is `json`; None for a classification. Any NaN matches a NaN.
        classes: the classes in row-major order; None unless this is a classification.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    form: OutputForm
    values: tuple[Value, ...] | None
    binary: bytes | None
    classes: tuple[ExpectedClass, ...] | None


@dataclass(frozen=True)
class Case:
    """A golden HTTP request and its expected answer.

    Attributes:
        name: the name of the case's folder, unique among all cases; an invalid case is named after its fault.
        requirements: the ids of the requirements that the case checks; the first determines the level.
        source: the document section that the case is taken from, or None.
        role: the role of the requested model. `path` contains the model name, which is the name of the role unless the
            case requests a model that does not exist.
        headers: all relevant headers, including Content-Length.
        body: the whole HTTP body; the first `json_length` bytes are the JSON.
        parts: the binary data of each input, in body order.
        fault: the only fault of an invalid case; None for a valid case.
        may_refuse: whether a server may refuse this valid case; if it answers, the answer has to be the expected one.
        outputs: the exact outputs of the answer. In an invalid case: the outputs of a server that answers although it
            should refuse; empty if unspecified.
        inference_header: the condition for the answer's Inference-Header-Content-Length; None for an invalid case.
        id: the id that the answer must have; None if the request has none.
    """

    name: str
    title: str
    requirements: tuple[str, ...]
    source: Source | None
    role: str
    level: Level
    path: str
    headers: Mapping[str, str]
    body: bytes
    json_length: int
    parts: tuple[Part, ...]
    fault: str | None
    may_refuse: bool
    outputs: tuple[ExpectedOutput, ...]
    inference_header: Framing | None
    id: str | None  # the name that the protocol uses

    @property
    def valid(self) -> bool:
        """Whether the request is valid: it has no fault."""
        return self.fault is None


@cache
def load_all() -> tuple[Case, ...]:
    """Return all cases, the valid cases first, each group sorted by name.

    Raises FileNotFoundError: the installation is incomplete.
    """
    return tuple(load(path.parent) for kind in ("valid", "invalid") for path in _list_case_files(kind))


def load(folder: Path) -> Case:
    """Load the case in a folder. Raises FileNotFoundError: `case.json` or a file named in it is missing."""
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    request, answer = case["request"], case["answer"]
    outputs = answer.get("outputs", answer.get("otherwise", []))
    return Case(
        name=case["name"],
        title=case["title"],
        requirements=tuple(case["requirements"]),
        source=Source(**case["source"]) if case["source"] else None,
        role=case["role"],
        level=answer["level"],
        path=request["path"],
        headers=request["headers"],
        body=(folder / "request.bin").read_bytes(),
        json_length=request["json_length"],
        parts=tuple(_parse_part(entry) for entry in request["tensors"]),
        fault=answer.get("fault"),
        may_refuse=answer.get("may_refuse", False),
        outputs=tuple(read_output(folder, entry) for entry in outputs),
        inference_header=answer.get("inference_header"),
        id=answer.get("id"),
    )


def _list_case_files(kind: str) -> list[Path]:
    return sorted((find_folder("fixtures") / kind).glob("*/case.json"))


def _parse_part(entry: dict[str, Any]) -> Part:
    return Part(**entry | {"shape": tuple(entry["shape"]), "values": _parse_values(entry)})


def read_output(folder: Path, entry: dict[str, Any]) -> ExpectedOutput:
    """Parse an entry of `outputs` in the `case.json` of a folder, and read its binary data from the same folder."""
    return ExpectedOutput(
        name=entry["name"],
        datatype=entry["datatype"],
        shape=tuple(entry["shape"]),
        form=entry["form"],
        values=_parse_values(entry),
        binary=(folder / entry["binary"]).read_bytes() if "binary" in entry else None,
        classes=tuple(ExpectedClass(**{"label": None} | item) for item in entry["classes"])
        if "classes" in entry
        else None,
    )


def _parse_values(entry: dict[str, Any]) -> tuple[Value, ...] | None:
    if "values" not in entry:
        return None
    return tuple(_parse_value(entry["datatype"], item) for item in entry["values"])


def _parse_value(datatype: str, item: Any) -> Value:
    if isinstance(item, dict):
        return bytes.fromhex(item["hex"]) * int(item.get("times", 1))
    if isinstance(item, str):
        return item.encode("utf-8") if datatype == "BYTES" else float(item)
    if lookup(datatype).is_float:
        return float(item)
    plain: bool | int = item
    return plain
