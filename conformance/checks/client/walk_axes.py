"""The axes of the walk for clients: the inference, the style of the answer, and earlier and concurrent inferences.

An axis is a property of an exchange. A step is one exchange, with a value for each axis. The first value of an axis is
neutral. The documents permit every answer that the axes describe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.checks.support.covering import Step, StepSpace, has_values
from conformance.checks.support.step_shrinking import Axes

AxisValues = Mapping[str, Sequence[str]]

DATATYPES = ("INT32", "BOOL-FP64", "BYTES-UINT8", "INT64-BYTES-FP32", "UINT64-INT8", "FP16-UINT16", "INT16-UINT32")
SHAPES = ("3", "1", "0", "2x3", "40")
# Value of the axis `beside` -> the number of concurrent inferences.
CONCURRENT_COUNTS: Mapping[str, int] = {"nothing": 1, "one": 2, "seven": 8}

_REQUEST_AXES: AxisValues = {
    "datatypes": DATATYPES,
    "shape": SHAPES,
    "id": ("none", "ascii", "not-ascii", "long"),
    "version": ("none", "7"),
    "classes": ("none", "three"),
}
_CODINGS = ("none", "gzip", "deflate")
_JSON_AXES: AxisValues = {
    "members": ("usual", "reversed", "outputs-first", "size-last"),
    "escapes": ("none", "ascii", "names", "every"),
    "spaces": ("none", "blanks", "around"),
    "numbers": ("usual", "exponents"),
    "extra": ("none", "parameters", "unknown"),
    "absent": ("none", "version"),
    "nesting": ("flat", "nested"),
}
_DELIVERY_AXES: AxisValues = {
    "header": ("usual", "always"),
    "header_case": ("usual", "lower", "upper"),
    "framing": ("length", "one-chunk", "small-chunks", "extensions", "trailers", "until-close"),
    "pieces": ("whole", "small"),
    "accepts": _CODINGS,
    "connection": ("kept", "closing"),
}
HTTP_AXES: AxisValues = {
    **_REQUEST_AXES,
    "send": ("json", "binary", "mixed", "raw"),
    "want": ("json", "binary", "mixed", "unlisted", "all-binary"),
    "coding": _CODINGS,
    "order": ("requested", "reversed", "rotated"),
    **_JSON_AXES,
    **_DELIVERY_AXES,
    "before": ("nothing", "other-form", "larger", "error", "closed"),
    "beside": tuple(CONCURRENT_COUNTS),
}
GRPC_AXES: AxisValues = {
    **_REQUEST_AXES,
    "shape": SHAPES[:4],
    "send": ("binary", "json"),
    "want": ("listed", "unlisted"),
    "coding": ("none", "gzip"),
    "contents": ("raw", "typed"),
    "order": ("requested", "reversed", "rotated"),
    "integers": ("packed", "unpacked"),
    "fields": ("usual", "raw-first", "unknown"),
    "before": ("nothing", "other-form", "larger", "error"),
    "beside": tuple(CONCURRENT_COUNTS),
}
# Axes that a client may not support, for lack of an option in its interface.
OPTIONAL_AXES = (
    "coding",
    "accepts",
    "want",
    "send",
    "classes",
    "version",
    "id",
    "datatypes",
    "beside",
    "shape",
    "before",
)


_WITH_JSON_OUTPUTS = ("json", "mixed", "unlisted")
_SINGLE_TENSOR = DATATYPES[:1]


def is_invalid(step: Step) -> bool:
    """Say whether values of a step exclude each other: the exchange would be invalid, or the same as another step."""
    return _is_invalid_request(step) or _is_invalid_answer(step)


def _is_invalid_request(step: Step) -> bool:
    is_half = "FP16" in step.get("datatypes", "")
    is_raw = has_values(step, send=["raw"])
    return (
        (is_half and has_values(step, send=["json", "mixed"]))
        or (is_half and (has_values(step, want=_WITH_JSON_OUTPUTS) or has_values(step, contents=["typed"])))
        or (is_raw and step.get("datatypes", "").startswith("BYTES"))
        or (is_raw and step.get("want", "unlisted") != "unlisted")
        or (is_raw and step.get("id", "none") != "none")
        or (is_raw and has_values(step, shape=["0"]))
        or (
            has_values(step, send=["mixed"], datatypes=_SINGLE_TENSOR)
            or has_values(step, want=["mixed"], datatypes=_SINGLE_TENSOR)
        )
        or has_values(step, classes=["three"], want=["unlisted", "all-binary"])
        or (is_raw and has_values(step, classes=["three"]))
    )


def _is_invalid_answer(step: Step) -> bool:
    has_json = step.get("want", "json") == "json"
    return (
        (has_values(step, framing=["until-close"]) and not has_json)
        or has_values(step, framing=["until-close"], connection=["closing"])
        or (has_values(step, order=["reversed", "rotated"], datatypes=_SINGLE_TENSOR))
        or (has_values(step, nesting=["nested"]) and step.get("shape", "2x3") != "2x3")
        or has_values(step, nesting=["nested"], want=["binary", "all-binary"])
        or has_values(step, numbers=["exponents"], want=["binary", "all-binary"])
        or (has_values(step, numbers=["exponents"]) and "FP" not in step.get("datatypes", "FP"))
        or has_values(step, header=["always"], want=["binary", "all-binary", "mixed"])
        or has_values(step, members=["size-last"], want=["json"])
        or has_values(step, integers=["unpacked"], contents=["raw"])
        or has_values(step, fields=["raw-first"], contents=["typed"])
    )


def is_excluded_pair(axis: str, value: str, other_axis: str, other_value: str) -> bool:
    """Say whether the values of two axes exclude each other."""
    return is_invalid({axis: value, other_axis: other_value})


def build_steps(axes: AxisValues) -> list[Step]:
    """Return the steps, one for each row of a covering array over these axes."""
    space = StepSpace(axes, is_excluded_pair, lambda axis, value: int((axis, value) == ("beside", "seven")))
    return space.build_array()[0]


def build_shrinking_axes(axes: AxisValues) -> Axes:
    """Return the axes in the order in which shrinking sets them to neutral: those farthest from the tensors first."""
    nearest = ("classes", "order", "want", "contents", "send", "shape", "datatypes")
    order = [*(axis for axis in list(axes)[::-1] if axis not in nearest), *(axis for axis in nearest if axis in axes)]
    neutral = {axis: values[0] for axis, values in axes.items()}
    smaller = {"datatypes": DATATYPES, "shape": SHAPES, "beside": tuple(CONCURRENT_COUNTS)}
    return Axes(order, neutral, {"beside": "nothing"}, smaller, (), is_invalid)


HTTP_SHRINKING, GRPC_SHRINKING = build_shrinking_axes(HTTP_AXES), build_shrinking_axes(GRPC_AXES)
