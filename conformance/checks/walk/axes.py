"""The axes of the walk over HTTP: the properties of an exchange, their values, and which values have to meet.

The first value of an axis is its neutral value: the most common and simplest one. These modules implement the values:
`tensors` (inputs), `requests` (requested outputs), `json_writing` (spelling of the JSON), `encoding` (HTTP framing and
codings) and `concurrent_requests` (earlier and concurrent requests).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from conformance.checks.support.covering import Step, has_values
from conformance.checks.support.usual_headers import USUAL_HEADERS
from conformance.roles.roles import BINARY_ONLY, Role, load

PLAIN_INTEGERS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
_JSON_ROLES = (
    "identity_int32",
    *(f"identity_{name}" for name in ("bool", *PLAIN_INTEGERS, "fp32", "fp64", "bytes") if name != "int32"),
    *("rank2", "rank3", "rank2_bytes", "batching", "fixed", "multi", "add_sub", "weighted_sum", "string_length"),
    *("cast_int32_fp32", "raw_two_outputs", "transpose"),
)
_BINARY_ROLES = (*_JSON_ROLES, "identity_fp16", "cast_fp16_fp32", "cast_fp32_fp16", "rank4")
_RAW_ROLES = (
    "identity_int32",
    *(f"identity_{name}" for name in ("bool", *PLAIN_INTEGERS, "fp16", "fp32", "fp64") if name != "int32"),
    *("cast_int32_fp32", "cast_fp16_fp32", "fixed", "raw_variable", "raw_middle", "raw_batching"),
    *("raw_batching_variable", "raw_two_outputs", "transpose"),
)
_SCORED_ROLES = (
    *("scores", "scores_labelled", "scores_some_labels", "scores_odd_labels", "scores_batching"),
    *("scores_batching_labelled", "scores_rank2", "scores_batching_rank2", "scores_two_outputs"),
    *("identity_fp32", "identity_int32", "identity_uint8", "identity_int64", "identity_fp64"),
)

# 3, the usual count, is the neutral value `own`.
COUNTS = tuple(map(str, (0, 1, 2, 7, 8, 9, 17, 33, 64, 65, 256, 257, 4096, 4097, 65536, 65537)))
BATCHES = ("1", "2", "7", "8", "9", "33")  # the counts that are sizes of a batch
LARGE, HUGE = 4096, 65536
# The only roles that are tested with `HUGE` elements: other roles would be slow and reveal no further faults.
_HUGE_ROLES = ("identity_int32", "identity_uint8", "identity_bool", "identity_fp16", "identity_fp64", "cast_int32_fp32")

_SHORT_IN_JSON = ("identity_bool", "identity_uint8")
_MAX_CLASSES = 257  # the greatest number of classes that a step requests: ranking more is slow

EMPTY_PLACES = ("first-empty", "last-empty")  # this input has no elements; the others have the count of the step

# Properties of the request itself, over any transport: axis -> values.
CONTENTS: Mapping[str, Sequence[str]] = {
    "count": ("own", *COUNTS),
    "place": ("every", "first", "second", "last", *EMPTY_PLACES),
    "values": ("ramp", "equal", "ones", "corners", "corner-first", "corner-middle", "corner-ninth", "corner-last"),
    "order": ("declared", "reversed", "rotated"),
    "outputs": ("unlisted", "listed", "reversed", "last-alone", "last-first"),
    "id": ("none", "ascii", "two-bytes", "three-bytes", "four-bytes", "quotes", "long"),
}
FORMS: Mapping[str, Sequence[str]] = {
    "send": ("json", "binary", "mixed"),
    "want": ("nothing", "json", "binary", "all-binary", "json-of-all-binary", "mixed", "no-binary"),
}
WRITING: Mapping[str, Sequence[str]] = {
    "members": ("usual", "reversed", "sorted"),
    "escapes": ("none", "ascii", "names", "every"),
    "spaces": ("none", "blanks", "lines"),
    "unknown": ("none", "top", "input", "output", "parameters"),
}
NUMBERS: Mapping[str, Sequence[str]] = {
    "numbers": ("usual", "exponents", "capitals", "long"),
    "nesting": ("flat", "nested"),
}
CHUNKED = ("one-chunk", "many-chunks", "upper-hex", "extensions", "trailers")  # the plainest first
ENCODING: Mapping[str, Sequence[str]] = {
    "path": ("plain", "version"),
    "header_case": ("usual", "lower", "upper"),
    "coding": ("none", "gzip", "gzip-members", "deflate"),
    "answer_coding": ("identity", "gzip"),
    "framing": ("length", *CHUNKED, "segments"),
    "http": ("1.1", "1.0"),
    "connection": ("kept", "fresh", "closing"),
    "sender": ("plain", *USUAL_HEADERS),
    "media": ("own", "json", "json-charset", "octets", "text", "none"),
}
# Earlier requests whose client resets its connection: within the body, or before the answer.
ABANDONED = ("cut-off", "unread")
CANCELLED = "cancelled"  # an earlier call whose client resets its stream, over gRPC
BEFORE = (
    *("nothing", "near", "larger", "smaller", "other-form", "with-id", "all-binary-asked", "classes-asked", "chunked"),
    *("unknown-model", "unknown-output", "broken-json", "wrong-size", "refused-option"),
    *ABANDONED,
)
_PRECEDING_REQUESTS = BEFORE[1:]
WITH_CODINGS = tuple(name for name, usual in USUAL_HEADERS.items() if usual.has_codings)
CONCURRENT_REQUESTS: Mapping[str, Sequence[str]] = {
    "before": BEFORE,
    "beside": ("nothing", "one", "other-model", "many"),
}

_RARE_COUNTS = ("7", "8", "17", "33", "65", "256", "4097", "65537")
_LARGE_COUNTS = tuple(count for count in COUNTS if int(count) >= LARGE)
# The costs of values, in requests.
_COSTS = {("framing", "segments"): 1, ("beside", "one"): 1, ("beside", "other-model"): 1, ("beside", "many"): 7}

# The roles that meet every value of the transport: a role for each kind of datatype, rank and number of tensors.
_REPRESENTATIVES = (
    *("identity_int32", "identity_bool", "identity_fp16", "identity_fp32", "identity_bytes", "multi", "rank2_bytes"),
    *("batching", "raw_variable", "raw_batching_variable", "raw_two_outputs", "scores", "scores_labelled"),
    *("scores_batching_labelled", "scores_rank2", "scores_two_outputs"),
)
_OTHER_ROLES = tuple(
    sorted({*_BINARY_ROLES, *_RAW_ROLES, *_SCORED_ROLES}.difference(_REPRESENTATIVES))  # of any kind of request
)
# Earlier requests after which the size of the next one does not matter.
_SIZELESS = (
    "with-id",
    "all-binary-asked",
    "classes-asked",
    "unknown-model",
    "unknown-output",
    "broken-json",
    "refused-option",
)
_SPELLING: Mapping[str, Sequence[str]] = dict.fromkeys((*WRITING, *NUMBERS, "header_case", "media", "sender"), ())
# Pairs of values that no step has to combine, because a server handles them in different places. What is slow (other
# requests, many elements) meets few other properties. An axis without values stands for all of its values.
_UNNEEDED: Sequence[tuple[Mapping[str, Sequence[str]], Mapping[str, Sequence[str]]]] = (
    ({"role": _OTHER_ROLES}, {**dict.fromkeys((*WRITING, *ENCODING, *CONCURRENT_REQUESTS), ()), "count": _RARE_COUNTS}),
    ({"before": (), "beside": (), "count": _LARGE_COUNTS}, _SPELLING),
    (
        {"count": _LARGE_COUNTS},
        {"before": ("larger", "other-form", "chunked", "wrong-size", "no-contents"), "id": (), "path": ()},
    ),
    ({"place": ("first", "second", "last", *EMPTY_PLACES)}, {"count": _RARE_COUNTS}),
    ({"beside": ("many",)}, {"count": (), "values": (), "id": (), "before": ()}),
    ({"before": _SIZELESS}, {"count": (), "values": ()}),
    (
        {"sender": ()},
        dict.fromkeys((*CONTENTS, *WRITING, *NUMBERS, "header_case", "path", *CONCURRENT_REQUESTS, "classes"), ()),
    ),
)

# The outputs that are classified if a model has two.
CLASSIFIED = ("first", "second", "both")

# Kind of request -> its axes. Each kind has its own covering array, because each depends on another extension.
KINDS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "json": {"role": _JSON_ROLES, **CONTENTS, **WRITING, **NUMBERS, **ENCODING, **CONCURRENT_REQUESTS},
    "binary": {"role": _BINARY_ROLES, **CONTENTS, **FORMS, **WRITING, **ENCODING, **CONCURRENT_REQUESTS},
    "raw": {
        "role": _RAW_ROLES,
        "count": CONTENTS["count"],
        "values": CONTENTS["values"],
        **ENCODING,
        **CONCURRENT_REQUESTS,
    },
    "classes": {
        "role": _SCORED_ROLES,
        "classes": ("1", "2", "all-but-one", "all"),
        "classified": CLASSIFIED,
        "count": ("own", *[count for count in COUNTS if int(count) < HUGE]),
        **{axis: CONTENTS[axis] for axis in ("values", "id")},
        "send": ("json", "binary"),
        "want": ("nothing", "json", "binary"),
        **WRITING,
        **ENCODING,
        **CONCURRENT_REQUESTS,
    },
}
# Further entries of every step: the number of classes (none for other kinds), and which corner value comes first.
CONSTANT_AXES: Mapping[str, Sequence[str]] = {"classes": ("none",), "classified": CLASSIFIED, "corner": ("0",)}
# The neutral value of each axis; a step has this value if its kind lacks the axis.
NEUTRAL: Step = {
    axis: values[0]
    for axis, values in {
        **CONTENTS,
        **FORMS,
        **WRITING,
        **NUMBERS,
        **ENCODING,
        **CONCURRENT_REQUESTS,
        **CONSTANT_AXES,
    }.items()
}
# A step without concurrent requests: their order is random and may hide a fault.
ALONE: Step = {"beside": NEUTRAL["beside"]}
# The order in which shrinking sets axes to their neutral values: the axes farthest from the tensors first.
AXES = tuple(
    dict.fromkeys(
        (
            *("beside", "before", "sender", *ENCODING, *WRITING, *NUMBERS),
            *("id", *CONTENTS, "classified", "classes", "want", "send"),
        )
    )
)


# What `ExclusionRules.is_excluded` has said of pairs that name no role: the same for every model.
_EXCLUDED_FOR_ALL_ROLES: dict[tuple[str, ...], bool] = {}


class ExclusionRules:
    """Decides which values of the axes exclude each other, for steps with these roles."""

    def __init__(self, roles: Mapping[str, Role]) -> None:
        """Create the rules; `roles` maps the role names in steps to roles."""
        self._roles = roles
        self._excluded: dict[tuple[str, ...], bool] = {}

    def is_excluded(self, kind: str, axis: str, value: str, other_axis: str, other_value: str) -> bool:
        """Say whether two values of two axes exclude each other in a kind of request."""
        key = kind, axis, value, other_axis, other_value
        excluded = self._excluded if "role" in (axis, other_axis) else _EXCLUDED_FOR_ALL_ROLES
        if key not in excluded:
            pair = {axis: value, other_axis: other_value}
            role = self._find_role(pair)
            excluded[key] = any(rule(kind, pair, role) for rule in _RULES) or self.is_invalid(pair)
        return excluded[key]

    def is_invalid(self, step: Step) -> bool:
        """Say whether a request with the values of a step would be impossible, invalid or too slow."""
        role = self._find_role(step)
        return _is_impossible_for_all_roles(step) or (role is not None and _is_impossible_for_role(role, step))

    def has_no_typed_answer(self, step: Step) -> bool:
        """Say whether a call has typed inputs and an output that typed contents cannot carry, such as FP16."""
        role = self._find_role(step)
        return step.get("send") == "json" and role is not None and not is_json_capable(role.outputs)

    def _find_role(self, step: Step) -> Role | None:
        return self._roles[step["role"]] if "role" in step else None


@cache
def is_needed(axis: str, value: str, other_axis: str, other_value: str) -> bool:
    """Say whether the steps of a covering array have to combine two values that can meet."""
    pair = (axis, value), (other_axis, other_value)
    return not any(
        _has_item(one, first) and _has_item(other, second)
        for one, other in _UNNEEDED
        for first, second in (pair, pair[::-1])
    )


def _has_item(values: Mapping[str, Sequence[str]], item: tuple[str, str]) -> bool:
    axis, value = item
    return axis in values and (not values[axis] or value in values[axis])


def find_cost(axis: str, value: str) -> int:
    """Return the number of requests that a value adds to a step, or how many plain requests take as long."""
    if axis == "count" and value.isdecimal():
        return sum(int(value) >= bound for bound in (LARGE, HUGE))
    return _COSTS.get((axis, value), int(axis == "before" and value != NEUTRAL["before"]))


def _read_element_count(step: Step) -> int:
    return int(step["count"]) if step.get("count", "own") != "own" else 1


def _is_impossible_for_all_roles(step: Step) -> bool:
    """Say whether two values of a step exclude each other for every role, or are too slow together."""
    is_large = _read_element_count(step) >= LARGE
    return (
        has_values(step, http=["1.0"], framing=CHUNKED)
        or has_values(step, http=["1.0"], before=["chunked"])
        or has_values(step, connection=["fresh"], before=_PRECEDING_REQUESTS)
        or has_values(step, answer_coding=["gzip"], sender=WITH_CODINGS)
        or has_values(step, sender=["nginx"], http=["1.1"])
        or has_values(step, sender=["nginx"], connection=["kept", "fresh"])
        or (is_large and has_values(step, beside=["many"]))
        or (_read_element_count(step) >= HUGE and has_values(step, beside=["one", "other-model"]))
        or (is_large and has_values(step, escapes=["every"]))
        or (is_large and has_values(step, numbers=["exponents", "capitals", "long"]))
        or (
            _read_element_count(step) == 0
            and has_values(step, values=["corners", "corner-first", "corner-middle", "corner-last"])
        )
        or (0 <= _read_element_count(step) < 9 and "count" in step and has_values(step, values=["corner-ninth"]))
        or has_values(step, count=["0"], place=EMPTY_PLACES)
        or (has_values(step, count=["0"]) and step.get("classes", "none") != "none")  # this has crashed servers
    )


def _is_impossible_for_role(role: Role, step: Step) -> bool:
    """Say whether a value of a step is impossible or too slow for a role."""
    variable = any(size < 0 for spec in role.inputs for size in spec.shape) or role.batching
    strings = any(spec.datatype == "BYTES" for spec in role.inputs)
    plain_rank = all(len(spec.shape) == 1 for spec in role.inputs) and not role.batching
    floats = any(spec.datatype in ("FP32", "FP64") for spec in role.inputs)
    return (
        ("count" in step and step["count"] != "own" and not variable)
        or (_read_element_count(step) > LARGE and (strings or not plain_rank))
        or (_read_element_count(step) >= HUGE and role.name not in _HUGE_ROLES)
        or (_read_element_count(step) == 0 and (role.compute == "weighted_sum" or "SCORES" in str(role.outputs)))
        or (role.batching and step.get("count", "own") not in ("own", *BATCHES))
        or (step.get("place", "every") != "every" and role.name != "multi")
        or (step.get("order", "declared") != "declared" and len(role.inputs) == 1)
        or (has_values(step, outputs=["reversed", "last-alone", "last-first"]) and len(role.outputs) == 1)
        or (has_values(step, classified=["second", "both"]) and len(role.outputs) == 1)
        or (has_values(step, send=["mixed"]) and len(role.inputs) == 1)
        or (has_values(step, want=["mixed"]) and len(role.outputs) == 1)
        or (has_values(step, send=["json"]) and not is_json_capable(role.inputs))
        or (
            has_values(step, want=["nothing", "json", "no-binary", "json-of-all-binary"])
            and not is_json_capable(role.outputs)
        )
        or (step.get("numbers", "usual") != "usual" and not floats)
        or (step.get("values", "ramp") not in ("ramp", "equal") and role.compute in ("add_sub", "weighted_sum"))
    )


def is_json_capable(tensors: Sequence[object]) -> bool:
    """Say whether JSON can carry these tensors of a role; JSON cannot carry FP16 and BF16."""
    return not any(getattr(spec, "datatype", "") in BINARY_ONLY for spec in tensors)


def _has_no_binary_data(kind: str, step: Step, _: Role | None) -> bool:
    """Say whether a step of kind `binary` has no binary data."""
    return kind == "binary" and has_values(step, send=["json"], want=["nothing", "json", "no-binary"])


def _has_too_many_classes(kind: str, step: Step, _: Role | None) -> bool:
    """Say whether a step of kind `classes` requests more classes than the output has, or than `_MAX_CLASSES`."""
    return kind == "classes" and (
        has_values(step, count=["0"])
        or has_values(step, classes=["2", "all-but-one"], count=["1"])
        or (_read_element_count(step) > _MAX_CLASSES and has_values(step, classes=["all", "all-but-one"]))
    )


def _has_binary_request_before(kind: str, step: Step, _: Role | None) -> bool:
    """Say whether a step of kind `json` has an earlier request that uses binary data."""
    return kind == "json" and has_values(
        step, before=["wrong-size", "all-binary-asked", "other-form", "refused-option"]
    )


def _is_raw_batch(kind: str, step: Step, role: Role | None) -> bool:
    """Say whether a raw step sets the number of batch items; a raw request always has one item."""
    return kind == "raw" and role is not None and role.batching and step.get("count", "own") != "own"


def _is_slow_json(kind: str, step: Step, _: Role | None) -> bool:
    """Say whether a step sends `HUGE` elements as long JSON numbers, which is slow and reveals no more faults."""
    is_text = kind == "json" or has_values(step, send=["json", "mixed"])
    return is_text and _read_element_count(step) >= HUGE and step.get("role", "identity_bool") not in _SHORT_IN_JSON


def _has_class_request_before(kind: str, step: Step, _: Role | None) -> bool:
    """Say whether a step of a kind other than `classes` has an earlier request for classes."""
    return kind != "classes" and has_values(step, before=["classes-asked"])


_RULES = (
    _has_no_binary_data,
    _has_too_many_classes,
    _has_binary_request_before,
    _is_raw_batch,
    _is_slow_json,
    _has_class_request_before,
)

# The rules for the roles, from which the arrays of the walk are built.
ROLE_RULES = ExclusionRules(load())
is_excluded, is_invalid = ROLE_RULES.is_excluded, ROLE_RULES.is_invalid
