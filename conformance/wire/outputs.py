"""Parses the tensors of a response or request: their JSON objects, their bytes, and their elements.

`parse_output` reads the JSON object of a tensor, `assign_spans` finds its bytes in the body, and `decode_output`
converts the bytes to an array. `read_tensors` calls all three. `response` and `parsed_request` use these functions.
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
from conformance.wire.json_data import find_number_in_bool, read_integer_strings

# Limits of numpy. The dimensions of the protocol are unsigned 64-bit integers, and their number is not limited.
MAX_RANK: Final = 32
MAX_DIMENSION: Final = 2**63 - 1
_MAX_EMPTY_PRODUCT: Final = 2**59

Report = Callable[[str, str, str, str], None]
# The JSON member that describes tensors: of a response or of a request.
Member = Literal["outputs", "inputs"]


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """One output of a response, or one input of a request; their JSON objects have the same members.

    Attributes:
        index: the index of the tensor in `outputs` or `inputs` of the JSON.
        name: the name as written; "" if absent or not a string.
        datatype: the datatype as written; "" if absent or not a string.
        shape: the dimensions; None if absent or invalid.
        binary: whether the JSON object has a `binary_data_size`; over gRPC, whether the tensor is in raw contents.
        declared_size: the `binary_data_size` in bytes; None if absent or invalid.
        span: (start, end) of the tensor's bytes in the body; None if the tensor is JSON, or if its bytes are unknown.
        array: the elements; None if they cannot be decoded.
        member: the JSON member that lists the tensor: `outputs` or `inputs`.
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
    def json_path(self) -> str:
        """The path of the tensor's object in the JSON, such as "outputs[1]"."""
        return f"{self.member}[{self.index}]"

    @property
    def label(self) -> str:
        """The tensor in words for messages, such as "tensor 1 OUT0"."""
        return f"tensor {self.index} {format_name(self.name)}"

    @property
    def native_size(self) -> int | None:
        """The size in bytes that follows from shape and datatype; None for BYTES, or if either is invalid."""
        known = DATATYPES.get(self.datatype)
        if known is None or known.size is None or self.shape is None:
            return None
        return known.size * math.prod(self.shape)

    def with_findings(self, *found: Finding) -> Output:
        """Return the output with more findings."""
        return replace(self, findings=(*self.findings, *found))


def read_tensors(
    items: Mapping[int, Mapping[str, Any]], body: bytes, start: int, member: Member = "outputs"
) -> tuple[list[Output], int | None]:
    """Parse and decode the tensors of a body.

    `items`: index -> the JSON object of the tensor.

    Returns:
        The tensors, and the offset of the bytes after the last tensor; None if there are no such bytes.
    """
    names: dict[str, int] = {}
    outputs = [parse_output(index, item, names, member) for index, item in items.items()]
    outputs, surplus_start = assign_spans(outputs, body, start)
    return [decode_output(output, items[output.index], body) for output in outputs], surplus_start


# --- the JSON description -----------------------------------------------------------------------------------------


def parse_output(index: int, item: Mapping[str, Any], names: dict[str, int], member: Member = "outputs") -> Output:
    """Parse the JSON object `item` of a tensor; `names` maps the names of earlier tensors to their indices."""
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
    dimensions = _parse_shape(shape)
    if dimensions is None:
        dimensions = _parse_shape(_convert_dimensions(shape))
        if dimensions is None:
            report("shape-invalid", ".shape", "an array of dimensions", format_member(shape))
        else:
            texts = any(isinstance(size, str) for size in shape or ())
            kind = "shape-no-integers" if texts else "integer-with-a-point"
            report(kind, ".shape", "dimensions written as integers", format_member(shape))
    binary, size = _parse_declared_size(item, report)
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
    """Format a JSON member's value for a message; null, which counts as absent, becomes "nothing"."""
    return "nothing" if value is None else format_value(value)


def _parse_declared_size(item: Mapping[str, Any], report: Report) -> tuple[bool, int | None]:
    """Return whether a tensor is binary, and its `binary_data_size`, or None if absent or invalid; report faults."""
    parameters = item.get("parameters")
    if parameters is not None and not isinstance(parameters, dict):
        report("parameters-invalid", ".parameters", "an object", format_value(parameters))
        return False, None
    size = (parameters or {}).get("binary_data_size")
    # Empty `data` next to a size counts as absent: the base protocol does not call `data` optional.
    has_data = item.get("data") is not None and (size is None or item["data"] != [])
    if size is None:
        if not has_data:
            report("data-missing", "", "data or binary_data_size", "neither")
        return False, None
    if has_data:
        report("data-and-size", "", "data or binary_data_size", "both")
        if size == 0 and item["data"]:
            return False, None  # no bytes, but elements: a JSON output with a superfluous size
    if _is_integer_with_a_point(size):
        report("integer-with-a-point", ".parameters.binary_data_size", f"{int(size)}", format_value(size))
        size = int(size)
    fault = _find_size_fault(size)
    if fault is not None:
        kind, expected = fault
        report(kind, ".parameters.binary_data_size", expected, format_value(size))
        return True, None
    return True, size


def _find_size_fault(size: Any) -> tuple[str, str] | None:
    if type(size) is not int:  # bool is a subclass of int
        return "size-not-integer", "an integer"
    return ("size-negative", "0 or more") if size < 0 else None


def _convert_dimensions(shape: Any) -> Any:
    """Return a shape with dimensions such as 3.0 and "3" converted to integers."""
    if not isinstance(shape, list):
        return shape
    return [int(size) if _is_convertible(size) else size for size in shape]


def _is_convertible(size: Any) -> bool:
    if isinstance(size, str):
        return re.fullmatch("[0-9]{1,18}", size) is not None
    return _is_integer_with_a_point(size)


def _is_integer_with_a_point(size: Any) -> bool:
    """Return whether a value is an integer that the JSON writes with a point or an exponent, such as 3.0."""
    return isinstance(size, float) and size.is_integer()


def _parse_shape(shape: Any) -> tuple[int, ...] | None:
    """Return the dimensions if they are valid and numpy supports the shape; otherwise None."""
    if not isinstance(shape, list) or len(shape) > MAX_RANK:
        return None
    if not all(type(dimension) is int and 0 <= dimension <= MAX_DIMENSION for dimension in shape):
        return None
    # An empty tensor has no bytes, so that the size of the body does not limit its other dimensions.
    if 0 in shape and math.prod(dimension or 1 for dimension in shape) >= _MAX_EMPTY_PRODUCT:
        return None
    return tuple(shape)


# --- the bytes of each tensor ------------------------------------------------------------------------------------


def assign_spans(outputs: Sequence[Output], body: bytes, start: int) -> tuple[list[Output], int | None]:
    """Return the outputs, with spans for the binary outputs, and the offset of the bytes after the last output.

    The offset is None if there are no such bytes. No spans are assigned from the first output on whose size is unknown
    or too large, because later outputs could begin anywhere.

    Source: triton-binary.order.
    """
    sizes = iter(_choose_sizes([output for output in outputs if output.binary], body, start))
    at: int | None = start
    results: list[Output] = []
    for output in outputs:
        placed, at = _assign_span(output, next(sizes), at, len(body)) if output.binary else (output, at)
        results.append(placed)
    return results, None if at == len(body) else at


def _choose_sizes(outputs: Sequence[Output], body: bytes, start: int) -> list[int | None]:
    """Return the declared sizes of binary outputs, or the computed sizes if only the computed sizes fill the body.

    A declared size that is absent or invalid is replaced by the size that follows from shape and datatype.
    """
    # `binary_data_size` is "the size of the tensor binary data, in bytes" (Triton, Binary Tensor Data Extension), which
    # also results from shape and datatype. If the two differ, the length of the body decides which one the server used.
    # A wrong declaration is then one finding, and later tensors are still read correctly.
    declared = [output.native_size if output.declared_size is None else output.declared_size for output in outputs]
    if _sum_sizes(declared) == len(body) - start:
        return declared
    own = _compute_sizes(outputs, body, start)
    return own if _sum_sizes(own) == len(body) - start else declared


def _compute_sizes(outputs: Sequence[Output], body: bytes, start: int) -> list[int | None]:
    """Return the sizes that follow from shape and datatype; for BYTES those that follow from the length prefixes.

    If the size of an output cannot be computed, its declared size is returned, or None if that is absent or invalid.
    """
    sizes: list[int | None] = []
    at: int | None = 0  # None: a BYTES tensor is incomplete, so that later ones cannot be located
    for output in outputs:
        size = output.native_size
        if output.datatype == "BYTES" and output.shape is not None and at is not None:
            size = strings.measure_size(memoryview(body)[start + at :], math.prod(output.shape))
        at = None if at is None or size is None else at + size
        sizes.append(output.declared_size if size is None else size)
    return sizes


def _sum_sizes(sizes: Sequence[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _assign_span(output: Output, size: int | None, at: int | None, end: int) -> tuple[Output, int | None]:
    """Return a binary output with its span and the findings about its size, and the offset of the next output.

    `size`: its size in bytes, or None if unknown.
    `at`: the offset at which the output begins, or None if unknown.
    """
    field = f"{output.json_path}.parameters.binary_data_size"
    native, declared = output.native_size, output.declared_size
    own = size if native is None else native
    if own is not None and declared is not None and own != declared:
        expected = f"{format_value(own)} for {output.datatype} {format_value(list(output.shape or ()))}"
        output = output.with_findings(Finding("size-mismatch", field, at, expected, format_value(declared)))
    if at is None or size is None:
        return output, None
    if at + size <= end:
        return replace(output, span=(at, at + size)), at + size
    if declared is not None:
        output = output.with_findings(
            Finding("size-beyond-body", field, at, f"at most {end - at}, the rest of the body", format_value(declared))
        )
    return output, None


# --- the elements ------------------------------------------------------------------------------------------------


def decode_output(output: Output, item: Mapping[str, Any], body: bytes) -> Output:
    """Return the output with its array, or with a finding that explains why it cannot be decoded."""
    if output.shape is None or output.datatype not in DATATYPES:
        return output
    if output.binary:
        return _decode_binary_output(output, output.shape, body)
    data = item.get("data")
    if data is None:
        return output
    try:
        return _decode_json_output(output, output.shape, data)
    except DecodeError as error:
        finding = error.finding
        return output.with_findings(replace(finding, field=f"{output.json_path}.{finding.field}"))


def _decode_json_output(output: Output, shape: tuple[int, ...], data: Any) -> Output:
    field, wrong = f"{output.json_path}.data", None
    try:
        array = tensor.from_json(output.datatype, shape, data)
    except DecodeError:
        is_integer = DATATYPES[output.datatype].is_integer and output.member == "outputs"
        integers = read_integer_strings(data) if is_integer else None
        if not integers:
            raise
        array = tensor.from_json(output.datatype, shape, integers)
        wrong = Finding("integer-string", field, None, "numbers", format_value(str(integers[0])))
    if output.datatype == "BOOL" and (number := find_number_in_bool(data)) is not None:
        wrong = Finding("bool-number", field, None, "true or false", number)
    return replace(output, array=array).with_findings(*filter(None, [wrong]))


def _decode_binary_output(output: Output, shape: tuple[int, ...], body: bytes) -> Output:
    if output.span is None:
        return output
    start, end = output.span
    if output.native_size not in (None, end - start):
        return output  # a size-mismatch, already reported
    try:
        array = tensor.decode(output.datatype, shape, memoryview(body)[start:end])
    except DecodeError as error:
        return output.with_findings(_relocate_finding(error.finding, output, start))
    found = tensor.find_bool_faults(array) if output.datatype == "BOOL" else ()
    return replace(output, array=array).with_findings(*(_relocate_finding(finding, output, start) for finding in found))


def _relocate_finding(finding: Finding, output: Output, start: int) -> Finding:
    """Return a decoder's finding with the output's label, and with an offset from the start of the body."""
    field = output.label if finding.field == "tensor" else f"{output.label} {finding.field}"
    return replace(finding, field=field, offset=start + (finding.offset or 0))
