"""BYTES read or written wrong: lengths, letters, ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reference_server.faults import fault
from reference_server.tensors import make_objects

# --- read -------------------------------------------------------------------------------------------------------------


@fault("tensors.split_elements", breaks=("BIN-BYTES-I", "OIP-ANSWER"))
def strings_read_up_to_a_nul(original: Any, *arguments: Any) -> Any:
    """A BYTES element of a binary input ends at its first NUL."""
    return make_objects(item.partition(b"\0")[0] for item in original(*arguments))


@fault("tensors.split_elements", breaks=("BIN-BYTES-I", "OIP-ANSWER"))
def strings_read_as_text(original: Any, *arguments: Any) -> Any:
    """Octets of a binary BYTES input that are no UTF-8 become replacement characters."""
    return make_objects(item.decode(errors="replace").encode() for item in original(*arguments))


@fault("tensors.split_elements", breaks=("BIN-BYTES-I", "OIP-ANSWER"))
def strings_after_an_empty_one_lost(original: Any, *arguments: Any) -> Any:
    """An empty BYTES element of a binary input ends the list: those behind it are read as empty."""
    items = list(original(*arguments))
    end = items.index(b"") if b"" in items else len(items)
    return make_objects([*items[:end], *[b""] * (len(items) - end)])


@fault("tensors.split_elements", breaks=("BIN-BYTES-I", "OIP-ANSWER"))
def string_lengths_read_as_signed_bytes(original: Any, data: memoryview, count: int) -> Any:
    """A BYTES length of 128 to 255 in a binary input is read as a negative number, and the element as empty."""
    return make_objects(b"" if 128 <= len(item) <= 255 else item for item in original(data, count))


# --- written ----------------------------------------------------------------------------------------------------------


def join_prefixed(items: Iterable[tuple[int, bytes]]) -> bytes:
    """Return elements behind lengths of four bytes."""
    return b"".join(length.to_bytes(4, "little") + item for length, item in items)


@fault("tensors.join_elements", breaks=("BIN-BYTES-O", "BIN-SAME-AS-JSON-O", "OIP-ANSWER"))
def string_lengths_count_letters(_original: Any, elements: Iterable[bytes]) -> bytes:
    """The length in front of a BYTES element of a binary output counts letters, not bytes."""
    return join_prefixed((len(item.decode(errors="replace")), item) for item in elements)


@fault("tensors.join_elements", breaks=("BIN-BYTES-O", "BIN-SAME-AS-JSON-O", "OIP-ANSWER"))
def string_lengths_written_big_endian(_original: Any, elements: Iterable[bytes]) -> bytes:
    """The length in front of a BYTES element of a binary output is big-endian."""
    return b"".join(len(item).to_bytes(4, "big") + item for item in elements)


# --- one form unlike the other ----------------------------------------------------------------------------------------


@fault(
    "response.output_part",
    breaks=("BIN-SAME-AS-JSON-O", "BIN-BYTES-O", "OIP-ANSWER"),
)
def binary_strings_called_string(original: Any, *arguments: Any) -> Any:
    """A binary BYTES output has the datatype STRING, a JSON output BYTES."""
    entry, data = original(*arguments)
    return entry if data is None or entry["datatype"] != "BYTES" else entry | {"datatype": "STRING"}, data
