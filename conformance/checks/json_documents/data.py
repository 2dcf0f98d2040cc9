"""JSON data, flat or nested, in requests and in answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from conformance.checks.support.binary_sides import carries, make_distinct_tensor
from conformance.checks.support.deployed_models import attribute_to_isolation, draw_telling
from conformance.expect.expectation import expect
from conformance.expect.unmet import UnmetError, block_if
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import BINARY
from conformance.spec.fit import JSON, Fit
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import Form
from conformance.wire.tensor import Tensor

# --- data --------------------------------------------------------------------------------------------------------------

_SHAPED = ("rank2", "rank3", "rank4", "rank2_bytes", "batching", "fixed")


_UNCARRIED = "binary data of these elements are wrong by themselves"


@check("json.data-is-flat-or-nested", answers="OIP-DATA")
@rows(
    *[
        Row(f"{role}-{form}", (form, None), role=role)
        for role in ("weighted_sum", *_SHAPED)
        for form in ("flat", "nested")
    ],
    *[
        Row(f"{role}-{form}-seen-as-binary", (form, "binary"), role=role, needs=BINARY)
        for role in _SHAPED
        for form in ("flat", "nested")
    ],
    Row("nested", ("nested", None), fit=Fit(min_rank=2, is_json=True)),
)
def data_is_flat_or_nested(target: Target, model: Model, form: str, want: Form | None) -> None:
    """JSON data are read in row-major order, whether they are flat or nested."""
    tensors = _tensors(model)
    reply = target.infer(model.request(tensors, send="json", want=want, nested=form == "nested"))

    def right(found: Reply) -> None:
        expect(found).tensors(model.expected(tensors), through_json=True)

    with block_if(lambda: want == "binary" and not carries(target, model, tensors, "written"), _UNCARRIED):
        try:
            right(reply)
        except UnmetError as unmet:
            attribute_to_isolation(target, unmet, right)
            raise


def _tensors(model: Model) -> Sequence[Tensor]:
    """Return inputs whose answer shows the order in which their elements were read."""
    if not model.is_own_oracle:
        return [make_distinct_tensor(model, model.sample()[0].shape)]
    return draw_telling(model, lambda tensors: [_by_columns(tensor) for tensor in tensors])


def _by_columns(tensor: Tensor) -> Tensor:
    return replace(tensor, array=tensor.array.reshape(-1).reshape(tensor.shape, order="F"))


@check("json.data-is-returned-flat-or-nested", answers="OIP-DATA")
@rows(*[Row(role, role=role, needs=BINARY) for role in _SHAPED], Row("own", ("json",), fit=JSON))
def data_is_returned_flat_or_nested(target: Target, model: Model, send: Form = "binary") -> None:
    """JSON data in answers are flat, or nested as the shape says, in row-major order."""
    tensors = model.sample() if model.is_own_oracle else [make_distinct_tensor(model, model.sample()[0].shape)]
    reply = target.infer(model.request(tensors, send=send))
    with block_if(lambda: send == "binary" and not carries(target, model, tensors, "read"), _UNCARRIED):
        expect(reply).tensors(model.find_outputs(tensors))
    for output in reply.answer.outputs:
        data = (reply.answer.document or {})["outputs"][output.index].get("data")
        flat = isinstance(data, list) and not any(isinstance(item, list) for item in data)
        if not (output.binary or flat or _is_nested(data, output.shape or ())):
            nested = f"data of {output.name}, flat or nested as its shape {list(output.shape or ())}"
            raise UnmetError(nested, f"other arrays inside each other: {_nesting(data)}", reply)


def _nesting(data: Any) -> str:
    """Return the lengths of the arrays that begin an array, from the outermost on."""
    lengths = []
    while isinstance(data, list):
        lengths.append(len(data))
        data = data[0] if data else None
    return " of ".join(map(str, lengths)) or "no array"


def _is_nested(data: Any, shape: Sequence[int]) -> bool:
    """Whether arrays stand inside each other as the dimensions say."""
    if not shape:
        return not isinstance(data, list)
    return isinstance(data, list) and len(data) == shape[0] and all(_is_nested(item, shape[1:]) for item in data)
