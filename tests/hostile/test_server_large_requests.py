"""What a request may hold, and that a large one is read beside the event loop, in slices."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from reference_server import (
    classification,
    http_body,
    limits,
    members,
    response,
    sliced_json,
    strict_json,
    tensors,
    workers,
)
from reference_server.errors import InferenceError
from tests.support.serving import Server, make_infer_request, read_answer, run_server

GOOD = make_infer_request("identity_int32", b'{"inputs":[{"name":"INPUT","shape":[1],"datatype":"INT32","data":[7]}]}')


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Serve with the default limits."""
    with run_server() as started:
        yield started


# Functions: whoever collects the tests does without.
LARGE = {
    "60-MB-of-arrays-in-gzip": lambda: b'{"inputs":[' + b"[]," * 20_000_000 + b"[]]}",
    "million-values": lambda: b'{"inputs":[' + b"0," * 3_000_000 + b"0]}",
    "million-inputs": lambda: b'{"inputs":[' + b"{}," * 1_000_000 + b"{}]}",
    "million-outputs": lambda: b'{"outputs":[' + b"[]," * 1_000_000 + b"{}]}",
    "17-MB-of-one-text": lambda: b'{"id":"' + b"x" * 17_000_000 + b'"}',
    "million-members": lambda: b"{" + b",".join(b'"%d":0' % number for number in range(100_000)) + b"}",
}


@pytest.mark.parametrize("name", LARGE)
def test_oversized_gzip_body_is_413(server: Server, name: str) -> None:
    body = gzip.compress(LARGE[name](), 1)
    answer = server.exchange(
        make_infer_request("identity_int32", body).replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n", 1)
    )
    assert answer.status == 413
    assert len(json.loads(answer.body)["error"]) < 200


@pytest.mark.parametrize("member", ["inputs", "outputs"])
def test_more_than_1024_entries_are_refused(member: str) -> None:
    assert len(members.get_objects({member: [{}] * 1024}, member)) == 1024
    with pytest.raises(InferenceError, match=f"{member} has 1025 entries, more than the limit of 1024"):
        members.get_objects({member: [{}] * 1025}, member)


def test_deep_nesting_is_refused_however_long_the_text(server: Server) -> None:
    answer = server.infer("identity_int32", b'{"a":' + b"[" * 100_000)
    assert (answer.status, b"nested more than 32 levels" in answer.body) == (400, True)


def test_others_are_answered_while_a_large_request_is_under_way(server: Server) -> None:
    count = 500_000
    body = b'{"inputs":[{"name":"INPUT","shape":[%d],"datatype":"FP32","data":[%b0]}]}' % (
        count,
        b"0.25," * (count - 1),
    )
    with server.connection() as slow, server.connection() as quick:
        slow.sendall(make_infer_request("identity_fp32", body))
        slow.setblocking(False)
        for _ in range(20):
            quick.sendall(GOOD)
            assert read_answer(quick).status == 200
        with pytest.raises(BlockingIOError):
            slow.recv(1)
        slow.setblocking(True)
        slow.settimeout(30)
        assert len(json.loads(read_answer(slow).body)["outputs"][0]["data"]) == count


def test_large_body_is_parsed_in_another_thread() -> None:
    async def names(size: int) -> int:
        return await workers.run_in_worker(size, threading.get_ident)

    here = threading.get_ident()
    assert asyncio.run(names(workers.MAX_INLINE_BYTES)) == here
    assert asyncio.run(names(workers.MAX_INLINE_BYTES + 1)) != here


# --- slices ----------------------------------------------------------------------------------------------------------

TEXTS = [
    '{"a":[1,-2.5e3,"x,]\\"y",true,null,[],[[1],[2,3]],{"b":0}],"c":{},"d":"\\u00e4\\ud800"}',
    '{"a" : [ 1 , 2 ,\n3 ] , "b":[ "p" , "q,r" ]}',
    '{"a":[,]}', '{"a":[1,,2]}', '{"a":[1,]}', '{"a":[1 2]}', '{"a":[1', '{"a":["x]}', '{"a":[NaN,1]}', '{"a":[01,1]}',
    '{"a":1,"a":2}', '{"a":1,}', '{"a" 1}', '{a:1}', '{"a":1} x', "[1,2]", '{"a":["\t",1]}', '{"a":[tru,1]}', "",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_sliced_parsing_equals_parsing_at_once(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def outcome() -> str:
        try:
            return repr(strict_json.parse_object(text.encode()))
        except InferenceError as error:
            return error.message

    at_once = outcome()
    monkeypatch.setattr(strict_json, "MAX_ONE_PASS_CHARS", -1)
    monkeypatch.setattr(sliced_json, "SLICE", size)
    assert outcome() == at_once


def test_json_is_written_in_slices_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"id": "ä", "outputs": [{"name": "A", "data": list(range(10)), "p": {}}, {"data": [], "shape": [0]}]}
    at_once = response.encode(answer)
    monkeypatch.setattr(response, "SLICE", 3)
    assert response.encode(answer) == at_once
    assert json.loads(at_once) == answer


def test_elements_are_converted_in_slices_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "SLICE", 3)
    array = tensors.make_array(list(range(10)), np.dtype(np.int32))
    assert array.tolist() == list(tensors.iterate_items(array)) == list(range(10))


@pytest.mark.parametrize("kind", ["f4", "u1", "i8"])
def test_few_of_many_classes_are_those_of_sorting(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row = np.random.default_rng(1).integers(0, 50, 1000).astype(kind)
    if kind == "f4":
        row[::7] = np.nan
    expected = classification.find_top_indices(row, 20).tolist()
    monkeypatch.setattr(classification, "MAX_SORTED_ELEMENTS", 10)
    assert classification.find_top_indices(row, 20).tolist() == expected
    assert classification.find_top_indices(row[:5], 20).tolist() == classification.rank_elements(row[:5]).tolist()


# --- limits ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def few_elements() -> Iterator[None]:
    """Allow few elements."""
    limits.set_limits(limits.Limits(elements=10))
    yield
    limits.set_limits(limits.DEFAULT)


@pytest.mark.usefixtures("few_elements")
def test_elements_that_become_objects_are_counted() -> None:
    numbers = tensors.Tensor("INT32", (11,), np.arange(11, dtype=np.int32))
    for refused in (
        lambda: tensors.split_elements(memoryview(bytes(44)), 11),
        lambda: tensors.make_objects(b"" for _ in range(11)),
        lambda: tensors.encode_json(numbers),
    ):
        with pytest.raises(InferenceError, match="the limit of this server"):
            refused()
    assert len(tensors.encode_json(tensors.Tensor("INT32", (10,), numbers.elements[:10]))) == 10


def test_classes_are_counted() -> None:
    numbers = tensors.Tensor("UINT8", (1 << 20,), np.zeros(1 << 20, np.uint8))
    with pytest.raises(InferenceError, match="classes are over the limit"):
        classification.classify(numbers, 1 << 20, False, ())


def test_members_of_gzip_that_hold_nothing_are_counted() -> None:
    assert http_body.decode(gzip.compress(b"") * 50 + gzip.compress(b"x"), "gzip", 100) == b"x"
    with pytest.raises(InferenceError, match="members"):
        http_body.decode(gzip.compress(b"") * 10_001, "gzip", 100)


@pytest.mark.parametrize("most", [1, 5, 1 << 20])
def test_large_gzip_body_is_unpacked_in_slices(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_body, "UNPACKED_BYTES", most)
    octets = b"[]," * 5000
    packed = gzip.compress(octets)
    assert http_body.decode(packed, "gzip", len(octets)) == octets
    for end in (0, 5, 12, -8, -1):
        with pytest.raises(InferenceError, match="the gzip body is truncated"):
            http_body.decode(packed[:end], "gzip", len(octets))


def test_a_body_of_many_pieces_and_members_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_body, "PIECE_BYTES", 7)
    octets = bytes(range(256)) * 3
    assert http_body.decode(gzip.compress(octets[:400]) + gzip.compress(octets[400:]), "gzip", 768) == octets
    with pytest.raises(InferenceError, match="over the limit"):
        http_body.decode(gzip.compress(octets), "gzip", 767)
