"""The datatypes and what each is in memory.

Binary data are little-endian and packed, every element in its native size (Triton, Binary Tensor Data Extension,
"Binary Tensor Request"), so the little-endian numpy types are the wire format itself. Names and sizes are those of
Open Inference Protocol, REST, "Tensor Data Types"; BF16 is an addition that no document of the extension names.
"""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np

NUMPY: Final[dict[str, np.dtype[Any]]] = {
    "BOOL": np.dtype("?"),
    "UINT8": np.dtype("u1"),
    "UINT16": np.dtype("<u2"),
    "UINT32": np.dtype("<u4"),
    "UINT64": np.dtype("<u8"),
    "INT8": np.dtype("i1"),
    "INT16": np.dtype("<i2"),
    "INT32": np.dtype("<i4"),
    "INT64": np.dtype("<i8"),
    "FP16": np.dtype("<f2"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"),
    "BYTES": np.dtype(object),
}

# JSON has no numbers of 16 bits, and the documents do not say how they would be written.
BINARY_ONLY: Final = frozenset({"FP16", "BF16"})

# Elements of these have no order that a classification could go by.
NOT_SCORES: Final = frozenset({"BOOL", "BYTES"})
