"""An empty raw body: the documents leave open what it is."""

from __future__ import annotations

from conformance.checks.support.binary_sides import is_right_alone
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive
from conformance.expect.unmet import BlockedError, UnmetError
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.text import escape_text, format_shape
from conformance.transport.target import Target
from conformance.wire.tensor import Tensor


def _nothing(model: Model) -> Tensor:
    """Return what an empty body stands for: no elements, or one empty string."""
    spec = model.role.inputs[0]
    if spec.datatype == "BYTES":
        return model.tensor([b""], (1,))
    shape = [max(size, 0) for size in spec.shape]
    return model.tensor([], [1, *shape] if model.role.batching else shape)


# --- observed -------------------------------------------------------------------------------------------------------


@check("raw.empty-body", answers="RAW-EMPTY")
@rows(
    Row("alone", role="identity_int32"),
    Row("before-a-fixed-one", role="raw_variable"),
    Row("batching", role="raw_batching_variable"),
    Row("bytes", role="raw_bytes_one"),
)
def empty_body(target: Target, model: Model) -> str:
    """An empty raw body is a tensor without elements, an empty string, or refused."""
    reply = target.send(model.raw(b""), fresh=True)
    if reply.status is not None and reply.status >= 400 and not reply.exchange.failure:
        expect_alive(target, model)
        return f"refused: {reply.outcome()}"
    output = expect(reply, "RAW-OUTPUTS").output(model.role.outputs[0].name)
    if output.array is not None and output.array.size == 0:
        return f"no elements, shape {list(output.array.shape)}"
    if output.array is not None and output.datatype == "BYTES" and output.array.reshape(-1).tolist() == [b""]:
        return "one empty string"
    actual = f"{escape_text(output.datatype, 20)} {format_shape(output.shape)}"
    if not is_right_alone(target, _nothing(model), "written"):
        raise BlockedError(f"such an output is written wrong in any answer: {actual}")
    expected = "no elements, an empty string, or a refusal with a 4xx status"
    raise UnmetError(expected, actual, reply, requirement="RAW-ONE-VARIABLE")
