"""Gaps in binary data, between elements, between rows and between tensors, where there are none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from reference_server.datatypes import NUMPY
from reference_server.faults import fault
from reference_server.faults.element_layout import split_framed
from reference_server.response import Octets
from reference_server.tensors import Tensor, make_objects


@fault("framing.BinaryData.take", breaks=("BIN-PACKED-I", "BIN-BODY-LONG", "BIN-SIZE-I", "OIP-ANSWER"))
def inputs_expected_at_multiples_of_four(original: Any, self: Any, size: int) -> memoryview:
    """A binary input is expected at the next multiple of four bytes behind the one before."""
    taken: memoryview = original(self, size)
    self._left = self._left[-size % 4 :]
    return taken


@fault("tensors.decode_binary", breaks=("BIN-PACKED-I", "OIP-ANSWER"))
def rows_expected_at_multiples_of_four(
    original: Any, datatype: str, shape: tuple[int, ...], data: memoryview
) -> Tensor:
    """Each row of a binary input is expected at the next multiple of four bytes; what is missing at the end is zero."""
    length = 0 if datatype == "BYTES" or len(shape) < 2 else shape[-1] * NUMPY[datatype].itemsize
    if length % 4 == 0:
        return cast(Tensor, original(datatype, shape, data))
    stride = length + -length % 4
    starts = range(0, len(data) // length * stride, stride)
    rows = [bytes(data[start : start + length]).ljust(length, b"\0") for start in starts]
    return cast(Tensor, original(datatype, shape, memoryview(b"".join(rows))))


@fault("response.join", breaks=("BIN-PACKED-O", "BIN-BODY-O", "OIP-ANSWER"))
def outputs_written_at_multiples_of_four(original: Any, head: bytes, binary: Sequence[Octets]) -> Any:
    """A binary output begins at the next multiple of four bytes behind the one before."""
    padded = [bytes(data) + bytes(-len(data) % 4) for data in binary[:-1]]
    return original(head, [*padded, binary[-1]])


@fault("tensors.encode_binary", breaks=("BIN-PACKED-O", "BIN-SIZE-O", "OIP-ANSWER"))
def rows_written_at_multiples_of_16(original: Any, tensor: Tensor) -> Any:
    """Each row of a binary output of rank 2 is padded to a multiple of 16 bytes, which the size counts."""
    if len(tensor.shape) != 2 or tensor.datatype == "BYTES":
        return original(tensor)
    rows = tensor.elements.reshape(tensor.shape)
    return b"".join(row.tobytes() + bytes(-row.nbytes % 16) for row in rows)


@fault(
    "tensors.split_elements",
    breaks=("BIN-PACKED-I", "BIN-BYTES-I", "BIN-BYTES-MISFRAMED", "BIN-SAME-AS-JSON-I", "OIP-ANSWER"),
)
def strings_expected_at_multiples_of_four(_original: Any, data: memoryview, count: int) -> Any:
    """Each BYTES element of a binary input is expected at the next multiple of four bytes."""
    return make_objects(split_framed(bytes(data), count, unit=4))


@fault(
    "tensors.join_elements",
    breaks=("BIN-PACKED-O", "BIN-BYTES-O", "BIN-SAME-AS-JSON-O", "OIP-ANSWER"),
)
def strings_written_at_multiples_of_four(_original: Any, elements: Iterable[bytes]) -> bytes:
    """Each BYTES element of a binary output is padded to a multiple of four bytes, which its length does not count."""
    return b"".join(len(item).to_bytes(4, "little") + item + bytes(-len(item) % 4) for item in elements)
