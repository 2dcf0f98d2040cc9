"""Every datatype in its native size, with its corner values.

Each side is seen alone: a binary input shows in JSON outputs or in what a model computes, a binary output follows JSON
inputs. Values that JSON cannot carry (NaN, infinities) are binary data on both sides.
"""

from __future__ import annotations

import numpy as np

from conformance.checks.datatypes.empty_and_large import get_first_datatype
from conformance.checks.support.binary_sides import expect_return, expect_survival
from conformance.checks.support.changed_tensors import WIDE_FLOATS, fill_fractions, round_off
from conformance.checks.support.control_sides import expect_read, expect_written, make_other_inputs
from conformance.checks.support.datatypes import PLAIN, get_identity_role, make_datatype_rows
from conformance.roles.corner_values import BINARY_ONLY_CORNERS, FLOAT_CORNERS, INTEGER_CORNERS, make_corner_tensor
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import ANY, Fit
from conformance.transport.target import Target
from conformance.wire.tensor import Tensor

# --- every datatype in its native size --------------------------------------------------------------------------------

OWN = (Row("own", ("sample",), fit=ANY),)


@check("datatypes.binary-inputs-are-read", answers="BIN-DATATYPES-I")
@rows(*make_datatype_rows(PLAIN), *OWN, Row("own-fractions", ("fractions",), fit=Fit(some_input=WIDE_FLOATS)))
def binary_inputs_are_read(target: Target, model: Model, own: str = "") -> None:
    """A binary input holds each element in the native size of its datatype."""
    if not own:
        expect_survival(target, model, model.sample(), "read")
    elif own == "fractions":
        tensors = fill_fractions(model.sample())
        expect_read(target, model, tensors, misread=round_off(tensors), of=WIDE_FLOATS)
    else:
        expect_read(target, model, model.sample(), misread=make_other_inputs(model))


@check("datatypes.binary-outputs-are-written", answers="BIN-DATATYPES-O")
@rows(*make_datatype_rows(PLAIN), *OWN, Row("own-fractions", ("fractions",), fit=Fit(outputs=WIDE_FLOATS)))
def binary_outputs_are_written(target: Target, model: Model, own: str = "") -> None:
    """A binary output holds each element in the native size of its datatype."""
    if not own:
        expect_survival(target, model, model.sample(), "written")
    elif own == "fractions":
        expect_written(target, model, fill_fractions(model.sample()), of=WIDE_FLOATS)
    else:
        expect_written(target, model, model.sample())


CORNERS = [
    Row(f"{datatype}-{group}", (group,), role=get_identity_role(datatype))
    for datatype in PLAIN
    for group in {**INTEGER_CORNERS, **FLOAT_CORNERS}[datatype]
]


@check("datatypes.corner-values-are-read", answers="BIN-DATATYPES-I")
@rows(*CORNERS)
def corner_values_are_read(target: Target, model: Model, group: str) -> None:
    """A binary input keeps every value of its datatype, the largest and smallest among them."""
    expect_survival(target, model, [_corner(model, group)], "read")


@check("datatypes.corner-values-are-written", answers="BIN-DATATYPES-O")
@rows(*CORNERS)
def corner_values_are_written(target: Target, model: Model, group: str) -> None:
    """A binary output keeps every value of its datatype, the largest and smallest among them."""
    expect_survival(target, model, [_corner(model, group)], "written")


@check("datatypes.values-beyond-json-survive", answers=("BIN-DATATYPES-I", "BIN-DATATYPES-O"))
@rows(
    *[
        Row(f"{datatype}-{group}", (group,), role=get_identity_role(datatype))
        for datatype in ("FP32", "FP64")
        for group in BINARY_ONLY_CORNERS[datatype]
    ]
)
def values_beyond_json_survive(target: Target, model: Model, group: str) -> None:
    """Signed zeros, infinities, NaN and the extremes come back from binary data as binary data."""
    expect_return(target, model, [_corner(model, group)], "BIN-DATATYPES-O")


@check("datatypes.every-16-bit-value-survives", answers=("BIN-DATATYPES-I", "BIN-DATATYPES-O"))
@rows(*[Row(datatype, role=get_identity_role(datatype), thorough=True) for datatype in ("UINT16", "INT16")])
def every_16_bit_value_survives(target: Target, model: Model) -> None:
    """Each of the 65 536 values of a 16-bit integer comes back from binary data as binary data."""
    every = np.arange(2**16, dtype="<u2")
    tensors = [model.tensor(every.view("<i2" if get_first_datatype(model) == "INT16" else "<u2"))]
    expect_return(target, model, tensors, "BIN-DATATYPES-O")


def _corner(model: Model, group: str) -> Tensor:
    spec = model.role.inputs[0]
    return make_corner_tensor(spec.name, spec.datatype, group)
