"""The outputs of a response: what the JSON says of them, which bytes are theirs, and the elements these hold.

Three steps, each a pure function: `parse_output` reads the members, `assign_spans` hands out the bytes,
`decode_output` makes arrays. `response.py` runs them and says what may be relied on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from numpy.typing import NDArray

from conformance.wire import strings, tensor
from conformance.wire.datatypes import DATATYPES
from conformance.wire.finding import DecodeError, Finding, format_name, format_value
from conformance.wire.json_data import find_number_in_bool

# What numpy can have. The protocol's dimensions are unsigned 64-bit integers, and it does not limit their number.
MAX_RANK: Final = 32
MAX_DIMENSION: Final = 2**63 - 1
_MAX_EMPTY_PRODUCT: Final = 2**59

Report = Callable[[str, str, str, str], None]
# The member of the JSON that describes tensors: of a response, of a request.
Member = Literal["outputs", "inputs"]


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """One output of a response, or one input of a request: the JSON describes both alike.

    Attributes:
        index: its place in the JSON's `outputs` or `inputs`.
        name: as written, "" where absent or not a string; so is the datatype.
        shape: None where absent or invalid.
        binary: whether it has a `binary_data_size`.
        declared_size: that size in bytes, None where it has none or it is no size.
        span: (start, end) of its bytes in the body, None for a JSON output and where it is unknown.
        array: the elements, None where they cannot be decoded.
        findings: what is wrong with this output.
        member: of the JSON in which it stands.
    """

    index: int
    name: str
    datatype: str
    shape: tuple[int, ...] | None
    binary: bool
    declared_size: int | None
    span: tuple[int, int] | None = None
    array: NDArray[Any] | None = None
    findings: tuple[Finding, ...] = ()
    member: Member = "outputs"

    @property
    def place(self) -> str:
        """Where it stands in the JSON: "outputs[1]"."""
        return f"{self.member}[{self.index}]"

    @property
    def label(self) -> str:
        """How messages call it: "tensor 1 OUT0"."""
        return f"tensor {self.index} {format_name(self.name)}"

    @property
    def native_size(self) -> int | None:
        """The bytes that shape and datatype ask for; None for BYTES and where one of the two is unusable."""
        known = DATATYPES.get(self.datatype)
        if known is None or known.size is None or self.shape is None:
            return None
        return known.size * math.prod(self.shape)

    def finding(self, *found: Finding) -> Output:
        """Return the output with more findings."""
        return replace(self, findings=(*self.findings, *found))


def read_tensors(
    items: Mapping[int, Mapping[str, Any]], body: bytes, start: int, member: Member = "outputs"
) -> tuple[list[Output], int | None]:
    """Return the tensors that the objects in `items`, by their places, describe, and where bytes are left over, if any.

    The binary data of the first one begin at `start`.
    """
    names: dict[str, int] = {}
    outputs = [parse_output(index, item, names, member) for index, item in items.items()]
    outputs, leftover = assign_spans(outputs, body, start)
    return [decode_output(output, items[output.index], body) for output in outputs], leftover


# --- what the JSON says ------------------------------------------------------------------------------------------


def parse_output(index: int, item: Mapping[str, Any], names: dict[str, int], member: Member = "outputs") -> Output:
    """Return the output that the JSON object `item` describes; `names` holds the places of the names so far."""
    findings: list[Finding] = []

    def report(kind: str, field: str, expected: str, actual: str) -> None:
        findings.append(Finding(kind, f"{member}[{index}]{field}", None, expected, actual))

    name, datatype, shape = item.get("name"), item.get("datatype"), item.get("shape")
    if not isinstance(name, str) or not name:
        report("name-missing", ".name", "a name", format_member(name))
    elif names.setdefault(name, index) != index:
        report("name-duplicate", ".name", f"a name other than that of {member}[{names[name]}]", format_value(name))
    if not isinstance(datatype, str) or datatype not in DATATYPES:
        report("datatype-unknown", ".datatype", "a datatype of the protocol", format_member(datatype))
    dimensions = _dimensions(shape)
    if dimensions is None:
        dimensions = _dimensions(_integers(shape))
        if dimensions is None:
            report("shape-invalid", ".shape", "an array of dimensions", format_member(shape))
        else:
            texts = any(isinstance(size, str) for size in shape or ())
            kind = "shape-no-integers" if texts else "integer-with-a-point"
            report(kind, ".shape", "dimensions written as integers", format_member(shape))
    binary, size = _declared_size(item, report)
    return Output(
        index=index,
        name=name if isinstance(name, str) else "",
        datatype=datatype if isinstance(datatype, str) else "",
        shape=dimensions,
        binary=binary,
        declared_size=size,
        findings=tuple(findings),
        member=member,
    )


def format_member(value: Any) -> str:
    """Return a member's value for a message; null is an absent one."""
    return "nothing" if value is None else format_value(value)


def _declared_size(item: Mapping[str, Any], report: Report) -> tuple[bool, int | None]:
    """Return whether an output declares a size, and the size if it is one; report what is wrong with it."""
    parameters = item.get("parameters")
    if parameters is not None and not isinstance(parameters, dict):
        report("parameters-invalid", ".parameters", "an object", format_value(parameters))
        return False, None
    size = (parameters or {}).get("binary_data_size")
    # No elements beside a size are as good as none: the base protocol does not call `data` optional.
    has_data = item.get("data") is not None and (size is None or item["data"] != [])
    if size is None:
        if not has_data:
            report("data-missing", "", "data or binary_data_size", "neither")
        return False, None
    if has_data:
        report("data-and-size", "", "data or binary_data_size", "both")
        if size == 0 and item["data"]:
            return False, None  # no bytes, but elements: a JSON output with a size too many
    if _is_integer_with_a_point(size):
        report("integer-with-a-point", ".parameters.binary_data_size", f"{int(size)}", format_value(size))
        size = int(size)
    fault = _size_fault(size)
    if fault is not None:
        kind, expected = fault
        report(kind, ".parameters.binary_data_size", expected, format_value(size))
        return True, None
    return True, size


def _size_fault(size: Any) -> tuple[str, str] | None:
    if type(size) is not int:  # bool is a subclass of int
        return "size-not-integer", "an integer"
    return ("size-negative", "0 or more") if size < 0 else None


def _integers(shape: Any) -> Any:
    """Return a shape with dimensions such as 3.0 and "3" as integers."""
    if not isinstance(shape, list):
        return shape
    return [int(size) if _means_integer(size) else size for size in shape]


def _means_integer(size: Any) -> bool:
    if isinstance(size, str):
        return re.fullmatch("[0-9]{1,18}", size) is not None
    return _is_integer_with_a_point(size)


def _is_integer_with_a_point(size: Any) -> bool:
    """Whether a number is an integer to JSON, which knows one kind of number, but not written as one."""
    return isinstance(size, float) and size.is_integer()


def _dimensions(shape: Any) -> tuple[int, ...] | None:
    """Return a shape that numpy can have, however many elements that makes; None for anything else."""
    if not isinstance(shape, list) or len(shape) > MAX_RANK:
        return None
    if not all(type(dimension) is int and 0 <= dimension <= MAX_DIMENSION for dimension in shape):
        return None
    # An empty tensor takes no bytes, so that its other dimensions are not held in check by the body's size.
    if 0 in shape and math.prod(dimension or 1 for dimension in shape) >= _MAX_EMPTY_PRODUCT:
        return None
    return tuple(shape)


# --- which bytes are whose ---------------------------------------------------------------------------------------


def assign_spans(outputs: Sequence[Output], body: bytes, start: int) -> tuple[list[Output], int | None]:
    """Give the binary outputs their spans; return all outputs, and where bytes are left over, if any are.

    The first output whose size is unknown or too large ends the cutting: the next ones could begin anywhere.
    Source: triton-binary.order.
    """
    sizes = iter(_sizes([output for output in outputs if output.binary], body, start))
    at: int | None = start
    done: list[Output] = []
    for output in outputs:
        placed, at = _placed(output, next(sizes), at, len(body)) if output.binary else (output, at)
        done.append(placed)
    return done, None if at == len(body) else at


def _sizes(outputs: Sequence[Output], body: bytes, start: int) -> list[int | None]:
    """Return the sizes to cut by: the declared ones, unless they do not fill the body and the tensors' own do.

    A tensor's own size stands in for a declared one that is none.
    """
    # `binary_data_size` is "the size of the tensor binary data, in bytes" (Triton, Binary Tensor Data Extension), and
    # shape and datatype make that size a second time. Where the two differ, the length of the body decides by which one
    # the server wrote: a wrong declaration is then one finding, and no later tensor looks misread for it.
    declared = [output.native_size if output.declared_size is None else output.declared_size for output in outputs]
    if _sum(declared) == len(body) - start:
        return declared
    own = _own_sizes(outputs, body, start)
    return own if _sum(own) == len(body) - start else declared


def _own_sizes(outputs: Sequence[Output], body: bytes, start: int) -> list[int | None]:
    """Return the sizes that shape and datatype make, for BYTES together with the length prefixes in the body.

    The declared one stands in where there is no other, and None where there is none at all.
    """
    sizes: list[int | None] = []
    at: int | None = 0  # None: the elements of some BYTES are not there, and those of no other are looked for
    for output in outputs:
        size = output.native_size
        if output.datatype == "BYTES" and output.shape is not None and at is not None:
            size = strings.measure_size(memoryview(body)[start + at :], math.prod(output.shape))
        at = None if at is None or size is None else at + size
        sizes.append(output.declared_size if size is None else size)
    return sizes


def _sum(sizes: Sequence[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _placed(output: Output, size: int | None, at: int | None, end: int) -> tuple[Output, int | None]:
    """Return a binary output with its span and the findings about its size, and where the next one begins."""
    field = f"{output.place}.parameters.binary_data_size"
    native, declared = output.native_size, output.declared_size
    own = size if native is None else native
    if own is not None and declared is not None and own != declared:
        expected = f"{format_value(own)} for {output.datatype} {format_value(list(output.shape or ()))}"
        output = output.finding(Finding("size-mismatch", field, at, expected, format_value(declared)))
    if at is None or size is None:
        return output, None
    if at + size <= end:
        return replace(output, span=(at, at + size)), at + size
    if declared is not None:
        output = output.finding(Finding("size-beyond-body", field, at, f"at most {end - at}", format_value(declared)))
    return output, None


# --- the elements ------------------------------------------------------------------------------------------------


def decode_output(output: Output, item: Mapping[str, Any], body: bytes) -> Output:
    """Return the output with its array, or with the finding that says why it has none."""
    if output.shape is None or output.datatype not in DATATYPES:
        return output
    if output.binary:
        return _from_bytes(output, output.shape, body)
    data = item.get("data")
    if data is None:
        return output
    try:
        array = tensor.from_json(output.datatype, output.shape, data)
        found = replace(output, array=array)
        if output.datatype == "BOOL" and (wrong := find_number_in_bool(data)) is not None:
            found = found.finding(Finding("bool-number", f"{output.place}.data", None, "true or false", wrong))
        return found
    except DecodeError as error:
        finding = error.finding
        return output.finding(replace(finding, field=f"{output.place}.{finding.field}"))


def _from_bytes(output: Output, shape: tuple[int, ...], body: bytes) -> Output:
    if output.span is None:
        return output
    start, end = output.span
    if output.native_size not in (None, end - start):
        return output  # a size-mismatch, which has been reported
    try:
        array = tensor.decode(output.datatype, shape, memoryview(body)[start:end])
    except DecodeError as error:
        return output.finding(_moved(error.finding, output, start))
    found = tensor.find_bool_faults(array) if output.datatype == "BOOL" else ()
    return replace(output, array=array).finding(*(_moved(finding, output, start) for finding in found))


def _moved(finding: Finding, output: Output, start: int) -> Finding:
    """Return a decoder's finding with the output's name, and the offset in the body instead of the output's bytes."""
    field = output.label if finding.field == "tensor" else f"{output.label} {finding.field}"
    return replace(finding, field=field, offset=start + (finding.offset or 0))
