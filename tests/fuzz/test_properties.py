"""Each property can fail, and costs what an input's size allows: both are seen on the inputs that are kept."""

from __future__ import annotations

import re
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from itertools import count
from types import FrameType
from typing import Any

import pytest

from conformance.certification import manifest
from conformance.clients import adapter_lines
from conformance.clients.recording import calls, message_reader
from conformance.clients.recording.message_reader import HttpMessage
from conformance.clients.recording.recorder import Body
from conformance.fleet import units
from conformance.judging import baseline_file
from conformance.report import formats
from conformance.transport import config, recording
from conformance.wire import codings, grpc_fields, json_data, json_text, outputs, strings
from conformance.wire.finding import Finding
from conformance.wire.outputs import Output
from reference_server import request
from tests.fuzz.targets import TARGETS, Target

Wrong = tuple[
    str, object, str, object
]  # target, and what is made wrong: its owner, its name, and what stands there then


def trips(*_: object, **__: object) -> None:
    raise RuntimeError


def one_byte_early(tensors: Sequence[Output], body: bytes, start: int) -> tuple[list[Output], int | None]:
    return CUT(tensors, body, start - 1)


def far_away(*_: object) -> Finding:
    return Finding("bytes-stray", "tensor", 10**6, "", "")


def another_each_time(_: object, body: Body) -> HttpMessage:
    return HttpMessage(body, method=str(next(NUMBERS)))


CUT, NUMBERS = outputs.assign_spans, count()
WRONG: tuple[Wrong, ...] = (
    ("answer", outputs, "assign_spans", one_byte_early),
    ("request", outputs, "assign_spans", one_byte_early),
    ("both-http-decoders", outputs, "assign_spans", one_byte_early),
    ("both-undo-codings", codings, "MAX_GZIP_MEMBERS", 1),
    ("json-text", json_text, "MAX_DEPTH", 3),
    ("json-structure", json_text, "_ESCAPE", re.compile(b"(?!)")),
    ("binary-tensors", strings, "encode", b"".join),
    ("json-tensors", json_data, "flatten", lambda data, _shape: data[::-1]),
    ("byte-elements", strings, "_describe_fault", far_away),
    ("call", grpc_fields, "_DELIMITED", 7),
    ("grpc-answer", grpc_fields, "_DELIMITED", 7),
    ("both-grpc-decoders", grpc_fields, "_DELIMITED", 7),
    ("recording", recording, "_group_calls", trips),
    ("client-recording", calls, "_parse_recorded_call", trips),
    ("baseline", baseline_file, "_parse_entry", trips),
    ("target-config", config, "build_config", trips),
    ("fleet", units, "_split_off_secrets", trips),
    ("manifest", manifest, "Manifest", trips),
    ("report", formats, "write", trips),
    ("adapter-lines", adapter_lines, "_parse_answer", trips),
    ("server-heads", request, "parse", trips),
    ("watched-requests", message_reader, "_begin_message", another_each_time),
)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_the_property_holds_for_the_corpus(target: Target) -> None:
    assert target.inputs()
    replay(target)


def test_every_target_is_made_wrong() -> None:
    assert [name for name, *_ in WRONG] == list(TARGETS)


@pytest.mark.parametrize(("name", "owner", "attribute", "wrong"), WRONG, ids=[name for name, *_ in WRONG])
def test_a_property_fails_where_the_reader_is_wrong(
    name: str, owner: object, attribute: str, wrong: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = TARGETS[name]
    monkeypatch.setattr(owner, attribute, wrong)
    with pytest.raises(Exception):  # noqa: B017, PT011  # whatever is raised is a finding
        replay(target)


def replay(target: Target) -> None:
    for data in target.inputs():
        target.holds(data)


# --- the cost --------------------------------------------------------------------------------------------------------

# Of Python's functions, and bytes of memory: for any input, and for each byte of it.
CALLS, CALLS_A_BYTE = 4000, 40
MEMORY, MEMORY_A_BYTE = 400_000, 400
MESSAGES = ("answer", "request", "json-text", "binary-tensors", "json-tensors", "byte-elements", "call", "grpc-answer")


@pytest.mark.parametrize("name", MESSAGES)
def test_the_cost_fits_the_size(name: str) -> None:
    target = TARGETS[name]
    for data in target.inputs()[::-3]:  # the largest, and one in three
        target.holds(data)  # once more, without what is made at first use
        calls, peak = cost(target.holds, data)
        assert calls <= CALLS + CALLS_A_BYTE * len(data)
        assert peak <= MEMORY + MEMORY_A_BYTE * len(data)


def test_a_cost_that_grows_with_the_square_shows() -> None:
    calls, _ = cost(lambda data: [len(data[at:].split(b"x")) for at in range(len(data)) for _ in data], b"x" * 120)
    assert calls > CALLS + CALLS_A_BYTE * 120


def cost(holds: Callable[[bytes], object], data: bytes) -> tuple[int, int]:
    """Return how many functions an input calls, and the most memory that it takes at a time."""
    calls = 0

    def counted(_frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    tracemalloc.start()
    sys.setprofile(counted)
    try:
        holds(data)
    finally:
        sys.setprofile(None)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return calls, peak
