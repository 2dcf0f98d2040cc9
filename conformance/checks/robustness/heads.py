"""Heads that are larger than any client's."""

from __future__ import annotations

from conformance.checks.robustness.octets import CRLF, make_head, make_plain_request
from conformance.checks.robustness.survival import expect_declined, expect_still_serving
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.transport.hostile_sending import Octets
from conformance.transport.target import Target

KIB, MIB = 1024, 1024 * 1024


def _row(identity: str, *values: object, thorough: bool = False) -> Row:
    return Row(identity, (identity.replace("-", " "), *values), thorough=thorough)


@check("robustness.large-head-is-refused", answers="ROBUST-HEAD", role="identity_int32", infers=False)
@rows(
    _row("value-of-16-MiB", b"X-Long: ", b"x" * KIB, 16 * KIB),
    _row("name-of-1-MiB", b"X-", b"x" * KIB, KIB),
    _row("50000-headers", b"", b"X-More: 1\r\n", 50_000),
    _row("value-without-an-end", b"X-Long: ", b"x" * KIB, 16 * KIB, b""),
)
def large_head_is_refused(
    target: Target, model: Model, name: str, start: bytes, filling: bytes, times: int, tail: bytes | None = None
) -> None:
    """A head of more than a megabyte, or of more headers than anybody sends, is refused, or the connection closed."""
    message = make_plain_request(model)
    head = make_head(target, message).removesuffix(CRLF)
    rest = b": 1\r\n\r\n" if start == b"X-" else CRLF if start == b"" else CRLF * 2
    octets = Octets(head + start, f"a head with a {name}", filling, times, rest if tail is None else tail)
    with expect_still_serving(target, model):
        expect_declined(target.send_octets(message, octets)[0], f"a head with a {name}")


@check("robustness.long-target-is-refused", answers="ROBUST-HEAD", role="identity_int32", infers=False)
@rows(_row("1-MiB-of-path", b"/"), _row("1-MiB-of-query", b"?"))
def long_target_is_refused(target: Target, model: Model, name: str, mark: bytes) -> None:
    """A request line of a megabyte is refused, or the connection closed."""
    message = make_plain_request(model)
    line, _, rest = target.render_octets(message).partition(b" HTTP/")
    octets = Octets(line + mark, f"a request line with {name}", b"x" * KIB, KIB, b" HTTP/" + rest)
    with expect_still_serving(target, model):
        expect_declined(target.send_octets(message, octets)[0], f"a request line with {name}")
