"""The server refuses a request with wrong sizes, or answers it as if the sizes were correct."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conformance.checks.sizes.declared_sizes import BOOLEANS
from conformance.checks.sizes.wrong_size_requests import (
    BYTES_LEFT_OVER,
    REFUSALS,
    drop_size,
    make_numbers,
    resize,
    send_numbers,
    send_several,
    write_first_input,
)
from conformance.checks.support.deployed_models import to_json
from conformance.checks.support.inputs import require_several_inputs
from conformance.checks.support.refusals import Refusal, expect_fault_refused, make_refusal_rows
from conformance.checks.support.wrong_requests import Fault, Start, WrongRequest, send_binary
from conformance.discovery.control_answers import read_outputs
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive, expect_refusal
from conformance.expect.unmet import BlockedError, UnmetError, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import ANY, SEVERAL_INPUTS
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import InferRequest, Message
from conformance.wire.tensor import Tensor

# ASCII strings: checks of headers judge servers that count characters instead of bytes.
ASCII = Tensor.from_values("IN_BYTES", "BYTES", ["one", "", "three"])


_ROWS = make_refusal_rows(REFUSALS)


@check(
    "sizes.wrong-size-is-refused",
    requirements=tuple({identity: None for row in _ROWS for identity in row.requirements}),
)
@rows(*_ROWS)
def wrong_size_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses sizes that do not assign each byte to exactly one input."""
    expect_fault_refused(target, model, refusal)


@check("sizes.bytes-left-over-alter-no-tensor", requirements="BIN-BODY-LONG-SAFE")
@rows(*[Row(one.fault, (one.message,), role=one.role, fit=one.fit) for one in BYTES_LEFT_OVER])
def bytes_left_over_alter_no_tensor(target: Target, model: Model, request: WrongRequest) -> None:
    """The server refuses bytes after the last input, or gives the same answer as without these bytes."""
    _expect_refused_or_unchanged(target, model, request.build_valid(model), request(model))


@check("sizes.data-beside-a-size-shifts-no-tensor", requirements="BIN-DATA-AND-SIZE-SAFE")
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
    if model.is_deployed:
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


def _send_as_binary(*names: str) -> Start:
    """Return a builder of a request with these inputs first, as binary data; the other inputs are JSON.

    Where possible, no input is BYTES: a server that reads strings from a wrong offset finds wrong length prefixes and
    refuses the request.
    """

    def build_request(model: Model) -> InferRequest:
        sample = {tensor.name: tensor for tensor in model.sample()}
        sample |= {tensor.name: tensor for tensor in (BOOLEANS, ASCII) if tensor.name in sample}
        order = [*names, *[key for key in sample if key not in names]]
        return model.request([sample[key] for key in order], send=names)

    return build_request


NUMERIC = _send_as_binary("IN_INT64", "IN_BOOL", "IN_FP32")
NUMERIC_AND_STRINGS = _send_as_binary("IN_INT64", "IN_BOOL", "IN_FP32", "IN_BYTES")
STRINGS_AND_NUMERIC = _send_as_binary("IN_BYTES", "IN_INT64", "IN_BOOL", "IN_FP32")
BACKWARDS = _send_as_binary("IN_FP32", "IN_INT64", "IN_BOOL")
TWO = _send_as_binary("B", "A")


@check("sizes.size-missing-or-of-another-type-alters-no-tensor", requirements="BIN-SIZE-MISSING-SAFE")
@rows(
    *[
        Row(fault.name, (fault.build_request(send_several),), role=fault.role, fit=fault.fit)
        for fault in (
            Fault("first-of-two-without", "add_sub", drop_size("B"), start=TWO),
            Fault("second-of-two-without", "add_sub", drop_size("A"), start=TWO),
            Fault("first-of-three-without", "multi", drop_size("IN_FP32"), start=BACKWARDS),
            Fault("second-of-three-null", "multi", resize("IN_BOOL", None), start=NUMERIC),
            Fault("third-of-three-in-a-string", "multi", resize("IN_FP32", "12"), start=NUMERIC),
            Fault("strings-behind-numbers-without", "multi", drop_size("IN_BYTES"), start=NUMERIC_AND_STRINGS),
            Fault("strings-before-numbers-without", "multi", drop_size("IN_BYTES"), start=STRINGS_AND_NUMERIC),
            Fault("first-of-several-without", None, drop_size(0), SEVERAL_INPUTS),
            Fault("last-of-several-null", None, resize(-1, None), SEVERAL_INPUTS),
        )
    ]
)
def size_missing_or_of_another_type_alters_no_tensor(target: Target, model: Model, request: WrongRequest) -> str:
    """The server refuses a size that is missing or of a wrong type, or answers the request with the correct tensors."""
    reply = _expect_refused_or_unchanged(target, model, request.build_valid(model), request(model))
    return "answered with the same tensors" if reply.succeeded else "refused"


@check(
    "sizes.size-written-with-a-point", requirements=("BIN-SIZE-AS-FLOAT", "BIN-SIZE-I"), role="identity_int32", fit=ANY
)
def size_written_with_a_point(target: Target, model: Model) -> str:
    """The server reads a binary_data_size of 12.0 as 12, or refuses the request."""
    wrong = WrongRequest(send_numbers, (resize(0, float),))
    reply = _expect_refused_or_unchanged(
        target, model, wrong.build_valid(model), wrong(model), requirement="BIN-SIZE-I"
    )
    return f"read as {make_numbers(model)[0].size}" if reply.succeeded else f"refused: {reply.outcome()}"


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
        cause = UnmetError("an answer to the same request without the fault", right.outcome(), right)
        raise BlockedError("the server does not answer the same request without the fault", cause)
    reply = target.send(bad, fresh=True)
    if not reply.succeeded:
        expect(reply, requirement).refused()
        expect_alive(target, model)
        return reply
    nondeterministic = {spec.name for spec in model.role.outputs} - set(model.list_comparable_outputs())
    outputs = [output for output in right.answer.outputs if output.name not in nondeterministic]
    tensors = read_outputs(model, outputs)
    if not (alternatives and is_met(lambda: expect(reply).tensors(alternatives))):
        expect(reply, requirement).tensors(
            [tensor for tensor in tensors if tensor.name == (output_name or tensor.name)]
        )
    expect(target.send(good, fresh=True), requirement).tensors(tensors)  # dropped bytes are not read later
    return reply


# --- shapes whose product is 0, or small ------------------------------------------------------------------------------
# Such shapes can crash servers, so most of these rows run only on request.


@check("sizes.shape-past-all-bodies-is-refused", requirements="BIN-SIZE-WRONG")
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
    ]
)
def shape_past_all_bodies_is_refused(target: Target, model: Model, shape: Sequence[int], size: int) -> None:
    """The server refuses a shape with more elements than any body holds, even if the number overflows 32 or 64 bits."""
    wrong = WrongRequest(send_binary, write_first_input(bytes(range(1, size + 1)), *shape))
    expect_refusal(target, model, wrong(model), f"the shape {list(shape)} with {size} bytes of data")
