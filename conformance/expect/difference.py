"""Compares an output with the expected tensor, and finds the first difference.

Binary values are compared bitwise; all NaNs are equal, whatever their payload. Decimal numbers in JSON are compared
within a tolerance: no document defines how many digits a server writes, and correct servers differ in the last digit.
Integers, booleans and strings are exact in JSON as well. The outputs of a deployed model have a further, absolute
tolerance: what its floats were seen to differ by between equal requests (`Tensor.tolerance`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from conformance.expect.transforms import describe_misplacement, describe_transform
from conformance.spec.text import escape_text, format_elements, format_shape
from conformance.wire import strings
from conformance.wire.datatypes import DATATYPES, lookup
from conformance.wire.response import Output
from conformance.wire.tensor import Tensor, find_first_difference

Array = np.ndarray[Any, Any]

MAX_SHOWN_ELEMENTS = 4  # elements that a message shows at most
MAX_ELEMENT_BYTES = 16  # bytes of a BYTES element that a message shows
MAX_CONTEXT_CHARS = 140  # characters for the context of a wrong element
DISTINCT = 10  # tolerances by which floats of two answers differ, if the suite is to tell the answers apart


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between an output and the expected tensor; `offset` is its offset in the body, or None."""

    expected: str
    actual: str
    offset: int | None = None


def find_difference(
    expected: Tensor, output: Output | None, body: bytes, *, through_json: bool | None = None
) -> Difference | None:
    """Return how an output differs from the expected tensor, or None.

    Args:
        expected: the expected tensor.
        output: the output with the name of the expected tensor, or None if the answer has none.
        body: the body of the answer.
        through_json: whether the values were sent as JSON in the request or the answer, which permits a tolerance;
            by default whether the output is JSON.
    """
    whole = f"{expected.name} {expected.datatype} {list(expected.shape)}"
    if output is None:
        return Difference(f"output {whole}", "no output of that name")
    if (output.datatype, output.shape) != (expected.datatype, expected.shape):
        return _describe_datatype_and_shape(expected, output)
    if output.array is None:
        reason = "; ".join(finding.described for finding in output.findings) or "there are none"
        return Difference(f"{whole} = {format_elements(expected.array)}", f"unreadable values: {reason}")
    is_near = (not output.binary) if through_json is None else through_json
    is_near = is_near or expected.is_approximate or expected.tolerance > 0
    index = _find_first_wrong_element(expected, output.array, approximate=is_near)
    if index is None:
        return None
    wanted, found = _describe_values(whole, expected.array, output.array, index)
    return Difference(
        wanted, f"{found}{_describe_cause(expected, output, body)}", _find_element_offset(output, index, body)
    )


def are_distinct(one: Tensor, other: Tensor) -> bool:
    """Whether two outputs differ so much that neither can be mistaken for the other, whatever the noise of a model."""
    if (one.datatype, one.shape) != (other.datatype, other.shape):
        return True
    wide = replace(one, tolerance=DISTINCT * max(one.tolerance, other.tolerance))
    return _find_first_wrong_element(wide, other.array, approximate=one.is_approximate) is not None


def _describe_cause(expected: Tensor, output: Output, body: bytes) -> str:
    """Return a hint if the output is the expected tensor, transformed or at a wrong offset; otherwise an empty text."""
    if output.array is not None and (words := describe_transform(expected.array, output.array, expected.datatype)):
        return f"; it is the expected tensor {words}"
    place = describe_misplacement(bytes(expected.to_bytes()), body, output.span[0]) if output.span else ""
    return f"; {place}" if place else ""


def _describe_datatype_and_shape(expected: Tensor, output: Output) -> Difference:
    """Describe a wrong datatype, a wrong shape, or both."""
    wanted, found = [], []
    if output.datatype != expected.datatype:
        wanted.append(f"datatype {expected.datatype}")
        found.append(f"datatype {escape_text(output.datatype, 40)}" if output.datatype else "no datatype")
    if output.shape != expected.shape:
        wrong = [finding.actual for finding in output.findings if finding.kind == "shape-invalid"]
        wanted.append(f"shape {list(expected.shape)}")
        absent = wrong == ["nothing"]
        found.append("no shape" if absent else f"shape {wrong[0]}" if wrong else format_shape(output.shape))
    return Difference(f"{expected.name} with {' and '.join(wanted)}", " and ".join(found))


def _describe_values(whole: str, expected: Array, actual: Array, index: int) -> tuple[str, str]:
    """Return texts of the expected and the actual elements: all if the tensor is small, or some near the wrong one."""
    place = str(index if expected.ndim == 1 else list(map(int, np.unravel_index(index, expected.shape))))
    right, wrong = (array.reshape(-1)[index : index + 1] for array in (expected, actual))
    byte = _describe_first_byte(right[0], wrong[0])
    if expected.size <= MAX_SHOWN_ELEMENTS:
        also = f": element {place} differs{byte}" if expected.size > 1 or byte else ""
        return f"{whole} = {format_elements(expected)}", f"{format_elements(actual)}{also}"
    around = [f", in {format_elements(array, index)}" for array in (expected, actual)]
    if sum(map(len, around)) > MAX_CONTEXT_CHARS:
        around = ["", ""]
    return (
        f"element {place} of {whole} to be {format_elements(right)[1:-1]}{around[0]}",
        f"{format_elements(wrong)[1:-1]}{byte}{around[1]}",
    )


def _describe_first_byte(right: Any, wrong: Any) -> str:
    """Return a text about the first different byte of two BYTES elements; empty if it is in the part that is shown."""
    if not isinstance(right, bytes) or right[:MAX_ELEMENT_BYTES] != wrong[:MAX_ELEMENT_BYTES]:
        return ""
    pairs = enumerate(zip(right, wrong, strict=False))
    return f" from byte {next((k for k, (a, b) in pairs if a != b), min(len(right), len(wrong)))} on"


def _find_first_wrong_element(expected: Tensor, actual: Array, *, approximate: bool) -> int | None:
    datatype = lookup(expected.datatype)
    if not approximate or not datatype.is_float:
        return find_first_difference(expected.array, actual, expected.datatype)
    return _find_first_element_beyond_tolerance(expected.array, actual, datatype.json_tolerance, expected.tolerance)


def _find_first_element_beyond_tolerance(
    expected: Array, actual: Array, relative_tolerance: float, tolerance: float
) -> int | None:
    """Return the index of the first element beyond both tolerances and one unit in the last place."""
    with np.errstate(invalid="ignore", over="ignore"):  # widening a signalling NaN is an invalid operation
        unit = np.array(np.abs(np.spacing(expected)), dtype="<f8")  # an array even for rank 0
        unit[~np.isfinite(unit)] = 0  # undefined for the largest number
        a, b = expected.astype("<f8").reshape(-1), actual.astype("<f8").reshape(-1)
        relative = np.where(np.isfinite(a), relative_tolerance * np.abs(a), 0)  # infinity has no tolerance
        near = np.abs(a - b) <= np.maximum(np.maximum(relative, unit.reshape(-1)), tolerance)
    same = near | (a == b) | (np.isnan(a) & np.isnan(b))
    return None if same.all() else int(np.argmin(same))


def _find_element_offset(output: Output, index: int, body: bytes) -> int | None:
    if output.span is None:
        return None
    start, end = output.span
    size = DATATYPES[output.datatype].size
    if size is not None:
        return start + index * size
    return start + strings.find_offsets(memoryview(body)[start:end], index + 1)[index]
