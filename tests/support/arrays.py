"""An array of every datatype, for other people's clients."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

ARRAYS: dict[str, NDArray[Any]] = {
    "BOOL": np.array([True, False, True]),
    "UINT8": np.array([0, 1, 255], np.uint8),
    "UINT16": np.array([0x0102, 65535], np.uint16),
    "UINT32": np.array([0x01020304, 2**32 - 1], np.uint32),
    "UINT64": np.array([0x0102030405060708, 2**53 + 1, 2**64 - 1], np.uint64),
    "INT8": np.array([-128, 1, 127], np.int8),
    "INT16": np.array([-32768, 0x0102], np.int16),
    "INT32": np.array([-(2**31), 0x01020304], np.int32),
    "INT64": np.array([-(2**63), 2**53 + 1, 2**63 - 1], np.int64),
    "FP16": np.array([0.1, -65504, 6e-8, np.inf, np.nan], np.float16),
    "FP32": np.array([0.1, -3.4028235e38, 1e-45, -0.0], np.float32),
    "FP64": np.array([0.1, 1.7976931348623157e308, 5e-324, -0.0], np.float64),
    "BYTES": np.array([b"", b"a", "猫".encode(), b"x" * 300], object),
    "BF16": np.array([1.5, -2.25, 3.39e38, -0.0], ml_dtypes.bfloat16),
}


def expect_same_bits(actual: NDArray[Any], expected: NDArray[Any]) -> None:
    """Compare bits, so that -0.0 and NaN count."""
    assert actual.shape == expected.shape
    if expected.dtype == object:
        assert [item if isinstance(item, bytes) else item.encode() for item in actual.flat] == list(expected.flat)
    else:
        assert (actual.dtype, actual.tobytes()) == (expected.dtype, expected.tobytes())
