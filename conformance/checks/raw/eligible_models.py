"""Which models take raw requests, and the shape that a body is given."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.checks.raw.deployed_models import VARIABLE_NUMBERS, expect_own_served, expect_own_shape
from conformance.checks.raw.raw_answers import NOTHING_TAKEN, expect_agreement, make_sample, send_raw, takes_any
from conformance.expect.expectation import expect
from conformance.expect.unmet import UnmetError, block_if
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import ONE_INPUT
from conformance.spec.text import format_shape
from conformance.transport.target import Target

# --- which models ---------------------------------------------------------------------------------------------------


@check("raw.model-of-one-input-is-served", answers="RAW-ONE-INPUT")
@rows(
    Row("fixed-shape", role="raw_fixed"),
    Row("one-variable-dimension", role="raw_variable"),
    Row("two-outputs", role="raw_two_outputs"),
    Row("batching", role="raw_batching"),
    Row("documented", role="documented_raw"),
    Row("own", (True,), fit=ONE_INPUT),
)
def model_of_one_input_is_served(target: Target, model: Model, own: bool = False) -> None:
    """A raw request to a model with one input is answered."""
    if own:
        expect_own_served(target, model)
        return
    reply = send_raw(target, model, make_sample(model))
    with block_if(lambda: not takes_any(target), NOTHING_TAKEN):
        expect(reply).answered()


@check("raw.variable-dimension-is-deduced", answers=("RAW-ONE-VARIABLE", "RAW-ENCODING"))
@rows(
    Row("no-variable-dimension", ((2, 2),), role="raw_fixed"),
    *[Row(f"first-{size}", ((size, 2),), role="raw_variable") for size in (1, 2, 3, 100)],
    *[Row(f"middle-{size}", ((2, size, 3),), role="raw_middle") for size in (1, 2, 4)],
    *[Row(f"alone-{size}", ((size,),), role="identity_fp64") for size in (1, 2, 7)],
    Row("alone-one-byte-elements", ((5,),), role="identity_bool"),
    Row("alone-two-byte-elements", ((5,),), role="identity_fp16"),
    Row("own", (None,), fit=VARIABLE_NUMBERS),
)
def variable_dimension_is_deduced(target: Target, model: Model, shape: Sequence[int] | None) -> None:
    """The variable dimension is what the number of bytes makes it."""
    if shape is None:
        expect_own_shape(target, model)
    else:
        _expect_shape(target, model, shape)


@check("raw.batching-model-gets-one-item", answers=("RAW-BATCH-OF-ONE", "RAW-ONE-VARIABLE", "RAW-ENCODING"))
@rows(
    Row("fixed-shape", ((1, 4),), role="raw_batching"),
    Row("fixed-shape-identity", ((1, 3),), role="batching"),
    Row("variable-1", ((1, 1),), role="raw_batching_variable"),
    Row("variable-4", ((1, 4),), role="raw_batching_variable"),
    Row("two-dimensions", ((1, 2, 2),), role="scores_batching_rank2"),
)
def batching_model_gets_one_item(target: Target, model: Model, shape: Sequence[int]) -> None:
    """A batching model takes a raw body for a batch of one."""
    _expect_shape(target, model, shape)


def _expect_shape(target: Target, model: Model, shape: Sequence[int]) -> None:
    """Expect the first output in the input's shape, and with the right values, which are a matter of RAW-ENCODING."""
    tensor = make_sample(model, shape)
    reply = send_raw(target, model, tensor)
    with block_if(lambda: not takes_any(target), NOTHING_TAKEN):
        expect(reply).answered()
    output = expect(reply, "RAW-OUTPUTS").output(model.role.outputs[0].name)
    if output.shape != tensor.shape:
        # Behind the right batch it is the item that has the wrong shape.
        one_item = model.role.batching and (output.shape or ())[:1] == (1,) != output.shape
        raise UnmetError(
            f"{output.name} with {format_shape(tensor.shape)}",
            format_shape(output.shape),
            reply,
            requirement="RAW-ONE-VARIABLE" if one_item else None,
        )
    expect_agreement(target, model, reply, tensor, requirement="RAW-ENCODING")
