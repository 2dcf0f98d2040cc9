"""A tensor has the same values as JSON and as binary data; Hypothesis generates some of the tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.checks.support.changed_tensors import (
    WIDE_FLOATS,
    fill_floats_with_fractions,
    fill_floats_with_large_numbers,
)
from conformance.checks.support.controls import Side, expect_read, expect_side, expect_written
from conformance.checks.support.datatypes import JSON_CAPABLE, get_identity_role, make_datatype_rows
from conformance.checks.support.exploring import explore
from conformance.checks.support.inputs import (
    make_empty_inputs,
    make_other_inputs,
    make_symmetric_inputs,
    require_answer,
)
from conformance.discovery.control_answers import read_outputs
from conformance.expect import attribution
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, UnmetError, block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import ANY, JSON, Fit
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.tensor import Tensor

# --- one tensor in two forms ------------------------------------------------------------------------------------------

EQUAL_ROWS = (*make_datatype_rows(JSON_CAPABLE), *[Row(role, role=role) for role in ("rank3", "rank2_bytes")])
DEPLOYED_ROW = Row("deployed", ("sample",), fit=ANY)
EMPTY_DATATYPES = ("BOOL", "UINT8", "INT64", "FP32", "BYTES")  # one of each kind
# role -> shapes of tensors without elements, whose nested JSON arrays differ
EMPTY_SHAPES = {"rank2": ([0, 3], [2, 0]), "rank3": ([2, 0, 3], [2, 2, 0], [3, 0, 0])}
DEPLOYED_FRACTIONS_ROW = Row("deployed-fractions", ("fractions",), fit=Fit(some_input=WIDE_FLOATS))


def _make_empty_input_rows() -> Iterator[Row]:
    for datatype in EMPTY_DATATYPES:
        yield Row(f"{datatype}-empty", ("empty", [0]), role=get_identity_role(datatype))
    for role, shapes in EMPTY_SHAPES.items():
        for shape in shapes:
            for nested in (False, True)[: 1 + (shape[0] > 0)]:
                identity = f"{role}-{'x'.join(map(str, shape))}{'-nested' if nested else ''}"
                yield Row(identity, ("empty", shape, nested), role=role)
    yield Row("deployed-empty", ("empty",), fit=JSON)


@check("datatypes.inputs-are-equal-in-both-forms", requirements="BIN-SAME-AS-JSON-I")
@rows(
    *EQUAL_ROWS,
    *[Row(role, role=role) for role in ("cast_int32_fp32", "string_length")],
    *_make_empty_input_rows(),
    DEPLOYED_ROW,
    DEPLOYED_FRACTIONS_ROW,
)
def inputs_are_equal_in_both_forms(
    target: Target, model: Model, own: str = "", shape: Sequence[int] = (), nested: bool = False
) -> str | None:
    """The server computes the same outputs from JSON as from binary data."""
    if own == "empty":
        empty = [model.tensor([], shape)] if shape else make_empty_inputs(target, model)
        return _expect_empty_inputs_equal(target, model, empty, nested)
    if own:
        tensors = fill_floats_with_fractions(model.sample()) if own == "fractions" else model.sample()
        expect_read(target, model, tensors, misread=make_other_inputs(model))
        return None
    tensors = make_symmetric_inputs(model)
    by_json = target.infer(model.request(tensors, send="json"))
    by_binary = target.infer(model.request(tensors, send="binary"))
    expect(by_binary).tensors(_read_outputs(by_json, model), through_json=True)
    return None


@check("datatypes.outputs-are-equal-in-both-forms", requirements="BIN-SAME-AS-JSON-O")
@rows(
    *EQUAL_ROWS,
    DEPLOYED_ROW,
    Row("deployed-large-numbers", ("large",), fit=Fit(some_input=WIDE_FLOATS, outputs=WIDE_FLOATS)),
)
def outputs_are_equal_in_both_forms(target: Target, model: Model, own: str = "") -> None:
    """The server returns the same datatype, shape and values as JSON and as binary data."""
    if own:
        tensors = fill_floats_with_large_numbers(model.sample()) if own == "large" else model.sample()
        require_answer(model, tensors)
        expect_written(target, model, tensors)
        return
    tensors = make_symmetric_inputs(model)
    as_json = target.infer(model.request(tensors, send="json", want="json"))
    as_binary = target.infer(model.request(tensors, send="json", want="binary"))
    if as_binary.answer.find_by_kind("bool-byte"):
        raise BlockedError("an output has BOOL bytes other than 0 and 1: the checks of BOOL judge this")
    expect(as_binary).tensors(_read_outputs(as_json, model), through_json=True)


def _expect_empty_inputs_equal(target: Target, model: Model, tensors: Sequence[Tensor], nested: bool) -> str:
    """Expect the correct answer to empty JSON inputs, if the server accepts the same inputs as binary data."""
    outputs = model.build_outputs_member()
    by_json = target.infer(model.request(tensors, send="json", nested=nested, outputs=outputs))
    by_binary = target.infer(model.request(tensors, send="binary", outputs=outputs))
    if not by_binary.succeeded:
        return "the server refuses empty binary inputs"
    expected = model.find_outputs(tensors)

    def is_nested_data_misread() -> bool:
        """Say whether nested data with elements gets a wrong answer."""
        full = model.sample()
        reply = target.infer(model.request(full, send="json", nested=True, outputs=outputs))
        return not is_met(lambda: expect(reply).tensors(model.expected(full), through_json=True))

    with (
        block_if(
            lambda: not is_met(lambda: expect(by_binary).tensors(expected)), "the answer to binary inputs is also wrong"
        ),
        block_if(lambda: nested and is_nested_data_misread(), "the answer to nested data with elements is also wrong"),
    ):
        expect(by_json).tensors(expected, through_json=True)
    return "the answers to empty inputs are right, as JSON and as binary data"


def _read_outputs(reply: Reply, model: Model) -> list[Tensor]:
    """Return the outputs of an answer without binary data as tensors; no binary data can have made them unreadable.

    Raises UnmetError: an output is missing or unreadable.
    """
    found = []
    for spec in model.role.outputs:
        output = expect(reply).output(spec.name)
        tensors = read_outputs(model, [output])
        if not tensors:
            reason = "; ".join(finding.described for finding in output.findings) or "no values"
            about = attribution.attribute_unreadable_output(reply, spec.name) or "OIP-ANSWER"
            raise UnmetError(f"{spec.name} with readable values", reason, reply, requirement=about)
        found += tensors
    return found


# --- drawn by Hypothesis ----------------------------------------------------------------------------------------------


def make_generated_tensor_rows(side: str, **more_roles: str) -> list[Row]:
    """Return a row for each datatype, which judges the requirement on this datatype.

    Args:
        side: "I" for requirements on inputs, "O" for outputs.
        more_roles: row id -> role, for further rows.
    """
    roles = {datatype: get_identity_role(datatype) for datatype in JSON_CAPABLE} | more_roles
    own = {"BOOL": "BOOL", "BYTES": "BYTES", "string_length": "BYTES"}
    return [
        Row(name, role=role, requirements=(f"BIN-{own.get(name, 'DATATYPES')}-{side}",)) for name, role in roles.items()
    ]


@check("datatypes.drawn-inputs-are-read", requirements="BIN-DATATYPES-I", explores=True)
@rows(*make_generated_tensor_rows("I", FP16="cast_fp16_fp32"))
def drawn_inputs_are_read(target: Target, model: Model) -> None:
    """The server reads any binary input correctly; its JSON outputs show the values."""
    _explore_tensors(target, model, "read", json=True)


@check("datatypes.drawn-outputs-are-written", requirements="BIN-DATATYPES-O", explores=True)
@rows(*make_generated_tensor_rows("O", FP16="cast_fp32_fp16"))
def drawn_outputs_are_written(target: Target, model: Model) -> None:
    """The server writes any binary output correctly for JSON inputs."""
    _explore_tensors(target, model, "written", json=True)


@check("datatypes.drawn-tensors-survive", requirements="BIN-DATATYPES-I", explores=True)
@rows(*make_generated_tensor_rows("I", FP16="identity_fp16", string_length="string_length"))
def drawn_tensors_survive(target: Target, model: Model) -> None:
    """The server changes no bit of any tensor, if inputs and outputs are binary data."""
    _explore_tensors(target, model, "both", json=False)


def _explore_tensors(target: Target, model: Model, side: Side, *, json: bool) -> None:
    """Expect correct outputs for tensors that Hypothesis generates, with binary data on the given side.

    `json` restricts the tensors to values that JSON can carry.
    """
    from conformance.roles import tensor_strategies  # imports hypothesis: see `exploring`

    spec = model.role.inputs[0]
    drawn = tensor_strategies.tensors(spec.name, spec.datatype, spec.shape, json=json)
    explore(drawn, lambda tensor: expect_side(target, model, [tensor], side))
