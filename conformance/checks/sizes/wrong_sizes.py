"""The server refuses a request with wrong sizes, or answers it as if the sizes were correct."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from conformance.checks.sizes.declared_sizes import BOOLEANS
from conformance.checks.sizes.wrong_size_requests import (
    FITS,
    NUMERIC,
    REFUSALS,
    TRAILING_BYTES,
    SampleInputs,
    build_with_size,
    change_size_and_bytes,
    get_sample_inputs,
    make_sample_inputs,
    slice_input_bytes,
)
from conformance.checks.support.deployed_models import require_several_inputs, to_json
from conformance.checks.support.refusals import Refusal, expect_refused, make_refusal_rows
from conformance.discovery.control_oracle import as_tensor
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive, expect_refusal
from conformance.expect.unmet import BlockedError, NotApplicableError, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import ANY, SEVERAL_INPUTS, Fit
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import ABSENT, Message
from conformance.wire.tensor import Tensor

# ASCII strings: checks of headers judge servers that count characters instead of bytes.
ASCII = Tensor.from_values("IN_BYTES", "BYTES", ["one", "", "three"])


# --- several inputs of a deployed model ------------------------------------------------------------------------------

Resize = Callable[[list[dict[str, Any]], Sequence[Tensor]], object]


def _make_resized_inputs_refusal(
    fault: str, requirement: str, resize: Resize, tensors: SampleInputs | None = None
) -> Refusal:
    """Return the `Refusal` for a request in which `resize` makes sizes of several inputs wrong."""

    def build_request(model: Model) -> Message:
        sent = require_several_inputs(model)
        request = model.request(sent, outputs=model.build_outputs_member())
        return request.encode_with(lambda document: resize(document["inputs"], sent))

    return Refusal(fault, requirement, "", build_request, tensors=tensors, fit=SEVERAL_INPUTS)


def _move_element(inputs: list[dict[str, Any]], sent: Sequence[Tensor]) -> None:
    """Change two sizes so that the last element of the first input becomes part of the second input."""
    count = len(slice_input_bytes(sent[0]).last)
    for position, change in ((0, -count), (1, count)):
        inputs[position]["parameters"]["binary_data_size"] += change


def _set_size_at_position(position: int, size: Any) -> Resize:
    return lambda inputs, _: inputs[position].update(parameters={} if size is ABSENT else {"binary_data_size": size})


def _set_size_past_body(inputs: list[dict[str, Any]], sent: Sequence[Tensor]) -> None:
    """Set a size for the last input that exceeds the body but is right modulo 2^32."""
    inputs[-1]["parameters"]["binary_data_size"] = sent[-1].size + 2**32


def _write_size_as_string(inputs: list[dict[str, Any]], sent: Sequence[Tensor]) -> None:
    inputs[-1]["parameters"]["binary_data_size"] = str(sent[-1].size)


SEVERAL_INPUT_REFUSALS: tuple[Refusal, ...] = (
    _make_resized_inputs_refusal("size-moved-to-the-next-input", "BIN-SIZE-FALSE", _move_element, get_sample_inputs),
    _make_resized_inputs_refusal(
        "second-input-of-minus-one", "BIN-SIZE-FALSE", _set_size_at_position(1, -1), get_sample_inputs
    ),
    _make_resized_inputs_refusal(
        "last-input-beyond-the-body", "BIN-SIZE-FALSE", _set_size_past_body, get_sample_inputs
    ),
    _make_resized_inputs_refusal("last-input-of-a-size-in-a-string", "BIN-SIZE-TYPE", _write_size_as_string),
    _make_resized_inputs_refusal("last-input-without-a-size", "BIN-SIZE-MISSING", _set_size_at_position(-1, ABSENT)),
)


# --- inputs of one byte for each element ------------------------------------------------------------------------------

_ONE_BYTE_DATATYPES = frozenset({"BOOL", "INT8", "UINT8"})
PACKED_COUNT = 9  # elements: more than a byte has bits


def _build_resized_request(
    model: Model, datatypes: Collection[str], count: int, encode: Callable[[Tensor], tuple[Any, bytes]]
) -> Message:
    """Return a request that is valid except for its first input of these datatypes, which `encode` writes.

    `encode` returns the wrong size and the bytes of the input.

    Raises:
        NotApplicable: no input has one of these datatypes, or the first such input cannot have `count` elements.
    """
    tensors = list(model.build_salted_inputs(count, model.salt))
    position = next((k for k, tensor in enumerate(tensors) if tensor.datatype in datatypes), None)
    if position is None or tensors[position].elements != count:
        raise NotApplicableError(f"{model.name} accepts no {' or '.join(sorted(datatypes))} input of {count} elements")
    tensor = tensors[position]
    size, data = encode(tensor)
    tensors[position] = Tensor.from_values(tensor.name, "UINT8", np.frombuffer(data, "u1"))

    def edit_json(document: dict[str, Any]) -> None:
        document["inputs"][position] |= {
            "datatype": tensor.datatype,
            "shape": list(tensor.shape),
            "parameters": {"binary_data_size": size},
        }

    return model.request(tensors, outputs=model.build_outputs_member()).encode_with(edit_json)


def _pack_booleans_in_bits(tensor: Tensor) -> tuple[int, bytes]:
    data = np.packbits(tensor.array.reshape(-1), bitorder="little").tobytes()
    return len(data), data


ONE_BYTE_REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "booleans-of-any-model-in-bits",
        "BIN-SIZE-WRONG",
        "",
        lambda model: _build_resized_request(model, ("BOOL",), PACKED_COUNT, _pack_booleans_in_bits),
        fit=Fit(some_input=frozenset({"BOOL"})),
    ),
    Refusal(
        "true-for-one-byte-of-any-model",
        "BIN-SIZE-TYPE",
        "",
        lambda model: _build_resized_request(
            model, _ONE_BYTE_DATATYPES, 1, lambda tensor: (True, bytes(tensor.to_bytes()))
        ),
        fit=Fit(some_input=_ONE_BYTE_DATATYPES),
    ),
)


_ROWS = make_refusal_rows((*REFUSALS, *SEVERAL_INPUT_REFUSALS, *ONE_BYTE_REFUSALS))


@check("sizes.wrong-size-is-refused", answers=tuple({identity: None for row in _ROWS for identity in row.answers}))
@rows(*_ROWS)
def wrong_size_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses sizes that do not assign each byte to exactly one input."""
    expect_refused(target, model, refusal)


@check("sizes.bytes-left-over-alter-no-tensor", answers="BIN-BODY-LONG-SAFE")
@rows(*[Row(fault, (make,), role=role, fit=FITS.get(fault)) for fault, make, role in TRAILING_BYTES])
def bytes_left_over_alter_no_tensor(
    target: Target, model: Model, build_pair: Callable[[Model], tuple[Message, Message]]
) -> None:
    """The server refuses bytes after the last input, or gives the same answer as without these bytes."""
    good, bad = build_pair(model)
    _expect_refused_or_unchanged(target, model, good, bad)


@check("sizes.data-beside-a-size-shifts-no-tensor", answers="BIN-DATA-AND-SIZE-SAFE")
@rows(
    Row("two-alike", ("INPUT0", "INPUT1", [7, 8, 9]), role="raw_two_inputs"),
    Row("integers-before-booleans", ("IN_INT64", "IN_BOOL", [7, 8, 9]), role="multi"),
    Row("floats-before-integers", ("IN_FP32", "IN_INT64", [0.5, 0.25, 8.0]), role="multi"),
    Row("strings-before-booleans", ("IN_BYTES", "IN_BOOL", ["a", "b", "c"]), role="multi"),
    Row("first-of-several", ("", "", []), fit=SEVERAL_INPUTS),
)
def data_beside_a_size_shifts_no_tensor(
    target: Target, model: Model, both: str, other: str, data: list[object]
) -> None:
    """The server refuses an input with both `data` and a size, or reads the next input correctly."""
    if model.is_own_oracle:
        _expect_refused_or_either_value(target, model)
        return
    sample = {tensor.name: tensor for tensor in model.sample()}
    sample |= {tensor.name: tensor for tensor in (BOOLEANS, ASCII) if tensor.name in sample}
    request = model.request(sorted(sample.values(), key=lambda tensor: tensor.name != both), send={both, other})
    bad = request.encode_with(lambda document: document["inputs"][0].update(data=data))
    outputs = {given.name: output.name for given, output in zip(model.role.inputs, model.role.outputs, strict=True)}
    _expect_refused_or_unchanged(target, model, request.message(), bad, output_name=outputs[other])


def _expect_refused_or_either_value(target: Target, model: Model) -> None:
    """Send an input with binary data and different `data`; expect a refusal, or the answer to one of the two."""
    first, *others = require_several_inputs(model)
    other_first = replace(model, salt=model.salt + 1).sample()[0]
    request = model.request([first, *others], outputs=model.build_outputs_member())
    bad = request.encode_with(lambda document: document["inputs"][0].update(data=to_json(model, other_first)))
    _expect_refused_or_unchanged(
        target, model, request.message(), bad, alternatives=model.expected([other_first, *others])
    )


def _resize_input_at(position: int, size: object) -> Callable[[Model], tuple[Message, Message]]:
    """Return a builder of two requests: a valid one, and the same with another size for the input at `position`."""

    def build_both_requests(model: Model) -> tuple[Message, Message]:
        request = model.request(require_several_inputs(model), outputs=model.build_outputs_member())
        parameters = {} if size is ABSENT else {"binary_data_size": size}
        return request.message(), request.encode_with(
            lambda found: found["inputs"][position].update(parameters=parameters)
        )

    return build_both_requests


def _resize_named_input(name: str, size: object, *binary: str) -> Callable[[Model], tuple[Message, Message]]:
    """Return a builder of two requests: a valid one, and the same with another size for the input `name`.

    `size` is ABSENT to omit the size. `binary` names the binary inputs, in the order of the request. Where possible, no
    input is BYTES: a server that reads strings from a wrong offset finds wrong length prefixes and refuses the request.
    """

    def build_both_requests(model: Model) -> tuple[Message, Message]:
        sample = {tensor.name: tensor for tensor in model.sample()}
        sample |= {tensor.name: tensor for tensor in (BOOLEANS, ASCII) if tensor.name in sample}
        order = [*binary, *[key for key in sample if key not in binary]]
        request = model.request([sample[key] for key in order], send=binary)

        def edit_json(document: dict[str, Any]) -> None:
            item = next(item for item in document["inputs"] if item["name"] == name)
            item["parameters"] = {} if size is ABSENT else {"binary_data_size": size}

        return request.message(), request.encode_with(edit_json)

    return build_both_requests


@check("sizes.size-missing-or-of-another-type-alters-no-tensor", answers="BIN-SIZE-MISSING-SAFE")
@rows(
    Row("first-of-two-without", (_resize_named_input("B", ABSENT, "B", "A"),), role="add_sub"),
    Row("second-of-two-without", (_resize_named_input("A", ABSENT, "B", "A"),), role="add_sub"),
    Row(
        "first-of-three-without",
        (_resize_named_input("IN_FP32", ABSENT, "IN_FP32", "IN_INT64", "IN_BOOL"),),
        role="multi",
    ),
    Row("second-of-three-null", (_resize_named_input("IN_BOOL", None, *NUMERIC),), role="multi"),
    Row("third-of-three-in-a-string", (_resize_named_input("IN_FP32", "12", *NUMERIC),), role="multi"),
    Row(
        "strings-behind-numbers-without", (_resize_named_input("IN_BYTES", ABSENT, *NUMERIC, "IN_BYTES"),), role="multi"
    ),
    Row(
        "strings-before-numbers-without", (_resize_named_input("IN_BYTES", ABSENT, "IN_BYTES", *NUMERIC),), role="multi"
    ),
    Row("first-of-several-without", (_resize_input_at(0, ABSENT),), fit=SEVERAL_INPUTS),
    Row("last-of-several-null", (_resize_input_at(-1, None),), fit=SEVERAL_INPUTS),
)
def size_missing_or_of_another_type_alters_no_tensor(
    target: Target, model: Model, build_pair: Callable[[Model], tuple[Message, Message]]
) -> str:
    """The server refuses a size that is missing or of a wrong type, or answers the request with the correct tensors."""
    reply = _expect_refused_or_unchanged(target, model, *build_pair(model))
    return "answered with the same tensors" if reply.succeeded else "refused"


@check("sizes.size-written-with-a-point", answers=("BIN-SIZE-AS-FLOAT", "BIN-SIZE-I"), role="identity_int32", fit=ANY)
def size_written_with_a_point(target: Target, model: Model) -> str:
    """The server reads a binary_data_size of 12.0 as 12, or refuses the request."""
    plain, with_point = (
        change_size_and_bytes(lambda good: good.size)(model),
        change_size_and_bytes(lambda good: float(good.size))(model),
    )
    reply = _expect_refused_or_unchanged(target, model, plain, with_point, requirement="BIN-SIZE-I")
    return f"read as {make_sample_inputs(model)[0].size}" if reply.succeeded else f"refused: {reply.outcome()}"


def _expect_refused_or_unchanged(
    target: Target,
    model: Model,
    good: Message,
    bad: Message,
    *,
    output_name: str = "",
    alternatives: Sequence[Tensor] = (),
    requirement: str | None = None,
) -> Reply:
    """Expect the server to refuse an invalid message, or to answer it with the outputs of the valid message.

    With `output_name`, only this output is compared. An answer with the outputs `alternatives` is correct as well.
    """
    right = target.infer(good)
    if not right.succeeded:
        raise BlockedError("the server does not answer the same request without the fault")
    reply = target.send(bad, fresh=True)
    if not reply.succeeded:
        expect(reply, requirement).refused()
        expect_alive(target, model)
        return reply
    nondeterministic = {spec.name for spec in model.role.outputs} - set(model.list_comparable_outputs())
    outputs = [output for output in right.answer.outputs if output.name not in nondeterministic]
    tensors = [tensor for output in outputs if (tensor := as_tensor(output, model.noise.get(output.name, 0)))]
    if not (alternatives and is_met(lambda: expect(reply).tensors(alternatives))):
        expect(reply, requirement).tensors(
            [tensor for tensor in tensors if tensor.name == (output_name or tensor.name)]
        )
    expect(target.send(good, fresh=True), requirement).tensors(tensors)  # dropped bytes are not read later
    return reply


# --- shapes whose product is 0, or small ------------------------------------------------------------------------------
# Such shapes can crash servers, so most of these rows run only on request.


@check("sizes.shape-past-all-bodies-is-refused", answers="BIN-SIZE-WRONG")
@rows(
    *[
        Row(f"{name}-of-{size}-bytes", (shape, size), role=role, dangerous=has_crashed_server)
        for name, shape, role, size, has_crashed_server in (
            ("2-32-by-2-32", [2**32, 2**32], "rank2", 0, True),
            ("2-32-by-2-32", [2**32, 2**32], "rank2", 4, False),
            ("2-63-by-2", [2**63, 2], "rank2", 0, True),
            ("2-62-of-four-bytes", [2**62], "identity_int32", 0, True),
            ("2-62-and-3-of-four-bytes", [2**62 + 3], "identity_int32", 12, True),
            ("2-30-of-four-bytes", [2**30], "identity_int32", 0, False),
            ("2-16-by-2-16", [2**16, 2**16], "rank2", 0, False),
            ("2-21-cubed-by-two", [2**21, 2**22, 2**21], "rank3", 0, True),
            ("strings-2-32-by-2-32", [2**32, 2**32], "rank2_bytes", 0, True),
            ("strings-2-62", [2**62], "identity_bytes", 0, False),
        )
    ],
)
def shape_past_all_bodies_is_refused(target: Target, model: Model, shape: Sequence[int], size: int) -> None:
    """The server refuses a shape with more elements than any body holds, even if the number overflows 32 or 64 bits."""
    message = build_with_size(size, bytes(range(1, size + 1)), shape)(model)
    expect_refusal(target, model, message, f"the shape {list(shape)} with {size} bytes of data")
