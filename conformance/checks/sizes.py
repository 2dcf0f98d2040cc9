"""`binary_data_size`: the bytes that it counts in requests and in answers, and what becomes of wrong ones.

A value is looked at only to see that no byte has moved, so where that can be, it is compared with the answer to the
same request without the fault. The requests that have to be refused stand in `_size_refusals.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from conformance.check import Row, check, rows
from conformance.checks._refusals import Refusal, refusal_rows
from conformance.checks._size_refusals import LEFT_OVER, REFUSALS, claims
from conformance.checks._values import blocked_where, is_right_alone, takes_several
from conformance.expect import Expectation, expect, refuses, still_answers
from conformance.outcome import Blocked, Unmet
from conformance.roles import Model
from conformance.target.exchange import Reply
from conformance.target.target import Target
from conformance.wire.outputs import Output
from conformance.wire.request import ABSENT, Message
from conformance.wire.request import Output as Wanted
from conformance.wire.tensor import Tensor

__all__ = ["REFUSALS"]

# No other place of the requests in which they travel reads like this.
BOOLEANS = Tensor.of("IN_BOOL", "BOOL", [True, False, True, True, False])
EIGHT_BYTES = (
    Tensor.of("IN_INT64", "INT64", [0x0101010101010101]),
    Tensor.of("IN_BOOL", "BOOL", [True, False, True, True, False, False, True, False]),
    Tensor.of("IN_FP32", "FP32", [1.5, -2.25]),
)
# As long in characters as in bytes: counting the wrong ones is another matter.
ASCII = Tensor.of("IN_BYTES", "BYTES", ["one", "", "three"])

# --- requests ----------------------------------------------------------------------------------------------------


@check("sizes.input-takes-the-bytes-it-declares", answers="BIN-SIZE-I", role="multi")
@rows(
    ("behind-numbers", ("IN_INT64", "IN_FP32", "IN_BOOL"), 3),
    ("behind-strings", ("IN_BYTES", "IN_BOOL"), 3),
    ("behind-long-strings", ("IN_BYTES", "IN_BOOL"), 300),
    ("before-strings", ("IN_BOOL", "IN_BYTES"), 3),
)
def input_takes_the_bytes_it_declares(target: Target, multi: Model, binary: tuple[str, ...], count: int) -> None:
    """Each binary input takes as many bytes as its binary_data_size says, so that the next one begins right."""
    strings = Tensor.of("IN_BYTES", "BYTES", [b"s" * (k % 7) for k in range(count)])
    sample = {tensor.name: tensor for tensor in multi.sample()} | {"IN_BYTES": strings, "IN_BOOL": BOOLEANS}

    def is_wrong_elsewhere() -> bool:
        alone = (sample[name] for name in binary)
        return not (
            takes_several(target)
            and all(is_right_alone(target, tensor, "read") for tensor in alone)
            and _are_kept_apart(target, multi, binary)
        )

    with blocked_where(is_wrong_elsewhere, "one of them alone, or two of eight bytes each, are wrong too"):
        _expect_bools(target, multi, sample, binary)


def _expect_bools(target: Target, multi: Model, sample: Mapping[str, Tensor], binary: Sequence[str]) -> None:
    """Expect the right BOOL elements where these inputs are binary data, in this order and before all others."""
    tensors = [sample[name] for name in (*binary, *[name for name in sample if name not in binary])]
    reply = target.infer(multi.request(tensors, send=binary))
    expect(reply).tensors([tensor for tensor in multi.expected(tensors) if tensor.name == "OUT_BOOL"])


def _are_kept_apart(target: Target, multi: Model, binary: Sequence[str]) -> bool:
    """Say whether BOOL elements come right among inputs of eight bytes; numbers stand for strings."""
    order = [name if name != "IN_BYTES" else "IN_FP32" for name in binary]
    sample = {tensor.name: tensor for tensor in (*multi.sample(), *EIGHT_BYTES)}
    try:
        _expect_bools(target, multi, sample, order)
    except Unmet:
        return False
    return True


# --- answers -----------------------------------------------------------------------------------------------------

SIZED_ROLES = (
    *[
        f"identity_{name}"
        for name in ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
    ],
    *[f"identity_{name}" for name in ("fp16", "fp32", "fp64", "bytes", "bf16")],
    *("rank2", "rank3", "rank4", "rank2_bytes", "batching", "fixed", "multi", "emit"),
    *("cast_int32_fp32", "cast_fp32_fp16", "string_length", "weighted_sum", "raw_two_outputs"),
)


@check("sizes.binary-output-states-its-size", answers="BIN-SIZE-O")
@rows(*[Row(role, role=role) for role in SIZED_ROLES])
def binary_output_states_its_size(target: Target, model: Model) -> None:
    """An output asked for as binary data states its size as an integer, equal to the number of its bytes."""
    reply = target.infer(model.request(send="json" if model.role.speaks_json else "binary", want="binary"))
    _states_sizes(reply, model)


@check("sizes.output-without-elements-states-its-size", answers="BIN-SIZE-O")
@rows(
    Row("beside-another", ([0, 2], ("NUMBERS", "TEXTS")), role="emit"),
    Row("behind-another", ([3, 0], ("NUMBERS", "TEXTS")), role="emit"),
    Row("alone", ([0, 0], ("NUMBERS",)), role="emit"),
)
def output_without_elements_states_its_size(
    target: Target, emit: Model, counts: list[int], names: tuple[str, ...]
) -> None:
    """An output asked for as binary data states the size 0 when it has no elements."""
    reply = target.infer(emit.request([emit.tensor(counts)], send="json", want="binary", outputs=names))
    for name in names:
        output = expect(reply).output(name)
        _free(expect(reply), output, "data-missing", "size-not-integer", "size-negative")
        if 0 in (output.shape or ()) and output.binary and output.declared_size != 0:
            field = f"outputs[{output.index}].parameters.binary_data_size"
            raise expect(reply).unmet(f"{field}: 0", str(output.declared_size))


@check("sizes.all-binary-outputs-state-their-sizes", answers="BIN-SIZE-O")
@rows(Row("four-outputs", role="multi"), Row("two-outputs", role="raw_two_outputs"))
def all_binary_outputs_state_their_sizes(target: Target, model: Model) -> None:
    """Outputs that are binary by binary_data_output state their sizes too."""
    _states_sizes(target.infer(model.request(send="json", binary_data_output=True)), model)


def _states_sizes(reply: Reply, model: Model) -> None:
    """Expect each size to be that of shape and datatype.

    BYTES have no such size: theirs is right when all sizes together fill the body, and else has to be the model's.
    """
    expectation = expect(reply).free_of("data-missing", "size-not-integer", "size-negative")
    binary = [output for output in reply.answer.outputs if output.binary]
    fills = sum(output.declared_size or 0 for output in binary) == len(reply.body) - reply.answer.json_end
    sizes = {tensor.name: tensor.size for tensor in model.expected(model.sample())}
    for output in binary:
        right = sizes.get(output.name) if output.native_size is None else output.native_size
        if output.declared_size != right and not (fills and output.native_size is None):
            field = f"outputs[{output.index}].parameters.binary_data_size"
            raise expectation.unmet(f"{field}: {right}, the bytes of {output.name}", str(output.declared_size))


def _free(expectation: Expectation, output: Output, *kinds: str) -> None:
    """Expect one output to be free of findings of these kinds."""
    for finding in output.findings:
        if finding.kind in kinds:
            raise expectation.unmet(f"{finding.field}: {finding.expected}", finding.actual)


FORMS = (
    Row("numbers", role="identity_int32"),
    Row("strings", role="identity_bytes"),
    Row("half-of-four", role="multi"),
    Row("batch", role="batching"),
)


@check("sizes.binary-output-has-no-data", answers="BIN-SIZE-NODATA")
@rows(*FORMS)
def binary_output_has_no_data(target: Target, model: Model) -> None:
    """An output asked for as binary data comes without `data` in the JSON."""
    names = [spec.name for spec in model.role.outputs]
    reply = target.infer(model.request(send="json", outputs=[Wanted(n, k % 2 == 0) for k, n in enumerate(names)]))
    for name in names[::2]:
        _free(expect(reply), expect(reply).output(name), "data-and-size")


@check("sizes.json-output-has-data-and-no-size", answers="BIN-SIZE-J")
@rows(
    *[
        Row(f"{row.id}-{how}", (want,), role=row.role)
        for row in FORMS
        for how, want in (("by-default", ABSENT), ("asked-for", False))
    ]
)
def json_output_has_data_and_no_size(target: Target, model: Model, want: object) -> None:
    """An output asked for as JSON has `data` and no binary_data_size, also beside binary outputs."""
    names = [spec.name for spec in model.role.outputs]
    forms = [want, True] * len(names)
    reply = target.infer(model.request(send="json", outputs=list(map(Wanted, names, forms))))
    for name in names[::2]:
        _free(expect(reply), expect(reply).output(name), "data-and-size", "data-missing")


@check("sizes.json-output-without-elements-has-data", answers="BIN-SIZE-J", role="emit")
@rows(("numbers", [0, 2]), ("strings", [3, 0]), ("both", [0, 0]))
def json_output_without_elements_has_data(target: Target, emit: Model, counts: list[int]) -> None:
    """An output asked for as JSON has `data`, an empty array, when it has no elements."""
    reply = target.infer(emit.request([emit.tensor(counts)], send="json"))
    for spec in emit.role.outputs:
        _free(expect(reply), expect(reply).output(spec.name), "data-and-size", "data-missing")


# --- wrong sizes -------------------------------------------------------------------------------------------------


@check("sizes.wrong-size-is-refused", answers=tuple({refusal.requirement: None for refusal in REFUSALS}))
@rows(*refusal_rows(REFUSALS))
def wrong_size_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A request whose sizes do not say, once and rightly, which bytes belong to which input is refused."""
    refuses(target, model, refusal.message(model), refusal.told)


@check("sizes.bytes-left-over-alter-no-tensor", answers="BIN-EXTRA-SAFE")
@rows(*[Row(fault, (make,), role=role) for fault, make, role in LEFT_OVER])
def bytes_left_over_alter_no_tensor(
    target: Target, model: Model, make: Callable[[Model], tuple[Message, Message]]
) -> None:
    """Bytes behind the declared ones are refused, or the answer is what it is without them."""
    good, bad = make(model)
    _refused_or_as(target, model, good, bad)


@check("sizes.data-beside-a-size-shifts-no-tensor", answers="BIN-BOTH-SAFE")
@rows(
    Row("two-alike", ("INPUT0", "INPUT1", [7, 8, 9]), role="raw_two_inputs"),
    Row("integers-before-booleans", ("IN_INT64", "IN_BOOL", [7, 8, 9]), role="multi"),
    Row("floats-before-integers", ("IN_FP32", "IN_INT64", [0.5, 0.25, 8.0]), role="multi"),
    Row("strings-before-booleans", ("IN_BYTES", "IN_BOOL", ["a", "b", "c"]), role="multi"),
)
def data_beside_a_size_shifts_no_tensor(
    target: Target, model: Model, both: str, other: str, data: list[object]
) -> None:
    """An input with both `data` and binary_data_size is refused, or the input that follows keeps its bytes."""
    sample = {tensor.name: tensor for tensor in model.sample()}
    sample |= {tensor.name: tensor for tensor in (BOOLEANS, ASCII) if tensor.name in sample}
    request = model.request(sorted(sample.values(), key=lambda tensor: tensor.name != both), send={both, other})
    bad = request.edited(lambda document: document["inputs"][0].update(data=data))
    outputs = {given.name: output.name for given, output in zip(model.role.inputs, model.role.outputs, strict=True)}
    _refused_or_as(target, model, request.message(), bad, only=outputs[other])


@check("sizes.size-written-with-a-point", answers=("BIN-NEG-FLOAT", "BIN-SIZE-I"), role="identity_int32")
def size_written_with_a_point(target: Target, model: Model) -> str:
    """A binary_data_size of 12.0 is taken for 12, or refused."""
    reply = _refused_or_as(target, model, claims(12)(model), claims(12.0)(model), requirement="BIN-SIZE-I")
    return "taken for 12" if reply.succeeded else f"refused: {reply.outcome()}"


def _refused_or_as(
    target: Target, model: Model, good: Message, bad: Message, *, only: str = "", requirement: str | None = None
) -> Reply:
    """Expect a message to be refused, or to be answered with the outputs that a good one gets, or one of them."""
    right = target.infer(good)
    if not right.succeeded:
        raise Blocked("the same request without the fault is not answered")
    reply = target.send(bad, fresh=True)
    if not reply.succeeded:
        expect(reply, requirement).refused()
        still_answers(target, model)
        return reply
    tensors = [_tensor(output) for output in right.answer.outputs if output.array is not None]
    expect(reply, requirement).tensors([tensor for tensor in tensors if tensor.name == (only or tensor.name)])
    expect(target.send(good, fresh=True), requirement).tensors(tensors)  # what was dropped has not been kept
    return reply


def _tensor(output: Output) -> Tensor:
    assert output.array is not None  # noqa: S101 - the caller has seen to it
    return Tensor(output.name, output.datatype, output.array.shape, output.array)
