"""Requests with a single fault each: no server can execute them, or they contradict the metadata of the model.

Most are plain JSON, so that servers without the extensions can receive them as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any
from urllib.parse import quote

from conformance.checks.errors.deployed_requests import DEPLOYED_MODEL_REFUSALS, sample_inputs
from conformance.checks.support.refusals import Refusal
from conformance.roles.model import MessageBuilder, Model
from conformance.spec.extensions import BINARY
from conformance.spec.fit import ANY, JSON, Fit
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor

FaultyRequest = tuple[str, MessageBuilder, str]

NO_MODEL = "no_model_of_this_name"
# Characters with a meaning in formatters, shells and templates; a server repeats names in its messages.
SPECIAL_CHARACTERS = "no%d+{0}${x}%s"


def edit_request(change: Callable[[dict[str, Any]], object]) -> MessageBuilder:
    """Return a builder of a JSON request: a valid document, modified by `change`."""
    return lambda model: model.request(send="json").encode_with(change)


def edit_first_input(**members: Any) -> MessageBuilder:
    """Return a builder of a JSON request: a valid request, with `members` set in its first input."""
    return edit_request(lambda document: document["inputs"][0].update(members))


def edit_text(change: Callable[[bytes], bytes]) -> MessageBuilder:
    """Return a builder of a JSON request: a valid text, modified by `change`."""

    def build(model: Model) -> Message:
        message = model.request(send="json").message()
        return message.with_body(change(message.body))

    return build


def send_to_unknown_model(model: Model) -> Message:
    """Return a valid request to a model that does not exist."""
    return replace(model.request(send="json").message(), path=f"/v2/models/{NO_MODEL}/infer")


def send_to_model_with_special_characters(model: Model) -> Message:
    """Return a valid request to a model that does not exist and has special characters in its name."""
    return replace(model.request(send="json").message(), path=f"/v2/models/{quote(SPECIAL_CHARACTERS, safe='')}/infer")


def request_unknown_metadata(_: Model) -> Message:
    """Return a request for the metadata of a model that does not exist."""
    return Message(f"/v2/models/{NO_MODEL}", method="GET")


def request_first_output_with(*names: str) -> MessageBuilder:
    """Return a builder of a JSON request that lists the first output and then `names`.

    Without `names`, the request lists the first output twice.
    """

    def build(model: Model) -> Message:
        first = model.role.outputs[0].name
        listed = [{"name": name} for name in (first, *(names or (first,)))]
        return model.request(send="json").encode_with(lambda document: document.update(outputs=listed))

    return build


def add_unknown_input(model: Model) -> Message:
    """Return a valid JSON request with an additional input that the model does not have."""
    name = "NO_SUCH_INPUT" if any(spec.name == "C" for spec in model.role.inputs) else "C"
    further = {"name": name}
    return edit_request(lambda document: document["inputs"].append({**document["inputs"][0], **further}))(model)


def add_input_with_special_characters(model: Model) -> Message:
    """Return a valid JSON request with an additional unknown input that has special characters in its name."""
    return edit_request(
        lambda document: document["inputs"].append({**document["inputs"][0], "name": SPECIAL_CHARACTERS})
    )(model)


def write_datatype_in_lower_case(model: Model) -> Message:
    """Return a JSON request that is valid except that the datatype of its first input is in lower case."""
    return edit_first_input(datatype=model.role.inputs[0].datatype.lower())(model)


def send_other_datatype(datatype: str, values: Sequence[Any]) -> MessageBuilder:
    """Return a builder of a binary request whose input has another datatype than the model's, with matching data."""
    return lambda model: model.request([Tensor.from_values(model.role.inputs[0].name, datatype, values)]).message()


def reshape_input(shape: Sequence[int]) -> MessageBuilder:
    """Return a builder of a binary request whose input has another shape than the model's, with matching data."""

    def build(model: Model) -> Message:
        spec = model.role.inputs[0]
        count = 1
        for dimension in shape:
            count *= dimension
        return model.request([Tensor.from_values(spec.name, spec.datatype, list(range(count)), shape)]).message()

    return build


# Faults that do not depend on a role's signature; these also go to deployed models.
FIT_BY_FAULT: Mapping[str, Fit] = {
    **dict.fromkeys(
        (
            *("comma-behind-the-last-member", "text-behind-the-json", "comment-in-the-json"),
            *("unknown-model", "no-inputs", "inputs-left-out"),
            *("unknown-output", "unknown-output-beside-a-known-one", "json-cut-short"),
            *("array-instead-of-an-object", "inputs-no-array", "unknown-datatype", "datatype-in-lower-case"),
            *("input-that-the-model-does-not-have", "input-without-datatype", "input-without-shape"),
            *("input-without-name", "output-without-name", "output-twice", "input-twice"),
        ),
        JSON,
    ),
    "metadata-of-an-unknown-model": ANY,
    "empty-body": Fit(min_inputs=2, is_json=True),  # to a model with one input it may be a raw request
    "input-under-an-unknown-name": Fit(max_inputs=1, is_json=True),  # with several inputs, the first may be optional
}

# Requests with binary data.
EXTENSIONS_BY_FAULT: Mapping[str, tuple[str, ...]] = dict.fromkeys(
    (
        *("binary-floats-for-integers", "binary-integers-of-eight-bytes", "binary-dimensions-exchanged"),
        *("binary-elements-too-many", "binary-minus-one-for-any-number"),
    ),
    BINARY,
)


def _build_refusal(
    entry: FaultyRequest, requirement: str, tensors: Callable[[Model], Sequence[Tensor]] | None = None
) -> Refusal:
    """Return the `Refusal` of a faulty request; `tensors` returns the inputs that a lenient server reads."""
    fault, make, role = entry
    return Refusal(
        fault, requirement, role, make, EXTENSIONS_BY_FAULT.get(fault, ()), tensors=tensors, fit=FIT_BY_FAULT.get(fault)
    )


IMPOSSIBLE_REQUESTS: tuple[FaultyRequest, ...] = (
    ("unknown-model", send_to_unknown_model, "identity_int32"),
    ("unknown-model-with-signs", send_to_model_with_special_characters, "identity_int32"),
    ("metadata-of-an-unknown-model", request_unknown_metadata, "identity_int32"),
    ("input-missing", edit_request(lambda document: document["inputs"].pop()), "add_sub"),
    ("no-inputs", edit_request(lambda document: document.update(inputs=[])), "add_sub"),
    ("inputs-left-out", edit_request(lambda document: document.pop("inputs")), "add_sub"),
    ("one-input-twice-and-the-other-never", edit_first_input(name="A"), "add_sub"),
    (
        "unknown-output",
        edit_request(lambda document: document.update(outputs=[{"name": "NO_SUCH_OUTPUT"}])),
        "identity_int32",
    ),
    ("unknown-output-beside-a-known-one", request_first_output_with("PRODUCT"), "add_sub"),
    ("empty-body", edit_text(lambda _: b""), "multi"),
    ("no-json", edit_text(lambda _: b"inputs"), "identity_int32"),
    ("json-cut-short", edit_text(lambda body: body[:-1]), "identity_int32"),
    ("array-instead-of-an-object", edit_text(lambda body: b"[" + body + b"]"), "identity_int32"),
    ("inputs-no-array", edit_request(lambda document: document.update(inputs="INPUT")), "identity_int32"),
    ("one-element-too-few", edit_first_input(data=[1, 2]), "identity_int32"),
    ("one-element-too-many", edit_first_input(data=[1, 2, 3, 4]), "identity_int32"),
    ("no-elements", edit_first_input(data=[]), "identity_int32"),
    ("one-string-too-few", edit_first_input(data=["a", "b"]), "identity_bytes"),
    ("one-item-for-a-batch-of-two", edit_first_input(shape=[2, 3], data=[1, 2, 3]), "batching"),
    ("nested-array-too-short", edit_first_input(shape=[2, 2], data=[[1, 2], [3]]), "rank2"),
    ("nested-array-too-long", edit_first_input(shape=[2, 2], data=[[1, 2], [3, 4, 5]]), "rank2"),
)
# No document specifies how a server coerces a word to an integer.
WORDS_FOR_INTEGERS: tuple[FaultyRequest, ...] = (
    ("elements-of-another-type", edit_first_input(data=["a", "b", "c"]), "identity_int32"),
    ("one-word-among-integers", edit_first_input(data=[1, "b", 3]), "identity_int32"),
)
# A server may assign the misnamed input to the only input that is missing.
MISNAMED_INPUTS: tuple[Refusal, ...] = tuple(
    Refusal(fault, "OIP-SIGNATURE", role, make, tensors=sample_inputs, fit=FIT_BY_FAULT.get(fault))
    for fault, make, role in (
        ("input-under-an-unknown-name", edit_first_input(name="NO_SUCH_INPUT"), "identity_int32"),
        ("one-of-two-inputs-under-an-unknown-name", edit_first_input(name="C"), "add_sub"),
    )
)
METADATA_CONFLICTS: tuple[FaultyRequest, ...] = (
    ("floats-for-integers", edit_first_input(datatype="FP32", data=[1.5, 2.5, 3.5]), "identity_int32"),
    ("wider-integers", edit_first_input(datatype="INT64"), "identity_int32"),
    ("strings-for-integers", edit_first_input(datatype="BYTES", data=["a", "b", "c"]), "identity_int32"),
    ("integers-for-strings", edit_first_input(datatype="INT32", data=[1, 2, 3]), "identity_bytes"),
    ("binary-floats-for-integers", send_other_datatype("FP32", [1.5, 2.5, 3.5]), "identity_int32"),
    ("binary-integers-of-eight-bytes", send_other_datatype("INT64", [1, 2, 3]), "identity_int32"),
    ("unknown-datatype", edit_first_input(datatype="INTEGER"), "identity_int32"),
    ("datatype-in-lower-case", write_datatype_in_lower_case, "identity_int32"),
    ("dimensions-exchanged", edit_first_input(shape=[3, 2]), "fixed"),
    ("one-dimension-less", edit_first_input(shape=[6]), "fixed"),
    ("one-dimension-more", edit_first_input(shape=[1, 2, 3]), "fixed"),
    ("more-elements-than-the-model-takes", edit_first_input(shape=[3, 3], data=[1, 2, 3, 4, 5, 6, 7, 8, 9]), "fixed"),
    ("binary-dimensions-exchanged", reshape_input([3, 2]), "fixed"),
    ("binary-elements-too-many", reshape_input([3, 3]), "fixed"),
    ("batch-dimension-missing", edit_first_input(shape=[3], data=[1, 2, 3]), "batching"),
    ("input-that-the-model-does-not-have", add_unknown_input, "add_sub"),
    ("unknown-input-with-signs", add_input_with_special_characters, "add_sub"),
)


def send_binary_with_shape(shape: Sequence[int], stated: Sequence[int]) -> MessageBuilder:
    """Return a builder of a binary request with data for `shape`, whose JSON has the shape `stated`."""

    def build(model: Model) -> Message:
        request = model.request(fill_with_numbers(shape)(model))
        return request.encode_with(lambda document: document["inputs"][0].update(shape=list(stated)))

    return build


# Each has as many elements as a lenient server would expect (from a variable dimension of metadata, a product, a batch
# size); the last entry is the shape that such a server would read.
NEGATIVE_DIMENSIONS: tuple[tuple[str, MessageBuilder, str, Sequence[int]], ...] = (
    ("negative-dimension", edit_first_input(shape=[-3], data=[1, 2, 3]), "identity_int32", (3,)),
    ("minus-one-for-any-number", edit_first_input(shape=[-1], data=[1, 2, 3]), "identity_int32", (3,)),
    ("two-negative-dimensions", edit_first_input(shape=[-2, -3], data=[1, 2, 3, 4, 5, 6]), "rank2", (2, 3)),
    ("negative-batch", edit_first_input(shape=[-1, 3], data=[1, 2, 3, 4, 5, 6]), "batching", (2, 3)),
    ("binary-minus-one-for-any-number", send_binary_with_shape((3,), (-1,)), "cast_int32_fp32", (3,)),
)


def fill_with_numbers(shape: Sequence[int]) -> Callable[[Model], Sequence[Tensor]]:
    """Return a builder of an input of this shape with the elements 1, 2, 3, ..."""
    return lambda model: [model.tensor(list(range(1, 1 + prod(shape))), shape)]


# Data with as many elements as the shape, nested in another way; the numbers are 1, 2, 3, ...
WRONG_NESTINGS: tuple[tuple[str, str, tuple[int, ...], Sequence[Any]], ...] = (
    ("first-array-too-long", "rank2", (2, 2), [[1, 2, 3], [4]]),
    ("last-array-too-long", "rank2", (2, 2), [[1], [2, 3, 4]]),
    ("first-of-three-empty", "rank2", (3, 2), [[], [1, 2, 3], [4, 5, 6]]),
    ("rows-for-columns", "rank2", (2, 3), [[1, 2], [3, 4], [5, 6]]),
    ("inner-array-too-long", "rank3", (2, 2, 2), [[[1, 2, 3], [4]], [[5, 6], [7, 8]]]),
    ("items-of-a-batch-too-long", "batching", (2, 3), [[1, 2, 3, 4], [5, 6]]),
    ("array-beside-elements", "rank2", (2, 2), [[1, 2], 3, 4]),
)


def remove_member(member: str, index: int = 0) -> MessageBuilder:
    """Return a builder of a JSON request in which the input at `index` lacks a member."""
    return edit_request(lambda document: document["inputs"][index].pop(member))


def request_outputs(*outputs: dict[str, Any]) -> MessageBuilder:
    """Return a builder of a JSON request with these objects as its requested outputs."""
    return edit_request(lambda document: document.update(outputs=list(outputs)))


INCOMPLETE_REQUESTS: tuple[FaultyRequest, ...] = (
    ("input-without-datatype", remove_member("datatype"), "identity_int32"),
    ("strings-without-datatype", remove_member("datatype"), "identity_bytes"),
    ("second-input-without-datatype", remove_member("datatype", 1), "add_sub"),
    ("input-without-shape", remove_member("shape"), "identity_int32"),
    ("second-input-without-shape", remove_member("shape", 1), "add_sub"),
    ("fixed-input-without-shape", remove_member("shape"), "fixed"),
    ("input-without-name", remove_member("name"), "identity_int32"),
    ("second-input-without-name", remove_member("name", 1), "add_sub"),
    ("datatype-null", edit_first_input(datatype=None), "identity_int32"),
    ("datatype-a-number", edit_first_input(datatype=32), "identity_int32"),
    ("shape-a-number", edit_first_input(shape=3), "identity_int32"),
    ("shape-a-string", edit_first_input(shape="3"), "identity_int32"),
    ("shape-null", edit_first_input(shape=None), "identity_int32"),
    ("shape-an-object", edit_first_input(shape={"0": 3}), "identity_int32"),
    ("shape-nested", edit_first_input(shape=[[3]]), "identity_int32"),
    ("shape-of-a-string", edit_first_input(shape=["3"]), "identity_int32"),
    ("shape-of-a-fraction", edit_first_input(shape=[3.5]), "identity_int32"),
    ("shape-of-true", edit_first_input(shape=[True], data=[7]), "identity_int32"),
    ("shape-of-null", edit_first_input(shape=[None]), "identity_int32"),
    ("output-without-name", request_outputs({}), "identity_int32"),
    ("second-output-without-name", request_outputs({"name": "SUM"}, {}), "add_sub"),
)
REPEATED_TENSORS: tuple[FaultyRequest, ...] = (
    ("output-twice", request_first_output_with(), "identity_int32"),
    ("one-of-two-outputs-twice", request_outputs({"name": "SUM"}, {"name": "DIFFERENCE"}, {"name": "SUM"}), "add_sub"),
    (
        "input-twice",
        edit_request(lambda document: document["inputs"].append(document["inputs"][0])),
        "identity_int32",
    ),
    (
        "input-twice-with-other-data",
        edit_request(lambda document: document["inputs"].append({**document["inputs"][0], "data": [7, 8, 9]})),
        "identity_int32",
    ),
    (
        "one-of-two-inputs-twice",
        edit_request(lambda document: document["inputs"].insert(0, document["inputs"][1])),
        "add_sub",
    ),
)

# Extensions of JSON that some parsers accept.
ALMOST_JSON: tuple[FaultyRequest, ...] = (
    ("comma-behind-the-last-member", edit_text(lambda body: body[:-1] + b",}"), "identity_int32"),
    ("text-behind-the-json", edit_text(lambda body: body + b" x"), "identity_int32"),
    ("quotes-of-the-wrong-kind", edit_text(lambda body: body.replace(b'"', b"'")), "identity_int32"),
    ("comment-in-the-json", edit_text(lambda body: b"/* a comment */" + body), "identity_int32"),
)

REFUSALS: tuple[Refusal, ...] = (
    *[_build_refusal(entry, "OIP-JSON-STRICT", tensors=sample_inputs) for entry in ALMOST_JSON],
    *[_build_refusal(entry, "OIP-REFUSAL") for entry in IMPOSSIBLE_REQUESTS],
    *[_build_refusal(entry, "OIP-RANGE") for entry in WORDS_FOR_INTEGERS],
    *MISNAMED_INPUTS,
    *[_build_refusal(entry, "OIP-SIGNATURE") for entry in METADATA_CONFLICTS],
    *[
        Refusal(
            fault,
            "OIP-DIMENSION-NEGATIVE",
            role,
            make,
            EXTENSIONS_BY_FAULT.get(fault, ()),
            tensors=fill_with_numbers(shape),
        )
        for fault, make, role, shape in NEGATIVE_DIMENSIONS
    ],
    *[
        Refusal(
            fault,
            "OIP-NESTING",
            role,
            edit_first_input(shape=list(shape), data=data),
            (),
            tensors=fill_with_numbers(shape),
        )
        for fault, role, shape, data in WRONG_NESTINGS
    ],
    *[_build_refusal(entry, "OIP-MEMBER-MISSING") for entry in INCOMPLETE_REQUESTS],
    *[_build_refusal(entry, "OIP-TWICE") for entry in REPEATED_TENSORS],
    *DEPLOYED_MODEL_REFUSALS,
)
