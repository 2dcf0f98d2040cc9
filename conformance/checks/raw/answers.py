"""The answer to a raw request: every output, as binary data, framed like any other."""

from __future__ import annotations

from conformance.checks.raw.deployed_models import expect_own_served
from conformance.checks.raw.raw_answers import NOTHING_TAKEN, make_sample, takes_any
from conformance.checks.support.framing import FRAMING, expect_framed
from conformance.expect.expectation import expect
from conformance.expect.unmet import UnmetError, block_if
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import ONE_INPUT
from conformance.transport.exchange import Reply
from conformance.transport.target import Target

# --- the answer -----------------------------------------------------------------------------------------------------

ANSWERS = (
    Row("one-output", role="raw_fixed"),
    Row("two-outputs", role="raw_two_outputs"),
    Row("two-outputs-alike", role="documented_raw"),
    Row("batching", role="raw_batching"),
    Row("bytes", role="raw_bytes_one"),
    Row("own", (True,), fit=ONE_INPUT),
)


def _expect_any_raw(target: Target, model: Model) -> Reply:
    """Send a raw request that every server takes which takes any; expect an answer."""
    reply = target.infer(model.raw(bytes(make_sample(model).to_bytes())))
    with block_if(lambda: not takes_any(target), NOTHING_TAKEN):
        expect(reply, "RAW-BYTES" if model.role.inputs[0].datatype == "BYTES" else "RAW-ONE-INPUT").answered()
    return reply


@check("raw.every-output-is-binary", answers="RAW-OUTPUTS")
@rows(*ANSWERS)
def every_output_is_binary(target: Target, model: Model, own: bool = False) -> None:
    """The answer to a raw request has every output of the model, as binary data."""
    reply = expect_own_served(target, model)[0] if own else _expect_any_raw(target, model)
    expect(reply).forms({spec.name: "binary" for spec in model.role.outputs}, "a raw request")


@check("raw.answer-is-framed-like-others", answers=("RAW-OUTPUTS", *FRAMING, "BIN-ORDER-O"))
@rows(*ANSWERS)
def answer_is_framed_like_others(target: Target, model: Model, own: bool = False) -> None:
    """The answer to a raw request has the header, the sizes and the order of any binary answer."""
    reply = expect_own_served(target, model)[0] if own else _expect_any_raw(target, model)
    expect_framed(reply)
    if not own:
        _expect_order(reply, model)


def _expect_order(reply: Reply, model: Model) -> None:
    data = {tensor.name: bytes(tensor.to_bytes()) for tensor in model.expected([make_sample(model)])}
    right = [data[name] for name in reply.answer.names() if name in data]
    tail = reply.body[reply.answer.json_end :]
    if tail != b"".join(right) and tail == b"".join(reversed(right)):  # no role here has more than two
        names = [name for name in reply.answer.names() if name in data]
        expected = f"the binary data of {' before those of '.join(names)}, as in the JSON"
        raise UnmetError(
            expected, "the same in reverse", reply, requirement="BIN-ORDER-O", offset=reply.answer.json_end
        )
