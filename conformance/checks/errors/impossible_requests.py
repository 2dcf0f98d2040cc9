"""Requests with a single fault each: no server can execute them, or they contradict the metadata of the model.

Most are plain JSON, so that servers without the extensions can receive them as well. A row without a role is made from
the inputs of any deployed model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from struct import pack
from typing import Any
from urllib.parse import quote

from conformance.checks.support.inputs import InputsBuilder, sample_inputs
from conformance.checks.support.refusals import Refusal
from conformance.checks.support.wrong_requests import Fault, make_refusals, send_binary, send_json, with_own_names
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.spec.extensions import BINARY, CLASSES
from conformance.spec.fit import ANY, JSON, SCORE_DATATYPES, Fit
from conformance.wire.datatypes import INTEGERS, lookup
from conformance.wire.edits import Drop, Repeat, Set, cut, enclosed, plus, replaced, times, update
from conformance.wire.json_data import flatten
from conformance.wire.message_edits import Body, Data, Edit, Path
from conformance.wire.request import InferRequest, Message

NO_MODEL = "/v2/models/no_model_of_this_name"
# Characters with a meaning in formatters, shells and templates; a server repeats names in its messages.
SPECIAL_CHARACTERS = "no%d+{0}${x}%s"

# datatype -> a wider one of the same kind, which can represent all its elements
WIDER = {
    "FP16": "FP32",
    "FP32": "FP64",
    **{f"{kind}{bits}": f"{kind}{2 * bits}" for kind in ("INT", "UINT") for bits in (8, 16, 32)},
}
_NARROW_INTEGERS = frozenset(WIDER) & frozenset(INTEGERS)
FIRST_INTEGERS = f"inputs.@{'|'.join(INTEGERS)}"
FIRST_NARROW_INTEGERS = f"inputs.@{'|'.join(sorted(_NARROW_INTEGERS))}"

ONE_INPUT = Fit(max_inputs=1, is_json=True)  # with several inputs, the first may be optional
SEVERAL_INPUTS = Fit(min_inputs=2, is_json=True)
SOME_DIMENSION = Fit(min_rank=1, is_json=True)
SEVERAL_DIMENSIONS = Fit(min_rank=2, is_json=True)
SOME_INTEGERS = Fit(some_input=frozenset(INTEGERS), is_json=True)


# --- valid requests to start from -------------------------------------------------------------------------------------


def request_metadata(model: Model) -> Message:
    """Return a request for the metadata of a model."""
    return Message(model.path, method="GET")


def list_first_output(model: Model) -> InferRequest:
    """Return a JSON request that lists the first output."""
    return model.request(send="json", outputs=[model.role.outputs[0].name])


def nest_first_input(model: Model) -> InferRequest:
    """Return a JSON request in which the data of the first input are nested like its shape."""
    request = model.request(send="json")
    return replace(request, inputs=(replace(request.inputs[0], nested=True), *request.inputs[1:]))


def fill_with_numbers(*shape: int) -> InputsBuilder:
    """Return a builder of an input of this shape with the elements 1, 2, 3, ..."""
    return lambda model: [model.tensor(list(range(1, 1 + prod(shape))), shape)]


# --- values that follow from other members of an input ----------------------------------------------------------------


def leave_several(data: list[Any]) -> list[Any]:
    """Return data from which elements were removed.

    Raises NotApplicableError: at most one element is left. An example of the documents sends one for the shape [3].
    """
    if len(flatten(data, ())) < 2:
        raise NotApplicableError("the input has too few elements to remove any")
    return data


def drop_last_element(data: list[Any]) -> list[Any]:
    """Return data without their last element."""
    return leave_several(data[:-1])


def drop_last_item(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an input whose data lack the last item along the first dimension."""
    return {**entry, "data": leave_several(entry["data"][: -prod(entry["shape"][1:])])}


def repeat_last_item(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an input whose data have the last item along the first dimension twice."""
    return {**entry, "data": entry["data"] + entry["data"][-prod(entry["shape"][1:]) :]}


def drop_last_nested_element(data: list[Any]) -> list[Any]:
    """Return nested data whose last innermost array lacks its last element.

    Raises NotApplicableError: the innermost array would be empty.
    """

    def drop(level: list[Any]) -> list[Any]:
        *others, last = level
        if not (others or isinstance(last, list)):
            raise NotApplicableError("the innermost arrays have only one element")
        return [*others, drop(last)] if isinstance(last, list) else others

    return leave_several(drop(data))


def move_element_to_second_array(data: list[Any]) -> list[Any]:
    """Return nested data in which the last element of the first innermost array stands in the array behind it.

    Raises NotApplicableError: there is no array behind the first one.
    """
    first, *others = data
    if isinstance(first[0], list):
        return [move_element_to_second_array(first), *others]
    if not others:
        raise NotApplicableError("the data have a single innermost array")
    return [first[:-1], [first[-1], *others[0]], *others[1:]]


def exceed_range(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an input whose first integer is too large for its datatype, with the low bits of the right one.

    A server that drops the high bits reads an integer that the model accepts.
    """
    first, *others = entry["data"]
    return {**entry, "data": [first + 2 ** (8 * (lookup(entry["datatype"]).size or 0)), *others]}


def write_as_strings(values: list[int]) -> list[str]:
    """Return numbers as strings."""
    return list(map(str, values))


def enlarge_fixed_dimension(model: Model) -> Message:
    """Return a JSON request in which the last fixed dimension of the first input is larger by one.

    Raises NotApplicableError: the metadata give no fixed dimension for the first input.
    """
    request = model.request(send="json")
    tensor, declared = request.inputs[0].tensor, model.role.inputs[0].shape
    fixed = [index for index, size in enumerate(declared) if size > 0] if len(declared) == len(tensor.shape) else []
    if not fixed:
        raise NotApplicableError(f"the metadata of {model.name} give no fixed dimension for {tensor.name}")
    shape = [size + (index == fixed[-1]) for index, size in enumerate(tensor.shape)]
    data = (tensor.to_json() * 2)[: prod(shape)]
    return request.encode_with(update("inputs.0", shape=shape, data=data))


# --- the tables -------------------------------------------------------------------------------------------------------


def _set_first(**members: Any) -> Edit:
    """Return an edit that sets members of the first input."""
    return update("inputs.0", **members)


def _list_outputs(*names: str) -> Edit:
    """Return an edit that lists these outputs."""
    return Set("outputs", [{"name": name} for name in names])


def _fill_member(name: str, path: str, values: Mapping[str, Any], role: str = "identity_int32") -> Iterator[Fault]:
    """Yield a row for each of these values of one member; `name` stands for the member in their ids."""
    start = list_first_output if path.startswith("outputs.") else None
    for word, value in values.items():
        yield Fault(f"{name}-{word}", role, Set(path, value), start=start)


def _write_binary(datatype: str, shape: Sequence[int], data: bytes) -> tuple[Edit, ...]:
    """Return edits that give the first input another datatype and shape, and binary data that match both."""
    size = {"binary_data_size": len(data)}
    return _set_first(datatype=datatype, shape=list(shape), parameters=size), Data(data)


# Extensions of JSON that some parsers accept.
ALMOST_JSON = (
    Fault("comma-behind-the-last-member", "identity_int32", (Body(cut(1)), Body(plus(b",}"))), JSON),
    Fault("text-behind-the-json", "identity_int32", Body(plus(b" x")), JSON),
    Fault("quotes-of-the-wrong-kind", "identity_int32", Body(replaced(b'"', b"'"))),
    Fault("comment-in-the-json", "identity_int32", Body(enclosed(b"/* a comment */", b"")), JSON),
)
IMPOSSIBLE_REQUESTS = (
    Fault("unknown-model", "identity_int32", Path(f"{NO_MODEL}/infer"), JSON),
    Fault("unknown-model-with-signs", "identity_int32", Path(f"/v2/models/{quote(SPECIAL_CHARACTERS, safe='')}/infer")),
    Fault("metadata-of-an-unknown-model", "identity_int32", Path(NO_MODEL), ANY, start=request_metadata),
    Fault("input-missing", "add_sub", Drop("inputs.-1")),
    Fault("no-inputs", "add_sub", Set("inputs", [])),  # those of a deployed model may be optional
    Fault("inputs-left-out", "add_sub", Drop("inputs"), JSON),
    Fault("one-input-twice-and-the-other-never", "add_sub", _set_first(name="A")),
    Fault("unknown-output", "identity_int32", _list_outputs("NO_SUCH_OUTPUT"), JSON),
    Fault(
        "output-in-lower-case",
        "identity_int32",
        Set("outputs.0.name", str.lower),
        start=with_own_names(list_first_output),
    ),
    Fault(
        "unknown-output-beside-a-known-one",
        "add_sub",
        (Repeat("outputs.0"), Set("outputs.1.name", "PRODUCT")),
        JSON,
        start=list_first_output,
    ),
    Fault("empty-body", "multi", Body(b""), SEVERAL_INPUTS),  # to a model with one input it may be a raw request
    Fault("no-json", "identity_int32", Body(b"inputs")),
    Fault("json-cut-short", "identity_int32", Body(cut(1)), JSON),
    Fault("array-instead-of-an-object", "identity_int32", Body(enclosed(b"[", b"]")), JSON),
    Fault("inputs-no-array", "identity_int32", Set("inputs", "INPUT"), JSON),
    Fault("one-element-too-few", "identity_int32", _set_first(data=[1, 2])),
    Fault("one-element-too-many", "identity_int32", _set_first(data=[1, 2, 3, 4])),
    Fault("no-elements", "identity_int32", _set_first(data=[])),
    Fault("data-left-out", "identity_int32", Drop("inputs.0.data"), ONE_INPUT),
    Fault("data-of-the-second-input-left-out", "add_sub", Drop("inputs.1.data")),
    *_fill_member("inputs", "inputs", {"null": None, "an-object": {}, "of-null": [None]}),
    *_fill_member(
        *("data", "inputs.0.data"),
        {"null": None, "an-object": {}, "a-number": 7, "an-empty-string": "", "of-empty-arrays": [[], [], []]},
    ),
    *_fill_member("strings", "inputs.0.data", {"null": None, "one-string": "a"}, "identity_bytes"),
    Fault("one-string-too-few", "identity_bytes", _set_first(data=["a", "b"])),
    Fault("one-item-for-a-batch-of-two", "batching", _set_first(shape=[2, 3], data=[1, 2, 3])),
    Fault("nested-array-too-short", "rank2", _set_first(shape=[2, 2], data=[[1, 2], [3]])),
    Fault("nested-array-too-long", "rank2", _set_first(shape=[2, 2], data=[[1, 2], [3, 4, 5]])),
)
IMPOSSIBLE_REQUESTS_TO_DEPLOYED_MODELS = (
    Fault("last-element-missing", None, Set("inputs.0.data", drop_last_element), JSON),
    Fault("last-item-missing", None, Set("inputs.0", drop_last_item), SEVERAL_DIMENSIONS),
    Fault(
        "last-nested-element-missing",
        None,
        Set("inputs.0.data", drop_last_nested_element),
        SEVERAL_DIMENSIONS,
        start=nest_first_input,
    ),
    Fault("one-item-too-many", None, Set("inputs.0", repeat_last_item), JSON),
    Fault("first-dimension-right-in-64-bits", None, Set("inputs.0.shape.0", plus(2**64)), SOME_DIMENSION),
)
# No document specifies how a server coerces a word, or null, to an integer.
WORDS_FOR_INTEGERS = (
    Fault("elements-of-another-type", "identity_int32", _set_first(data=["a", "b", "c"])),
    Fault("one-word-among-integers", "identity_int32", _set_first(data=[1, "b", 3])),
    Fault("null-among-integers", "identity_int32", _set_first(data=[1, None, 3])),
    Fault("null-among-strings", "identity_bytes", _set_first(data=["a", None, "c"])),
    Fault("word-for-the-first-number", None, Set("inputs.0.data.0", "word"), Fit(inputs=SCORE_DATATYPES, is_json=True)),
    Fault("null-for-the-first-number", None, Set("inputs.0.data.0", None), Fit(inputs=SCORE_DATATYPES, is_json=True)),
    Fault("word-for-the-first-integer", None, Set(f"{FIRST_INTEGERS}.data.0", "word"), SOME_INTEGERS),
    Fault("integer-right-in-its-low-bits", None, Set(FIRST_INTEGERS, exceed_range), SOME_INTEGERS),
)
# A server may assign the misnamed input to the only input that is missing.
_MISNAMED_INPUTS = (
    Fault("input-under-an-unknown-name", "identity_int32", _set_first(name="NO_SUCH_INPUT"), ONE_INPUT),
    Fault("one-of-two-inputs-under-an-unknown-name", "add_sub", _set_first(name="C")),
    Fault("input-in-lower-case", "identity_int32", Set("inputs.0.name", str.lower), start=with_own_names(send_json)),
    Fault(
        "further-input-in-lower-case",
        "add_sub",
        (Repeat("inputs.0"), Set("inputs.-1.name", str.lower), Set("inputs.-1.data", [70, 80, 90])),
        start=with_own_names(send_json),
    ),
)
METADATA_CONFLICTS = (
    Fault("floats-for-integers", "identity_int32", _set_first(datatype="FP32", data=[1.5, 2.5, 3.5])),
    Fault("wider-integers", "identity_int32", _set_first(datatype="INT64")),
    Fault("strings-for-integers", "identity_int32", _set_first(datatype="BYTES", data=["a", "b", "c"])),
    Fault("integers-for-strings", "identity_bytes", _set_first(datatype="INT32", data=[1, 2, 3])),
    Fault("unknown-datatype", "identity_int32", _set_first(datatype="INTEGER"), JSON),
    Fault("datatype-in-lower-case", "identity_int32", Set("inputs.0.datatype", str.lower), JSON),
    Fault("dimensions-exchanged", "fixed", _set_first(shape=[3, 2])),
    Fault("one-dimension-less", "fixed", _set_first(shape=[6])),
    Fault("one-dimension-more", "fixed", _set_first(shape=[1, 2, 3])),
    Fault("more-elements-than-the-model-takes", "fixed", _set_first(shape=[3, 3], data=[1, 2, 3, 4, 5, 6, 7, 8, 9])),
    Fault("batch-dimension-missing", "batching", _set_first(shape=[3], data=[1, 2, 3])),
    Fault(
        "input-that-the-model-does-not-have",
        "add_sub",
        (Repeat("inputs.0"), Set("inputs.-1.name", "NO_SUCH_INPUT")),
        JSON,
    ),
    Fault("unknown-input-with-signs", "add_sub", (Repeat("inputs.0"), Set("inputs.-1.name", SPECIAL_CHARACTERS))),
    Fault(
        "integers-of-a-wider-datatype",
        None,
        Set(f"{FIRST_NARROW_INTEGERS}.datatype", WIDER.get),
        Fit(some_input=_NARROW_INTEGERS, is_json=True),
    ),
    Fault("fixed-dimension-one-larger", None, (), JSON, start=enlarge_fixed_dimension),
)
BINARY_METADATA_CONFLICTS = (
    Fault(
        "binary-floats-for-integers",
        "identity_int32",
        _write_binary("FP32", [3], pack("<3f", 1.5, 2.5, 3.5)),
        needs=BINARY,
    ),
    Fault(
        "binary-integers-of-eight-bytes",
        "identity_int32",
        _write_binary("INT64", [3], pack("<3q", 1, 2, 3)),
        needs=BINARY,
    ),
    Fault("binary-dimensions-exchanged", "fixed", _write_binary("INT32", [3, 2], pack("<6i", *range(6))), needs=BINARY),
    Fault("binary-elements-too-many", "fixed", _write_binary("INT32", [3, 3], pack("<9i", *range(9))), needs=BINARY),
)
# Each has as many elements as a lenient server would expect (from a variable dimension of metadata, a product, a batch
# size); `tensors` has the shape that such a server would read.
NEGATIVE_DIMENSIONS = (
    Fault("negative-dimension", "identity_int32", _set_first(shape=[-3], data=[1, 2, 3]), tensors=fill_with_numbers(3)),
    Fault(
        "minus-one-for-any-number",
        "identity_int32",
        _set_first(shape=[-1], data=[1, 2, 3]),
        tensors=fill_with_numbers(3),
    ),
    Fault(
        "two-negative-dimensions",
        "rank2",
        _set_first(shape=[-2, -3], data=[1, 2, 3, 4, 5, 6]),
        tensors=fill_with_numbers(2, 3),
    ),
    Fault(
        "negative-batch",
        "batching",
        _set_first(shape=[-1, 3], data=[1, 2, 3, 4, 5, 6]),
        tensors=fill_with_numbers(2, 3),
    ),
    Fault(
        "binary-minus-one-for-any-number",
        "cast_int32_fp32",
        _write_binary("INT32", [-1], pack("<3i", 1, 2, 3)),
        start=send_binary,
        tensors=fill_with_numbers(3),
        needs=BINARY,
    ),
    Fault("minus-one-for-the-first-dimension", None, Set("inputs.0.shape.0", -1), SOME_DIMENSION),
    Fault("first-dimension-negated", None, Set("inputs.0.shape.0", times(-1)), SOME_DIMENSION),
)
# Data with as many elements as the shape, nested in another way; the numbers are 1, 2, 3, ...
WRONG_NESTINGS = (
    *(
        Fault(name, role, _set_first(shape=list(shape), data=data), tensors=fill_with_numbers(*shape))
        for name, role, shape, data in (
            ("first-array-too-long", "rank2", (2, 2), [[1, 2, 3], [4]]),
            ("last-array-too-long", "rank2", (2, 2), [[1], [2, 3, 4]]),
            ("first-of-three-empty", "rank2", (3, 2), [[], [1, 2, 3], [4, 5, 6]]),
            ("rows-for-columns", "rank2", (2, 3), [[1, 2], [3, 4], [5, 6]]),
            ("inner-array-too-long", "rank3", (2, 2, 2), [[[1, 2, 3], [4]], [[5, 6], [7, 8]]]),
            ("items-of-a-batch-too-long", "batching", (2, 3), [[1, 2, 3, 4], [5, 6]]),
            ("array-beside-elements", "rank2", (2, 2), [[1, 2], 3, 4]),
        )
    ),
    Fault(
        "element-in-the-second-array",
        None,
        Set("inputs.0.data", move_element_to_second_array),
        SEVERAL_DIMENSIONS,
        start=nest_first_input,
        tensors=sample_inputs,
    ),
)
# name in a row's id, path of a member -> values of another type than the member has
_OTHER_TYPES: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("name", "inputs.0.name"): {"null": None, "a-number": 0},
    ("datatype", "inputs.0.datatype"): {"null": None, "a-number": 32},
    ("shape", "inputs.0.shape"): {
        "null": None,
        "a-number": 3,
        "a-string": "3",
        "an-object": {"0": 3},
        "nested": [[3]],
        "of-null": [None],
        "of-a-string": ["3"],
        "of-a-fraction": [3.5],
    },
    ("outputs", "outputs"): {"a-string": "OUTPUT", "an-object": {"name": "OUTPUT"}, "of-a-name": ["OUTPUT"]},
    ("output-name", "outputs.0.name"): {"null": None, "a-number": 0},
    ("id", "id"): {"a-number": 7, "an-object": {}},
    ("parameters", "parameters"): {"a-string": "none", "an-array": []},
    ("input-parameters", "inputs.0.parameters"): {"an-array": []},
    ("output-parameters", "outputs.0.parameters"): {"an-array": []},
}
INCOMPLETE_REQUESTS = (
    Fault("input-without-datatype", "identity_int32", Drop("inputs.0.datatype"), JSON),
    Fault("strings-without-datatype", "identity_bytes", Drop("inputs.0.datatype")),
    Fault("second-input-without-datatype", "add_sub", Drop("inputs.1.datatype")),
    Fault("input-without-shape", "identity_int32", Drop("inputs.0.shape"), JSON),
    Fault("second-input-without-shape", "add_sub", Drop("inputs.1.shape")),
    Fault("fixed-input-without-shape", "fixed", Drop("inputs.0.shape")),
    Fault("input-without-name", "identity_int32", Drop("inputs.0.name"), JSON),
    Fault("second-input-without-name", "add_sub", Drop("inputs.1.name")),
    Fault("shape-of-true", "identity_int32", _set_first(shape=[True], data=[7])),
    *(fault for member, values in _OTHER_TYPES.items() for fault in _fill_member(*member, values)),
    Fault("output-without-name", "identity_int32", Set("outputs", [{}]), JSON),
    Fault("second-output-without-name", "add_sub", Set("outputs", [{"name": "SUM"}, {}])),
    Fault("dimensions-in-strings", None, Set("inputs.0.shape", write_as_strings), SOME_DIMENSION),
)
# Optional members that are null, which a server may read as absent: only the form of a refusal is judged.
NULL_MEMBERS = (
    *(
        fault
        for name, path in (
            ("id", "id"),
            ("outputs", "outputs"),
            ("parameters", "parameters"),
            ("input-parameters", "inputs.0.parameters"),
            ("output-parameters", "outputs.0.parameters"),
        )
        for fault in _fill_member(name, path, {"null": None})
    ),
    Fault("binary-data-output-null", "identity_int32", Set("parameters", {"binary_data_output": None}), needs=BINARY),
    *(
        Fault(
            f"{parameter.replace('_', '-')}-null",
            "identity_fp32",
            Set("outputs.0.parameters", {parameter: None}),
            start=list_first_output,
            needs=needs,
        )
        for parameter, needs in (("binary_data", BINARY), ("classification", CLASSES))
    ),
)
REPEATED_TENSORS = (
    Fault("output-twice", "identity_int32", Repeat("outputs.0"), JSON, start=list_first_output),
    Fault("one-of-two-outputs-twice", "add_sub", _list_outputs("SUM", "DIFFERENCE", "SUM")),
    Fault("input-twice", "identity_int32", Repeat("inputs.0"), JSON),
    Fault("input-twice-with-other-data", "identity_int32", (Repeat("inputs.0"), Set("inputs.1.data", [7, 8, 9]))),
    Fault("one-of-two-inputs-twice", "add_sub", Repeat("inputs.1", before=0)),
)

MISNAMED_INPUTS = make_refusals("OIP-SIGNATURE", send_json, _MISNAMED_INPUTS, sample_inputs)
REFUSALS: tuple[Refusal, ...] = (
    *make_refusals("OIP-JSON-STRICT", send_json, ALMOST_JSON, sample_inputs),
    *make_refusals("OIP-REFUSAL", send_json, IMPOSSIBLE_REQUESTS),
    *make_refusals("OIP-RANGE", send_json, WORDS_FOR_INTEGERS),
    *MISNAMED_INPUTS,
    *make_refusals("OIP-SIGNATURE", send_json, METADATA_CONFLICTS),
    *make_refusals("OIP-SIGNATURE", send_binary, BINARY_METADATA_CONFLICTS),
    *make_refusals("OIP-DIMENSION-NEGATIVE", send_json, NEGATIVE_DIMENSIONS, sample_inputs),
    *make_refusals("OIP-NESTING", send_json, WRONG_NESTINGS),
    *make_refusals("OIP-MEMBER-MISSING", send_json, INCOMPLETE_REQUESTS),
    *make_refusals("OIP-TWICE", send_json, REPEATED_TENSORS),
    *make_refusals("OIP-REFUSAL", send_json, IMPOSSIBLE_REQUESTS_TO_DEPLOYED_MODELS),
)
