"""Numeric binary data is not copied."""

from __future__ import annotations

import numpy as np
import pytest

from reference_server.tensors import NUMPY, decode_binary, encode_binary


@pytest.mark.parametrize("datatype", ["BOOL", "UINT8", "FP16", "BF16", "FP32", "INT64"])
def test_numeric_tensors_are_views(datatype: str) -> None:
    body = memoryview(b"{} " + bytes(64))  # three bytes of JSON: no element is aligned
    data = body[3:]
    tensor = decode_binary(datatype, (64 // NUMPY[datatype].itemsize,), data)
    octets = np.frombuffer(body, np.uint8)
    assert np.shares_memory(tensor.elements, octets)
    assert np.shares_memory(np.frombuffer(encode_binary(tensor), np.uint8), octets)
