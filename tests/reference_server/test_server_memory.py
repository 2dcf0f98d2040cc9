"""Numeric binary data are not copied, and long bodies are put together a slice at a time."""

from __future__ import annotations

import numpy as np
import pytest

from reference_server import workers
from reference_server.tensors import NUMPY, decode_binary, encode_binary


@pytest.mark.parametrize("datatype", ["BOOL", "UINT8", "FP16", "BF16", "FP32", "INT64"])
def test_numeric_tensors_are_views(datatype: str) -> None:
    body = memoryview(b"{} " + bytes(64))  # three bytes of JSON: no element is aligned
    data = body[3:]
    tensor = decode_binary(datatype, (64 // NUMPY[datatype].itemsize,), data)
    octets = np.frombuffer(body, np.uint8)
    assert np.shares_memory(tensor.elements, octets)
    assert np.shares_memory(np.frombuffer(encode_binary(tensor), np.uint8), octets)


@pytest.mark.parametrize("slice_", [1, 3, 100])
def test_long_parts_are_joined_as_short_ones_are(slice_: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "JOINED_BYTES", slice_)
    parts: list[bytes | memoryview] = [b"abcd", memoryview(b"efghijk"), b"", b"l"]
    assert workers.join_parts(parts) == b"abcdefghijkl"
    assert workers.join_parts([]) == b""
