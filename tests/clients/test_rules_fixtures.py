"""The golden requests: valid ones miss nothing that is demanded, invalid ones what their folder says of the request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.clients.rules.judging import judge_request
from conformance.wire.client_request import ClientRequest
from tests.clients.made_requests import list_ids
from tests.support.tables import on_each

FIXTURES = Path(__file__).parents[2] / "fixtures"

# What valid cases are for: a server has to take what a client is advised against.
ADVISED = {
    "binary-request-as-application-json": ["CONTENT-TYPE"],
    "binary-request-without-content-type": ["CONTENT-TYPE"],
    "fp16-json-in": ["FP16"],
}

# Faults that only the model tells, or that are no fault of a request: no request shows them.
OF_THE_MODEL = {
    *("batch-dimension-missing", "classification-of-bool", "datatype-of-the-same-size", "missing-input", "no-inputs"),
    *("shape-of-another-rank", "shape-transposed", "unknown-input", "unknown-input-beside-the-known-one"),
    *("unknown-model", "unknown-output", "raw-batch-of-two", "raw-bytes-of-shape-two", "raw-bytes-of-variable-shape"),
    *("raw-half-a-row", "raw-half-an-element", "raw-one-byte-short", "raw-one-element-long", "raw-one-element-short"),
    *("raw-two-inputs", "raw-two-variable-dimensions", "raw-without-a-body"),
}

# The requirement of servers that a case is named for, to the one of clients; the beginnings of ids will do.
MISSED = {
    "BIN-BODY-LONG": "SIZES-FILL",
    "BIN-BODY-SHORT": "SIZES-FILL",
    "BIN-BYTES-MISFRAMED": "BYTES",
    "BIN-DATA-AND-SIZE": "DATA-OR-SIZE",
    "BIN-HEADER-MISSING": "HEADER",
    "BIN-HEADER": "HEADER-LENGTH",
    "BIN-PARAMETER-TYPE": "PARAMETERS",
    "BIN-SIZE-TYPE": "PARAMETERS",
    "BIN-SIZE-MISSING": "PARAMETERS",
    "BIN-SIZE-FALSE": "SIZE",
    "BIN-SIZE-WRONG": "SIZE",
    "CLS-COUNT-WRONG": "CLASSIFICATION",
    "OIP-DIMENSION-NEGATIVE": "MEMBERS",
    "OIP-JSON-STRICT": "JSON",
}

# Cases whose requirement is about another side of the same fault, or is a general one.
OTHERWISE = {
    "binary-data-size-fraction": "PARAMETERS",
    "data-beside-binary-data-size": "DATA-OR-SIZE",
    "datatype-byte": "MEMBERS",
    "datatype-in-lower-case": "MEMBERS",
    "datatype-string": "MEMBERS",
    "inference-header-zero-before-json": "HEADER-LENGTH",
    "inputs-not-given": "MEMBERS",
    "json-array": "JSON",
    "json-data-too-few": "DATA",
    "json-data-too-many": "DATA",
    "json-not-json": "JSON",
    "json-without-its-last-brace": "JSON",
    "neither-data-nor-binary-data-size": "DATA",
    "raw-without-the-header": "RAW",
}


def names(kind: str) -> list[str]:
    return sorted(folder.name for folder in (FIXTURES / kind).iterdir())


def request(kind: str, name: str) -> ClientRequest:
    folder = FIXTURES / kind / name
    asked = json.loads((folder / "case.json").read_text(encoding="utf-8"))["request"]
    body = (folder / "request.bin").read_bytes()
    return ClientRequest(asked["method"], asked["path"], tuple(asked["headers"].items()), body)


@on_each(names("valid"))
def test_valid_requests_miss_no_demand(name: str) -> None:
    assert list_ids(judge_request(request("valid", name)).violations) == ADVISED.get(name, [])


@on_each(names("invalid"))
def test_invalid_requests_miss_what_is_wrong_with_them(name: str) -> None:
    case = json.loads((FIXTURES / "invalid" / name / "case.json").read_text(encoding="utf-8"))
    expected = OTHERWISE.get(name)
    if expected is None and name not in OF_THE_MODEL:
        expected = next(ours for theirs, ours in MISSED.items() if case["requirements"][0].startswith(theirs))
    assert list_ids(judge_request(request("invalid", name)).violations) == ([] if expected is None else [expected])


WRONG_CALLS = {
    "classification-as-string": ["CLASSIFICATION/grpc"],
    "classification-page-as-printed": ["DATA/grpc"],
    "raw-and-typed-contents": ["ONE-FORM"],
    "raw-length-past-the-end": ["BYTES/grpc"],
    "raw-one-byte-short": ["SIZE/grpc"],
}


@pytest.mark.parametrize("name", names("grpc"))
def test_calls_miss_what_is_wrong_with_them(name: str) -> None:
    folder = FIXTURES / "grpc" / name
    method = json.loads((folder / "case.json").read_text(encoding="utf-8"))["method"]
    received = ClientRequest("GRPC", method, (), (folder / "request.bin").read_bytes())
    assert list_ids(judge_request(received).violations) == WRONG_CALLS.get(name, [])
