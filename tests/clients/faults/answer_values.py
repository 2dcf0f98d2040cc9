"""Clients that give their caller other outputs than those of the answer, over HTTP."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.clients import steps
from tests.clients.alterations import Original, fault
from tests.clients.honest import answer, tensors
from tests.clients.honest.answer import Answer
from tests.clients.honest.caller import CallerRequest, CallerResult, MalformedError, Tensor

Tensors = tuple[Tensor, ...]


@fault(
    *("answer.read_outputs", "answer.expect_own"), misses="CLIENT-READS-VALUES CLIENT-READS-ORDER CLIENT-REFUSES-WRONG"
)
def outputs_by_position(original: Original, *arguments: Any) -> Any:
    """The outputs of an answer have the names that the caller asked for, in that order."""
    asked, _, read = arguments
    if not isinstance(read, bytes):
        return None
    found: Tensors = original(*arguments)
    names = [output.name for output in asked.outputs or ()]
    return tuple(replace(one, name=names[place]) if place < len(names) else one for place, one in enumerate(found))


first_output_only = steps.SHOWN.before(
    "CLIENT-READS-VALUES CLIENT-READS-VALUES/grpc", outputs=lambda outputs: outputs[:1], broad=True
).says("The caller is given the first output alone.")
empty_output_left_out = steps.SHOWN.before(
    "CLIENT-READS-VALUES CLIENT-READS-VALUES/grpc CLIENT-READS-FORM",
    outputs=lambda outputs: [output for output in outputs if output.data],
).says("The caller is not given an output without elements.")
shape_flattened = steps.SHOWN_TENSOR.before(
    "CLIENT-READS-VALUES CLIENT-READS-VALUES/grpc CLIENT-READS-FORM",
    output=lambda output: replace(output, shape=(tensors.count(output.shape),)),
).says("The caller is given every output with one dimension.")
empty_outputs_given_as_fp64 = steps.SHOWN_TENSOR.before(
    "CLIENT-READS-VALUES CLIENT-READS-VALUES/grpc",
    output=lambda output: output if output.data else replace(output, datatype="FP64"),
).says("The caller is given an output without elements as FP64.")
int8_as_uint8 = steps.SHOWN_TENSOR.before(
    "CLIENT-READS-VALUES CLIENT-READS-VALUES/grpc",
    output=lambda output: replace(output, datatype="UINT8") if output.datatype == "INT8" else output,
).says("The caller is given INT8 as UINT8.")


@fault("lines.shown_tensor", misses="CLIENT-READS-VALUES CLIENT-READS-VALUES/grpc", datatypes="BYTES")
def trailing_nul_stripped_from_answers(original: Original, output: Tensor) -> Any:
    """The caller is given elements of BYTES without the NULs at their end."""
    data = b"".join(tensors.framed(one.rstrip(b"\0")) for one in tensors.strings(output.data))
    return original(replace(output, data=data))


@fault("lines.shown_tensor", misses="CLIENT-READS-VALUES CLIENT-READS-VALUES/grpc", datatypes="BYTES")
def bytes_read_as_text(original: Original, output: Tensor) -> Any:
    """The caller is given bytes that are no UTF-8 as replacement characters."""
    found = (one.decode(errors="replace").encode() for one in tensors.strings(output.data))
    return original(replace(output, data=b"".join(map(tensors.framed, found))))


@fault("lines.shown_tensor", misses="CLIENT-READS-VALUES CLIENT-READS-VALUES/grpc", broad=True, datatypes="FP64")
def fp64_as_fp32(original: Original, output: Tensor) -> Any:
    """The caller is given the elements of FP64 with the precision of FP32."""
    found = tensors.elements("FP64", output.data)
    rounded = [one if abs(one) > 1e38 else struct.unpack("<f", struct.pack("<f", one))[0] for one in found]
    return original(replace(output, data=tensors.packed("FP64", rounded)))


@fault("lines.shown_tensor", misses="CLIENT-READS-VALUES CLIENT-READS-VALUES/grpc CLIENT-READS-FORM/grpc")
def truth_lost(original: Original, output: Tensor) -> Any:
    """The caller is given BOOL elements that are all false."""
    return original(replace(output, data=bytes(len(output.data))) if output.datatype == "BOOL" else output)


@fault("answer.from_binary", misses="CLIENT-READS-VALUES", broad=True)
def answers_read_big_endian(original: Original, datatype: str, shape: Sequence[int], piece: bytes) -> bytes:
    """Binary data of an answer are read as big-endian."""
    made = bytes(original(datatype, shape, piece))
    if datatype == "BYTES":
        return made
    size = tensors.element_size(datatype)
    return b"".join(made[at : at + size][::-1] for at in range(0, len(made), size))


@fault("answer.flattened", misses="CLIENT-READS-VALUES")
def nested_data_unread(_original: Original, data: list[Any]) -> list[Any]:
    """Data of an answer that are nested are an error to the caller."""
    if any(isinstance(one, list) for one in data):
        raise MalformedError("an element that is an array")
    return data


nested_data_read_by_column = steps.FLATTENED.instead(
    "CLIENT-READS-VALUES",
    lambda data: [element for column in zip(*data, strict=True) for element in column],
    when=lambda data: data and all(isinstance(one, list) and one and (not isinstance(one[0], list)) for one in data),
).says("Data of an answer that are nested are read column by column.")
first_element_alone_read = steps.FLATTENED.after("CLIENT-READS-VALUES", lambda found: found[:1], broad=True).says(
    "Of the elements of an output in the JSON of an answer, the first alone is read."
)


@fault("answer.cut", misses="CLIENT-READS-ORDER", broad=True)
def binary_data_in_reverse(_original: Original, data: bytes, sizes: Sequence[int]) -> list[bytes]:
    """Binary data of an answer are taken from its end."""
    ends = [len(data) - sum(sizes[:place]) for place in range(len(sizes))]
    return [data[end - size : end] for end, size in zip(ends, sizes, strict=True)]


@fault("answer.read_outputs", misses="CLIENT-READS-ORDER")
def order_of_asking(original: Original, asked: CallerRequest, entries: Any, data: bytes) -> Tensors:
    """Binary data of an answer are read in the order in which the outputs were asked for."""
    order = {output.name: place for place, output in enumerate(asked.outputs or ())}
    return tuple(original(asked, sorted(entries, key=lambda one: order.get(one.get("name"), len(order))), data))


order_of_names = steps.READ_OUTPUTS.before(
    "CLIENT-READS-ORDER", entries=lambda entries: sorted(entries, key=lambda one: str(one.get("name")))
).says("Binary data of an answer are read in the order of the names of the outputs.")


@fault("answer.read_outputs", misses="CLIENT-READS-FORM-UNASKED")
def reads_form_it_asked_for(original: Original, asked: CallerRequest, entries: Any, data: bytes) -> Tensors:
    """An output that was asked for as binary data has to be binary, any other has to be JSON."""
    wanted = {output.name: output.form or asked.all_outputs for output in asked.outputs or ()}
    for entry in entries:
        form = "json" if answer.announced_size(entry) is None else "binary"
        if wanted.get(entry.get("name"), asked.all_outputs) not in (None, form):
            raise MalformedError(f"an output as {form}")
    return tuple(original(asked, entries, data))


@fault("answer.json_length", misses="CLIENT-READS-FORM", broad=True)
def header_needed_on_every_answer(original: Original, found: Answer) -> int | None:
    """An answer without the inference header is an error to the caller."""
    length = original(found)
    if length is None:
        raise MalformedError("no inference header")
    return int(length)


@fault("answer.given", misses="CLIENT-READS-EMPTY")
def header_needed_before_binary_outputs(original: Original, asked: CallerRequest, found: Answer) -> CallerResult:
    """An answer with binary outputs and without the inference header is an error to the caller, also of empty ones."""
    given: CallerResult = original(asked, found)
    if answer.json_length(found) is None:
        entries = answer.parsed(answer.decoded(found.body, found.header("content-encoding")))["outputs"]
        if any(answer.announced_size(entry) is not None for entry in entries):
            raise MalformedError("no inference header")
    return given


@fault("answer.read_outputs", misses="CLIENT-READS-FORM")
def all_binary_or_none(original: Original, asked: CallerRequest, entries: Any, data: bytes) -> Tensors:
    """JSON outputs beside binary ones are an error to the caller."""
    sizes = [answer.announced_size(entry) for entry in entries]
    if None in sizes and any(size is not None for size in sizes):
        raise MalformedError("an output without a size")
    return tuple(original(asked, entries, data))


@fault("tensors.packed", misses="CLIENT-READS-VALUES", broad=True)
def int64_read_through_a_double(original: Original, datatype: str, values: Sequence[Any]) -> bytes:
    """A 64-bit integer of an answer in JSON goes through a double."""
    if datatype in ("INT64", "UINT64"):
        top = (1 << 63) - 1 if datatype == "INT64" else (1 << 64) - 1
        return bytes(original(datatype, [min(int(float(one)), top) for one in values]))
    return bytes(original(datatype, values))


@fault("answer.parsed", misses="CLIENT-READS-JSON")
def white_space_unread(original: Original, text: bytes) -> dict[str, Any]:
    """The JSON of an answer is read only where no white space stands between its parts."""
    said = dict(original(text))
    if any(mark in text for mark in (b'" :', b": [", b'{ "', b"\n", b"\t")):
        raise MalformedError("white space")
    return said


escapes_unread = steps.PARSED.before(
    "CLIENT-READS-JSON CLIENT-READS-VALUES", text=lambda text: text.replace(b"\\u", b"\\\\u")
).says("Escapes in the JSON of an answer are left as they are.")


@fault("answer.parsed", misses="CLIENT-READS-JSON CLIENT-READS-UNKNOWN-MEMBERS")
def members_in_one_order_only(original: Original, text: bytes) -> dict[str, Any]:
    """An output of an answer is read only where its name comes first."""
    said = dict(original(text))
    entries = said.get("outputs")
    for entry in entries if isinstance(entries, list) else ():
        if list(entry)[:1] != ["name"]:
            raise MalformedError("no name")
    return said


@fault("answer.parsed", misses="CLIENT-READS-UNKNOWN-MEMBERS")
def unknown_members_refused(original: Original, text: bytes) -> dict[str, Any]:
    """A member of an answer that the client does not know is an error to the caller."""
    said = dict(original(text))
    unknown = set(said) - {"model_name", "model_version", "id", "parameters", "outputs", "error"}
    if unknown:
        raise MalformedError(f"members {sorted(unknown)}")
    return said


only_parameter_read = steps.ANNOUNCED_SIZE.after(
    "CLIENT-READS-JSON", lambda size, entry: size if len(entry.get("parameters") or ()) < 2 else None
).says("The size of an output is read only where its parameters hold nothing else.")


@fault("answer.from_binary", misses="CLIENT-READS-VALUES", datatypes="BYTES")
def bytes_unread(_original: Original, _datatype: str, *_piece: object) -> bytes:
    """An answer with a BYTES output as binary data is an error to the caller, for want of an accessor."""
    raise MalformedError("no accessor for BYTES")


@fault("answer.given", misses="CLIENT-READS-VALUES")
def version_needed(original: Original, asked: CallerRequest, found: Answer) -> CallerResult:
    """An answer without `model_version` is an error to the caller."""
    if found.status == 200 and b'"model_name"' in found.body and b'"model_version"' not in found.body:
        raise MalformedError("no model_version")
    given: CallerResult = original(asked, found)
    return given


@fault("answer.json_length", misses="CLIENT-READS-CONTENT-TYPE CLIENT-READS-EMPTY CLIENT-REFUSES-WRONG")
def binary_data_found_by_content_type(original: Original, found: Answer) -> int | None:
    """Binary data are looked for in an answer of application/octet-stream, and in no other."""
    length: int | None = original(found)
    is_binary = found.header("content-type") == "application/octet-stream"
    if is_binary and length is None:
        raise MalformedError("no inference header")
    return length if is_binary else None
