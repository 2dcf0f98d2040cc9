"""Requests and answers over HTTP, as the judge and the bundled server read them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from conformance.wire import body_layout, codings, parsed_request, response
from conformance.wire.body_layout import Layout
from conformance.wire.finding import Finding
from conformance.wire.outputs import Output
from conformance.wire.tensor import Array
from reference_server import http_body as server_codings
from reference_server import models, request
from reference_server.errors import InferenceError
from tests.fuzz.http_input import HttpInput, golden_requests

MODELS = models.load()
# What a strict server lets pass, too: a BOOL element written as 0 or 1 is advised against, and other findings
# are about how a tensor is described rather than what it is.
TAKEN_BY_BOTH = frozenset({"integer-with-a-point"})


def answer(data: bytes) -> None:
    """Any answer is taken apart, each of its bytes belongs to one field, and no output holds another one's bytes."""
    given = HttpInput.from_bytes(data)
    taken = response.parse(given.body, given.inference_header)
    expect_shown(taken.findings, len(given.body))
    expect_cut(taken.outputs, taken.json_end, given.body)
    parts = list(body_layout.list_fields(Layout.from_answer(taken), len(given.body)))
    assert [part.start for part in parts] == [0, *(part.end for part in parts)][: len(parts)]
    assert not given.body or parts[-1].end == len(given.body)
    for offset in {0, taken.json_end, len(given.body) // 2}:
        assert body_layout.find_field_label(taken, offset).isascii()
        assert body_layout.format_hex_window(given.body, offset).isascii()


def request_of_a_client(data: bytes) -> None:
    """Any request is taken apart, and no input holds another one's bytes."""
    given = HttpInput.from_bytes(data)
    taken = parsed_request.parse(given.received())
    expect_shown(taken.findings, len(taken.body))
    expect_cut(taken.inputs, taken.json_end, taken.body)


def both_http_decoders(data: bytes) -> None:
    """What the strict server accepts the judge finds nothing wrong with, and both read the same elements."""
    given = HttpInput.from_bytes(data)
    model = MODELS.get(given.role)
    if model is None:
        return
    headers = [given.inference_header] if given.inference_header is not None else []
    taken = parsed_request.parse(given._replace(coding=None).received())
    try:
        read = request.parse(model, headers, given.body)
    except InferenceError:
        return
    if taken.is_raw:
        return
    assert {finding.kind for finding in taken.findings} <= TAKEN_BY_BOTH, taken.findings
    assert {one.name for one in taken.inputs} == set(read.inputs)
    for one in taken.inputs:
        assert one.array is not None
        tensor = read.inputs[one.name]
        assert one.shape == tensor.shape
        expect_equal(one.array, tensor.elements)


def both_undo_codings(data: bytes) -> None:
    """A coding that the server undoes the judge undoes to the same bytes."""
    name, _, body = data.partition(b"\n")
    coding = name.decode("latin-1").strip(" \t").lower()
    taken = codings.decode_body(body, coding, is_text=False)
    if coding not in server_codings.WINDOWS:
        return
    try:
        plain = server_codings.decode(body, coding, 1 << 20)
    except InferenceError:
        return
    assert taken.body == plain
    assert not taken.findings


def answers() -> Iterator[bytes]:
    """Yield golden requests as answers: the JSON of both differs in one word."""
    for data in golden_requests():
        yield data.replace(b'"inputs"', b'"outputs"')


# --- what has to hold of anything taken apart ------------------------------------------------------------------------


def expect_shown(findings: tuple[Finding, ...], size: int) -> None:
    """Assert that findings are lines of ASCII of bounded length, at places of a body of this size."""
    for finding in findings:
        text = str(finding)
        assert text.isascii()
        assert text.isprintable()
        assert len(finding.described) < 2000
        assert finding.offset is None or 0 <= finding.offset <= size, finding


def expect_cut(tensors: tuple[Output, ...], start: int, body: bytes) -> None:
    """Assert that the bytes of tensors lie in the body behind the JSON and overlap nowhere, and that arrays fit."""
    spans = sorted(one.span for one in tensors if one.span is not None)
    for begin, end in spans:
        assert start <= begin <= end <= len(body)
    for (_, end), (begin, _) in pairwise(spans):
        assert end <= begin
    for one in tensors:
        if one.array is not None:
            assert one.array.shape == one.shape
            assert one.array.size <= 8 * len(body) or one.array.size == 0


def expect_equal(ours: Array, theirs: Array) -> None:
    """Assert that two arrays have the same elements, bit by bit; any NaN of JSON is any other."""
    flat = ours.reshape(-1)
    assert flat.dtype == theirs.dtype
    if flat.dtype == object:
        assert flat.tolist() == theirs.tolist()
    else:
        assert np.array_equal(np.ascontiguousarray(flat).view("u1"), np.ascontiguousarray(theirs).view("u1"))
