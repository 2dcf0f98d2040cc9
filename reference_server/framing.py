"""The split of a body into JSON and the binary data of each tensor.

The body is the JSON object, whose length the header Inference-Header-Content-Length gives, followed by binary data in
the order in which the JSON lists the tensors (Triton, Binary Tensor Data Extension, "Binary Tensor Request").
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reference_server.errors import InferenceError, format_value

HEADER = "Inference-Header-Content-Length"
DIGITS = re.compile("[0-9]{1,19}")  # 19 digits hold every length that fits 63 bits


def parse_json_length(values: Sequence[str], body_length: int) -> int | None:
    """Return the length of the JSON in bytes, 0 for a raw binary request; None without the header.

    `values` are the raw values of the header, normally none or one. Only decimal digits are accepted: "+5", "0x10" and
    "1.5" are errors, since a wrong guess would shift every tensor.
    """
    if not values:
        return None
    value, *others = (value.strip(" \t") for value in values)  # outer whitespace is not part of a value (RFC 9110, 5.5)
    for other in others:
        if other != value:
            raise InferenceError(f"{HEADER} occurs twice, as {format_value(value)} and {format_value(other)}")
    if not DIGITS.fullmatch(value):
        raise InferenceError(f"{HEADER} is {format_value(value)}, expected a number of bytes in decimal digits")
    length = int(value)
    if length > body_length:
        raise InferenceError(f"{HEADER} is {length}, but the body has {body_length} bytes")
    return length


class BinaryData:
    """The bytes after the JSON, consumed from front to back."""

    def __init__(self, data: memoryview) -> None:
        self._remaining = data

    def take(self, size: int) -> memoryview:
        """Return the next `size` bytes."""
        if size > len(self._remaining):
            raise InferenceError(
                f"parameters.binary_data_size is {size}, but {len(self._remaining)} bytes are left of the body"
            )
        taken, self._remaining = self._remaining[:size], self._remaining[size:]
        return taken

    def refuse_surplus(self) -> None:
        """Refuse bytes after the last tensor: some binary_data_size is wrong, so any tensor may be wrong."""
        if self._remaining:
            raise InferenceError(f"{len(self._remaining)} bytes of the body follow the binary data of the last input")
