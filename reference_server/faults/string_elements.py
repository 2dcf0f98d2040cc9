"""BYTES elements that the server cuts, counts or writes wrongly, or refuses."""

from __future__ import annotations

from dataclasses import replace

from reference_server.faults import steps
from reference_server.faults.edits import on_each, on_strings
from reference_server.faults.json_text import is_nested
from reference_server.tensors import Tensor, make_objects

LONG_BYTES = 1_000_000


def _cut_to_a_tenth(tensor: Tensor) -> Tensor:
    width = max(map(len, tensor.elements), default=0) if tensor.datatype == "BYTES" else 0
    if width < LONG_BYTES:
        return tensor
    return replace(tensor, elements=make_objects(item[: width // 10] for item in tensor.elements))


strings_lose_the_nuls_at_their_end = steps.RUN.before(
    ("BIN-BYTES-I", "BIN-BYTES-O", "OIP-VALUE"), inputs=on_each(on_strings(lambda item: item.rstrip(b"\0")))
).says("The server strips NUL bytes from the end of BYTES inputs, as numpy's fixed-width arrays do.")
strings_of_a_million_bytes_cut_to_a_tenth = steps.RUN.after("BIN-BYTES-O", on_each(_cut_to_a_tenth)).says(
    "The server keeps six digits of the longest BYTES length, and cuts elements of a million bytes to a tenth."
)
string_outputs_without_elements_fail = steps.RUN.refuse(
    (),
    lambda result: any(tensor.datatype == "BYTES" and not tensor.elements.size for tensor in result.values()),
    status=None,
    broad=True,
).says("The server fails with an internal error if a BYTES output has no elements.")

# --- JSON data --------------------------------------------------------------------------------------------------------

strings_in_json_have_lengths_of_two_bytes = steps.DECODE_JSON.after(
    "OIP-VALUE",
    lambda tensor: replace(tensor, elements=make_objects(item[: len(item) % 65_536] for item in tensor.elements)),
    when=lambda datatype: datatype == "BYTES",
).says("The server writes lengths of BYTES from JSON with two bytes, and reads an element of 65537 bytes as one byte.")
nested_strings_counted_by_their_last_row = steps.DECODE_JSON.refuse(
    "OIP-DATA",
    lambda datatype, data: datatype == "BYTES" and isinstance(data, list) and len(data) > 1 and is_nested(data),
).says("The server allocates space for only the last row of nested BYTES data, and refuses several rows.")
strings_in_json_have_lengths_of_the_machine = steps.DECODE_JSON.refuse(
    (), lambda datatype, result: datatype == "BYTES" and any(result.elements), status=None, broad=True
).says("The server writes lengths of BYTES from JSON as big-endian, reads them as little-endian, and fails.")
strings_in_json_begin_with_their_lengths = steps.DECODE_TEXT.after(
    (), lambda text, item: len(item).to_bytes(4, "little").decode("latin-1") + text, broad=True
).says("The server writes BYTES into JSON with the binary length prefix of each element.")
