"""BYTES read or written wrong: lengths, letters, ends."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.tensors import Tensor, make_objects

# --- read -------------------------------------------------------------------------------------------------------------


@fault("tensors.split_elements", breaks=("BIN-BYTES-I", "OIP-ANSWER"))
def strings_read_up_to_a_nul(original: Any, *arguments: Any) -> Any:
    """A BYTES element of a binary input ends at its first NUL."""
    return make_objects(item.partition(b"\0")[0] for item in original(*arguments))


@fault("tensors.split_elements", breaks=("BIN-BYTES-I", "OIP-ANSWER"))
def strings_read_as_text(original: Any, *arguments: Any) -> Any:
    """Octets of a binary BYTES input that are no UTF-8 become replacement characters."""
    return make_objects(item.decode(errors="replace").encode() for item in original(*arguments))


@fault("tensors.split_elements", breaks="BIN-BYTES-I")
def strings_read_without_outer_blanks(original: Any, *arguments: Any) -> Any:
    """BYTES elements of a binary input lose the blanks around them."""
    return make_objects(item.strip() for item in original(*arguments))


@fault("tensors.split_elements", breaks=("BIN-BYTES-I", "OIP-ANSWER"))
def strings_read_into_65535_bytes(original: Any, *arguments: Any) -> Any:
    """A BYTES element of a binary input is cut after 65535 bytes."""
    return make_objects(item[:65_535] for item in original(*arguments))


@fault("tensors.split_elements", breaks=("BIN-BYTES-I", "OIP-ANSWER"))
def strings_after_an_empty_one_lost(original: Any, *arguments: Any) -> Any:
    """An empty BYTES element of a binary input ends the list: those behind it are read as empty."""
    items = list(original(*arguments))
    end = items.index(b"") if b"" in items else len(items)
    return make_objects([*items[:end], *[b""] * (len(items) - end)])


@fault("tensors.split_elements", breaks=("BIN-BYTES-I", "OIP-ANSWER"))
def repeated_strings_read_once(original: Any, *arguments: Any) -> Any:
    """Every other BYTES element of a binary input is the first one, whose buffer they share."""
    items = original(*arguments)
    return make_objects(items[0] if len(item) == len(items[0]) else item for item in items)


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


@fault(
    "tensors.join_elements",
    breaks=("BIN-BYTES-O", "BIN-SAME-AS-JSON-O", "OIP-ANSWER"),
)
def strings_written_with_a_nul(_original: Any, elements: Iterable[bytes]) -> bytes:
    """BYTES elements of a binary output end in a NUL, which their length does not count."""
    return join_prefixed((len(item), item + b"\0") for item in elements)


@fault(
    "tensors.join_elements",
    breaks=("BIN-BYTES-O", "BIN-SAME-AS-JSON-O", "OIP-ANSWER"),
)
def strings_written_with_a_counted_nul(_original: Any, elements: Iterable[bytes]) -> bytes:
    """BYTES elements of a binary output end in a NUL, which their length counts."""
    return join_prefixed((len(item) + 1, item + b"\0") for item in elements)


@fault("tensors.join_elements", breaks=("BIN-BYTES-O", "BIN-SAME-AS-JSON-O", "OIP-ANSWER"))
def string_lengths_written_big_endian(_original: Any, elements: Iterable[bytes]) -> bytes:
    """The length in front of a BYTES element of a binary output is big-endian."""
    return b"".join(len(item).to_bytes(4, "big") + item for item in elements)


@fault("tensors.join_elements", breaks=("BIN-BYTES-O", "BIN-SAME-AS-JSON-O", "OIP-ANSWER"))
def strings_written_with_json_escapes(original: Any, elements: Iterable[bytes]) -> Any:
    """BYTES elements of a binary output have quotes, backslashes and controls escaped as JSON escapes them."""
    texts = (item.decode("utf-8", "surrogateescape") for item in elements)
    escaped = (json.dumps(text, ensure_ascii=False)[1:-1] for text in texts)
    return original([text.encode("utf-8", "surrogateescape") for text in escaped])


@fault("tensors.join_elements", breaks=("BIN-BYTES-O", "BIN-SAME-AS-JSON-O", "OIP-ANSWER"))
def strings_written_in_latin_1(original: Any, elements: Iterable[bytes]) -> Any:
    """BYTES elements of a binary output that are UTF-8 are converted to Latin-1."""
    return original([item.decode(errors="replace").encode("latin-1", "replace") for item in elements])


@fault("tensors.join_elements", breaks=("BIN-BYTES-O", "OIP-ANSWER"))
def string_lengths_written_in_two_bytes(_original: Any, elements: Iterable[bytes]) -> bytes:
    """The length in front of a BYTES element of a binary output is that modulo 2^16."""
    return join_prefixed((len(item) % 2**16, item) for item in elements)


@fault("tensors.join_elements", breaks="BIN-BYTES-O", large=True)
def strings_of_a_mebibyte_lose_their_last_byte(original: Any, elements: Iterable[bytes]) -> Any:
    """A BYTES element of a binary output is cut after 1 MiB less one byte."""
    return original([item[: 2**20 - 1] for item in elements])


@fault(
    "tensors.split_elements",
    "tensors.join_elements",
    breaks=(
        "BIN-BYTES-I",
        "BIN-BYTES-O",
        "BIN-SAME-AS-JSON-I",
        "BIN-SAME-AS-JSON-O",
        "BIN-BYTES-MISFRAMED",
        "OIP-ANSWER",
    ),
)
def string_lengths_of_eight_bytes_both_ways(_original: Any, given: Any, count: int | None = None) -> Any:
    """The length in front of a BYTES element has eight bytes, on both sides."""
    if count is None:
        return b"".join(len(item).to_bytes(8, "little") + item for item in given)
    data, items = bytes(given), []
    for _ in range(count):
        end = 8 + int.from_bytes(data[:8], "little")
        if max(end, 8) > len(data):
            raise InferenceError("an element ends past the data")
        items.append(data[8:end])
        data = data[end:]
    if data:
        raise InferenceError("bytes are left over")
    return make_objects(items)


# --- one form unlike the other ----------------------------------------------------------------------------------------


@fault("tensors.decode_json", breaks=("BIN-SAME-AS-JSON-I", "OIP-VALUE", "OIP-ANSWER"))
def json_strings_read_as_ascii(original: Any, *arguments: Any) -> Tensor:
    """Letters beyond ASCII in a JSON input become question marks, those of a binary input are kept."""
    tensor: Tensor = original(*arguments)
    if tensor.datatype != "BYTES":
        return tensor
    return replace(tensor, elements=make_objects(x.decode().encode("ascii", "replace") for x in tensor.elements))


@fault("response.output_part", breaks=("BIN-SAME-AS-JSON-O", "OIP-ANSWER"))
def binary_string_matrices_stated_flat(original: Any, *arguments: Any) -> Any:
    """A binary BYTES output states the one dimension of its flat elements, a JSON output its shape."""
    entry, data = original(*arguments)
    flat = data is not None and entry["datatype"] == "BYTES"
    return entry | {"shape": [int(np.prod(entry["shape"]))]} if flat else entry, data


@fault(
    "response.output_part",
    breaks=("BIN-SAME-AS-JSON-O", "BIN-BYTES-O", "OIP-ANSWER"),
)
def binary_strings_called_string(original: Any, *arguments: Any) -> Any:
    """A binary BYTES output has the datatype STRING, a JSON output BYTES."""
    entry, data = original(*arguments)
    return entry if data is None or entry["datatype"] != "BYTES" else entry | {"datatype": "STRING"}, data
