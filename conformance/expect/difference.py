"""Compares an output with the expected tensor, and finds the first difference.

Binary values are compared bitwise; all NaNs are equal, whatever their payload. Decimal numbers in JSON are compared
within a tolerance: no document defines how many digits a server writes, and correct servers differ in the last digit.
Floats that a model computes (`Tensor.is_computed`) may differ in their last places: no document demands equal bits, and
a GPU or a threaded library adds in another order each time. The outputs of a deployed model have a further, absolute
tolerance (`Tensor.tolerance`). Integers, booleans and strings are always exact, and so are floats that are moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from conformance.expect.transforms import describe_misplacement, describe_transform
from conformance.spec.text import escape_text, format_elements, format_shape
from conformance.transport.exchange import Reply
from conformance.wire import strings
from conformance.wire.datatypes import DATATYPES, lookup
from conformance.wire.response import Output
from conformance.wire.tensor import Tensor, decode, find_first_difference

Array = np.ndarray[Any, Any]

MAX_SHOWN_ELEMENTS = 4  # elements that a message shows at most
MAX_ELEMENT_BYTES = 16  # bytes of a BYTES element that a message shows
MAX_CONTEXT_CHARS = 140  # characters for the context of a wrong element
MAX_ROUNDING_ULPS = 2  # between two computed floats, each of which is one unit in the last place off
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

    `output`: the output with the name of the expected tensor, or None if the answer has none.
    `through_json`: whether the values were sent as JSON in the request or the answer, which permits a tolerance;
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
    index = _find_first_wrong_element(expected, output.array, approximate=is_near or expected.is_approximate)
    if index is None:
        return None
    wanted, found = _describe_values(whole, expected.array, output.array, index)
    return Difference(
        wanted, f"{found}{_describe_cause(expected, output, body)}", _find_element_offset(output, index, body)
    )


def find_largest_error(output: Tensor) -> float:
    """Return how much an element of an expected output may be off in any form; 0 if its elements are exact."""
    if not output.is_computed or not lookup(output.datatype).is_float:
        return output.tolerance
    return max(output.tolerance, MAX_ROUNDING_ULPS * float(_find_units(output.array).max(initial=0)))


def are_outputs_reordered(expected: Sequence[Tensor], reply: Reply) -> bool:
    """Whether the binary data of an answer are the expected outputs in another order than its JSON lists them."""
    right = {tensor.name: tensor for tensor in expected}
    listed = [right.get(output.name) for output in reply.answer.outputs if output.binary]
    parts = [tensor for tensor in listed if tensor is not None and tensor.size]
    end = reply.body[len(reply.body) - sum(tensor.size for tensor in parts) :]
    return None not in listed and not _is_in_order(end, parts) and _is_in_any_order(end, parts)


def _is_in_order(body: bytes, parts: Sequence[Tensor]) -> bool:
    return not parts or (_begins_with(body, parts[0]) and _is_in_order(body[parts[0].size :], parts[1:]))


def _is_in_any_order(body: bytes, parts: Sequence[Tensor]) -> bool:
    return not parts or any(
        _begins_with(body, part) and _is_in_any_order(body[part.size :], [*parts[:place], *parts[place + 1 :]])
        for place, part in enumerate(parts)
    )


def _begins_with(body: bytes, expected: Tensor) -> bool:
    """Return whether binary data begin with a tensor, or with one that rounding may have made of it."""
    found = body[: expected.size]
    if not lookup(expected.datatype).is_float or len(found) < expected.size:
        return found == bytes(expected.to_bytes())
    array = decode(expected.datatype, expected.shape, found)
    return _find_first_wrong_element(expected, array, approximate=expected.is_approximate) is None


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
    is_exact = not (approximate or expected.is_computed or expected.tolerance)
    if is_exact or not datatype.is_float:
        return find_first_difference(expected.array, actual, expected.datatype)
    ulps = MAX_ROUNDING_ULPS if expected.is_computed else 1
    relative_tolerance = datatype.json_tolerance if approximate else 0
    with np.errstate(invalid="ignore", over="ignore"):  # widening a signalling NaN is an invalid operation
        a, b = expected.array.astype("<f8").reshape(-1), actual.astype("<f8").reshape(-1)
        relative = np.where(np.isfinite(a), relative_tolerance * np.abs(a), 0)  # infinity has no tolerance
        room = np.maximum(relative, ulps * _find_units(expected.array))
        near = np.abs(a - b) <= np.maximum(room, expected.tolerance)
    same = near | (a == b) | (np.isnan(a) & np.isnan(b))
    return None if same.all() else int(np.argmin(same))


def _find_units(array: Array) -> Array:
    """Return the unit in the last place of each float; 0 for infinities and NaN."""
    size = np.abs(array).reshape(-1)
    unit = np.array(np.spacing(size), dtype="<f8")
    below = size.astype("<f8") - np.nextafter(size, np.zeros_like(size)).astype("<f8")
    return np.where(np.isfinite(unit), unit, np.where(np.isfinite(below), below, 0))  # no unit is above the largest


def _find_element_offset(output: Output, index: int, body: bytes) -> int | None:
    if output.span is None:
        return None
    start, end = output.span
    size = DATATYPES[output.datatype].size
    if size is not None:
        return start + index * size
    return start + strings.find_offsets(memoryview(body)[start:end], index + 1)[index]
