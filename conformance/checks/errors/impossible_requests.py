"""Requests that the base protocol cannot carry out, or that contradict a model's metadata, each by one fault.

They are plain JSON but for a few, so that a server without the extensions is asked the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from conformance.checks.errors.own_requests import OWN, sampled
from conformance.checks.support.refusals import Refusal
from conformance.roles.model import Make, Model
from conformance.terms.fit import ANY, JSON, Fit
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor

Entry = tuple[str, Make, str]

NO_MODEL = "no_model_of_this_name"


def edited(edit: Callable[[dict[str, Any]], object]) -> Make:
    """Return what makes a good JSON request changed by `edit`."""
    return lambda model: model.request(send="json").edited(edit)


def first_input(**members: Any) -> Make:
    """Return what makes a good JSON request with other members in its first input."""
    return edited(lambda document: document["inputs"][0].update(members))


def text(change: Callable[[bytes], bytes]) -> Make:
    """Return what makes a good JSON request with its text changed."""

    def make(model: Model) -> Message:
        message = model.request(send="json").message()
        return message.with_body(change(message.body))

    return make


def elsewhere(model: Model) -> Message:
    """Return a good request, sent to a model that does not exist."""
    return replace(model.request(send="json").message(), path=f"/v2/models/{NO_MODEL}/infer")


def metadata_of_nothing(_: Model) -> Message:
    """Return a request for the metadata of a model that does not exist."""
    return Message(f"/v2/models/{NO_MODEL}", method="GET")


def listing_the_first_and(*names: str) -> Make:
    """Return what makes a good JSON request that lists the first output, and these beside it; none is that one again."""

    def make(model: Model) -> Message:
        first = model.role.outputs[0].name
        listed = [{"name": name} for name in (first, *(names or (first,)))]
        return model.request(send="json").edited(lambda document: document.update(outputs=listed))

    return make


def with_a_further_input(model: Model) -> Message:
    """Return a good JSON request with one more input, which the model does not have."""
    name = "NO_SUCH_INPUT" if any(spec.name == "C" for spec in model.role.inputs) else "C"
    further = {"name": name}
    return edited(lambda document: document["inputs"].append({**document["inputs"][0], **further}))(model)


def in_lower_case(model: Model) -> Message:
    """Return a good JSON request but for the datatype of its first input, which is in lower case."""
    return first_input(datatype=model.role.inputs[0].datatype.lower())(model)


def sent_as(datatype: str, values: Sequence[Any]) -> Make:
    """Return what makes a binary request whose input has another datatype, and the bytes that this asks for."""
    return lambda model: model.request([Tensor.of(model.role.inputs[0].name, datatype, values)]).message()


def shaped(shape: Sequence[int]) -> Make:
    """Return what makes a binary request whose input has another shape, and the bytes that this asks for."""

    def make(model: Model) -> Message:
        spec = model.role.inputs[0]
        count = 1
        for dimension in shape:
            count *= dimension
        return model.request([Tensor.of(spec.name, spec.datatype, list(range(count)), shape)]).message()

    return make


# Those that follow the model's signature, and so go to deployed models, too.
FITS: Mapping[str, Fit] = {
    **dict.fromkeys(
        (
            *("comma-behind-the-last-member", "text-behind-the-json", "comment-in-the-json"),
            *("unknown-model", "no-inputs", "inputs-left-out"),
            *("unknown-output", "unknown-output-beside-a-known-one", "json-cut-short"),
            *("inputs-no-array", "unknown-datatype", "datatype-in-lower-case"),
            *("input-that-the-model-does-not-have", "input-without-datatype", "input-without-shape"),
            *("input-without-name", "output-without-name", "output-twice", "input-twice"),
        ),
        JSON,
    ),
    "metadata-of-an-unknown-model": ANY,
    "empty-body": Fit(min_inputs=2, is_json=True),  # of one input it may be a raw request
    "input-under-an-unknown-name": Fit(max_inputs=1, is_json=True),  # of several, the first may be optional
}


def _refusal(entry: Entry, requirement: str, tensors: Callable[[Model], Sequence[Tensor]] | None = None) -> Refusal:
    fault, make, role = entry
    return Refusal(fault, requirement, role, make, tensors=tensors, fit=FITS.get(fault))


IMPOSSIBLE: tuple[Entry, ...] = (
    ("unknown-model", elsewhere, "identity_int32"),
    ("metadata-of-an-unknown-model", metadata_of_nothing, "identity_int32"),
    ("input-missing", edited(lambda document: document["inputs"].pop()), "add_sub"),
    ("no-inputs", edited(lambda document: document.update(inputs=[])), "add_sub"),
    ("inputs-left-out", edited(lambda document: document.pop("inputs")), "add_sub"),
    ("one-input-twice-and-the-other-never", first_input(name="A"), "add_sub"),
    (
        "unknown-output",
        edited(lambda document: document.update(outputs=[{"name": "NO_SUCH_OUTPUT"}])),
        "identity_int32",
    ),
    ("unknown-output-beside-a-known-one", listing_the_first_and("PRODUCT"), "add_sub"),
    ("empty-body", text(lambda _: b""), "multi"),
    ("no-json", text(lambda _: b"inputs"), "identity_int32"),
    ("json-cut-short", text(lambda body: body[:-1]), "identity_int32"),
    ("array-instead-of-an-object", text(lambda body: b"[" + body + b"]"), "identity_int32"),
    ("inputs-no-array", edited(lambda document: document.update(inputs="INPUT")), "identity_int32"),
    ("one-element-too-few", first_input(data=[1, 2]), "identity_int32"),
    ("one-element-too-many", first_input(data=[1, 2, 3, 4]), "identity_int32"),
    ("no-elements", first_input(data=[]), "identity_int32"),
    ("one-string-too-few", first_input(data=["a", "b"]), "identity_bytes"),
    ("one-item-for-a-batch-of-two", first_input(data=[1, 2, 3]), "batching"),
    ("nested-array-too-short", first_input(shape=[2, 2], data=[[1, 2], [3]]), "rank2"),
    ("nested-array-too-long", first_input(shape=[2, 2], data=[[1, 2], [3, 4, 5]]), "rank2"),
)
# How a word becomes an integer where a server coerces it, no document says.
WORDS: tuple[Entry, ...] = (
    ("elements-of-another-type", first_input(data=["a", "b", "c"]), "identity_int32"),
    ("one-word-among-integers", first_input(data=[1, "b", 3]), "identity_int32"),
)
# Whoever takes the input that alone is left understands them.
MISNAMED: tuple[Refusal, ...] = tuple(
    Refusal(fault, "OIP-SIGNATURE", role, make, tensors=sampled, fit=FITS.get(fault))
    for fault, make, role in (
        ("input-under-an-unknown-name", first_input(name="NO_SUCH_INPUT"), "identity_int32"),
        ("one-of-two-inputs-under-an-unknown-name", first_input(name="C"), "add_sub"),
    )
)
CONTRADICTING: tuple[Entry, ...] = (
    ("floats-for-integers", first_input(datatype="FP32", data=[1.5, 2.5, 3.5]), "identity_int32"),
    ("wider-integers", first_input(datatype="INT64"), "identity_int32"),
    ("strings-for-integers", first_input(datatype="BYTES", data=["a", "b", "c"]), "identity_int32"),
    ("integers-for-strings", first_input(datatype="INT32", data=[1, 2, 3]), "identity_bytes"),
    ("binary-floats-for-integers", sent_as("FP32", [1.5, 2.5, 3.5]), "identity_int32"),
    ("binary-integers-of-eight-bytes", sent_as("INT64", [1, 2, 3]), "identity_int32"),
    ("unknown-datatype", first_input(datatype="INTEGER"), "identity_int32"),
    ("datatype-in-lower-case", in_lower_case, "identity_int32"),
    ("dimensions-exchanged", first_input(shape=[3, 2]), "fixed"),
    ("one-dimension-less", first_input(shape=[6]), "fixed"),
    ("one-dimension-more", first_input(shape=[1, 2, 3]), "fixed"),
    ("more-elements-than-the-model-takes", first_input(shape=[3, 3], data=[1, 2, 3, 4, 5, 6, 7, 8, 9]), "fixed"),
    ("binary-dimensions-exchanged", shaped([3, 2]), "fixed"),
    ("binary-elements-too-many", shaped([3, 3]), "fixed"),
    ("batch-dimension-missing", first_input(shape=[3], data=[1, 2, 3]), "batching"),
    ("input-that-the-model-does-not-have", with_a_further_input, "add_sub"),
)


def binary_under(shape: Sequence[int], written: Sequence[int]) -> Make:
    """Return what makes a binary request with 1, 2, 3 and so on of one shape, and another one written into its JSON."""

    def make(model: Model) -> Message:
        request = model.request(counted(shape)(model))
        return request.edited(lambda document: document["inputs"][0].update(shape=list(written)))

    return make


# Each with as many elements as some reader would take it for (the variable dimension of metadata, a product, a batch),
# and what that reader would understand.
NEGATIVE: tuple[tuple[str, Make, str, Sequence[int]], ...] = (
    ("negative-dimension", first_input(shape=[-3], data=[1, 2, 3]), "identity_int32", (3,)),
    ("minus-one-for-any-number", first_input(shape=[-1], data=[1, 2, 3]), "identity_int32", (3,)),
    ("two-negative-dimensions", first_input(shape=[-2, -3], data=[1, 2, 3, 4, 5, 6]), "rank2", (2, 3)),
    ("negative-batch", first_input(shape=[-1, 3], data=[1, 2, 3, 4, 5, 6]), "batching", (2, 3)),
    ("binary-minus-one-for-any-number", binary_under((3,), (-1,)), "cast_int32_fp32", (3,)),
)


def counted(shape: Sequence[int]) -> Callable[[Model], Sequence[Tensor]]:
    """Return what makes the input of this shape whose elements are 1, 2, 3 and so on."""
    return lambda model: [model.tensor(list(range(1, 1 + prod(shape))), shape)]


def without(member: str, place: int = 0) -> Make:
    """Return what makes a good JSON request that lacks a member of one of its inputs."""
    return edited(lambda document: document["inputs"][place].pop(member))


def asking_for(*outputs: dict[str, Any]) -> Make:
    """Return what makes a good JSON request with these objects as its outputs."""
    return edited(lambda document: document.update(outputs=list(outputs)))


INCOMPLETE: tuple[Entry, ...] = (
    ("input-without-datatype", without("datatype"), "identity_int32"),
    ("strings-without-datatype", without("datatype"), "identity_bytes"),
    ("second-input-without-datatype", without("datatype", 1), "add_sub"),
    ("input-without-shape", without("shape"), "identity_int32"),
    ("second-input-without-shape", without("shape", 1), "add_sub"),
    ("fixed-input-without-shape", without("shape"), "fixed"),
    ("input-without-name", without("name"), "identity_int32"),
    ("second-input-without-name", without("name", 1), "add_sub"),
    ("datatype-null", first_input(datatype=None), "identity_int32"),
    ("datatype-a-number", first_input(datatype=32), "identity_int32"),
    ("shape-a-number", first_input(shape=3), "identity_int32"),
    ("shape-a-string", first_input(shape="3"), "identity_int32"),
    ("shape-null", first_input(shape=None), "identity_int32"),
    ("shape-an-object", first_input(shape={"0": 3}), "identity_int32"),
    ("shape-nested", first_input(shape=[[3]]), "identity_int32"),
    ("shape-of-a-string", first_input(shape=["3"]), "identity_int32"),
    ("shape-of-a-fraction", first_input(shape=[3.5]), "identity_int32"),
    ("shape-of-true", first_input(shape=[True], data=[7]), "identity_int32"),
    ("shape-of-null", first_input(shape=[None]), "identity_int32"),
    ("output-without-name", asking_for({}), "identity_int32"),
    ("second-output-without-name", asking_for({"name": "SUM"}, {}), "add_sub"),
)
REPEATED: tuple[Entry, ...] = (
    ("output-twice", listing_the_first_and(), "identity_int32"),
    ("one-of-two-outputs-twice", asking_for({"name": "SUM"}, {"name": "DIFFERENCE"}, {"name": "SUM"}), "add_sub"),
    (
        "input-twice",
        edited(lambda document: document["inputs"].append(document["inputs"][0])),
        "identity_int32",
    ),
    (
        "input-twice-with-other-data",
        edited(lambda document: document["inputs"].append({**document["inputs"][0], "data": [7, 8, 9]})),
        "identity_int32",
    ),
    (
        "one-of-two-inputs-twice",
        edited(lambda document: document["inputs"].insert(0, document["inputs"][1])),
        "add_sub",
    ),
)

# What a parser may take beside JSON.
BEYOND_JSON: tuple[Entry, ...] = (
    ("comma-behind-the-last-member", text(lambda body: body[:-1] + b",}"), "identity_int32"),
    ("text-behind-the-json", text(lambda body: body + b" x"), "identity_int32"),
    ("quotes-of-the-wrong-kind", text(lambda body: body.replace(b'"', b"'")), "identity_int32"),
    ("comment-in-the-json", text(lambda body: b"/* a comment */" + body), "identity_int32"),
)

REFUSALS: tuple[Refusal, ...] = (
    *[_refusal(entry, "OIP-JSON-STRICT", tensors=sampled) for entry in BEYOND_JSON],
    *[_refusal(entry, "OIP-REFUSAL") for entry in IMPOSSIBLE],
    *[_refusal(entry, "OIP-RANGE") for entry in WORDS],
    *MISNAMED,
    *[_refusal(entry, "OIP-SIGNATURE") for entry in CONTRADICTING],
    *[
        Refusal(fault, "OIP-DIMENSION-NEGATIVE", role, make, tensors=counted(shape))
        for fault, make, role, shape in NEGATIVE
    ],
    *[_refusal(entry, "OIP-MEMBER-MISSING") for entry in INCOMPLETE],
    *[_refusal(entry, "OIP-TWICE") for entry in REPEATED],
    *OWN,
)
