"""A client that offers to wait for the go-ahead, and does not wait."""

from __future__ import annotations

from conformance.checks.state.own_answers import salted_request, salted_tensors
from conformance.expect.expectation import expect
from conformance.expect.unmet import about, blocked_where
from conformance.roles.model import Model
from conformance.terms.check import Row, check, rows
from conformance.terms.extensions import BINARY
from conformance.transport.target import Target
from conformance.wire.request import Form


@check("state.expect-100-continue-is-answered", answers="HTTP-EXPECT", role="identity_int32")
@rows(
    Row("json", ("json", 3)),
    Row("long-json", ("json", 1000)),
    Row("binary", ("binary", 3), needs=BINARY),
    Row("long-binary", ("binary", 1000), needs=BINARY),
    Row("binary-512KiB", ("binary", 128 * 1024), needs=BINARY, thorough=True),
)
def expect_100_continue_is_answered(target: Target, model: Model, form: Form, length: int) -> None:
    """A request with `Expect: 100-continue` is answered as it is without."""
    message = salted_request(model, form, length, 1).message()
    expected = model.expected(salted_tensors(model, length, 1))
    with blocked_where(lambda: True, "the same request without Expect is answered wrongly"):
        expect(target.send(message)).tensors(expected)
    with about("HTTP-EXPECT"):
        expect(target.send(message.with_header("Expect", "100-continue"))).tensors(expected)
