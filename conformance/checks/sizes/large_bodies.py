"""Bodies of megabytes in both forms, under the content types that clients and command lines send."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.expect import attribution
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_refusal_status
from conformance.expect.unmet import NotApplicableError, block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Only, Row, claim, rows
from conformance.spec.extensions import BINARY, HTTP
from conformance.transport.any_target import AnyTarget
from conformance.transport.exchange import Reply
from conformance.wire.request import JSON, OCTET_STREAM, Form
from conformance.wire.tensor import Tensor

MIB, FEW_BYTES = 1 << 20, 4000
OTHER_FORM: dict[Form, Form] = {"json": "binary", "binary": "json"}
# The first is the usual one of a form; the last is what curl sends unless it is told otherwise.
MEDIA_TYPES: dict[str, str] = {"json": JSON, "octets": OCTET_STREAM, "form": "application/x-www-form-urlencoded"}
_OWN_MEDIA: dict[Form, str] = {"json": "json", "binary": "octets"}
# Whether a call is answered, and the form of its strings -> the requirement of an answer with wrong values.
_WRONG_VALUES: dict[tuple[bool, Form], str] = {
    (False, "json"): "OIP-ANSWER",
    (False, "binary"): "BIN-BYTES-I",
    (True, "json"): "GRPC-TYPED",
    (True, "binary"): "GRPC-RAW-BYTES",
}
_TYPES = Only(HTTP, "a call has one content type")
# Strings of about this length: a long one may exceed a limit of its own, and many short ones are slow to parse. Their
# text has what separates the fields of a form.
TEXT = b"a=1&b=%41+c;" * 84


def make_strings(model: Model, size: int) -> list[Tensor]:
    """Return inputs of about `size` bytes, whose strings differ in length from their neighbours."""
    return [model.tensor([TEXT[: 1000 - number % 7] for number in range(size // 1000)])]


def _make_rows() -> Iterator[Row]:
    """Yield a row for each size, form and content type; over gRPC, one for each size and form."""
    for size in (1, 8):
        for form, own in _OWN_MEDIA.items():
            needs = BINARY if form == "binary" else ()
            yield Row(f"{form}-{size}-MiB", (size, form), needs=needs)
            for media in [name for name in MEDIA_TYPES if name != own]:
                has_crashed = (size, media) == (8, "form")  # a server that reads such bodies as queries
                name = f"{form}-{size}-MiB-as-{media}"
                yield Row(name, (size, form, media), needs=needs, dangerous=has_crashed, only=_TYPES)


@claim("sizes.large-body-is-answered", requirements="OIP-BODY-SIZE", role="string_length")
@rows(*_make_rows())
def large_body_is_answered(target: AnyTarget, model: Model, size: int, form: Form, media: str = "") -> None:
    """The server answers a body of megabytes, or refuses it with 413 or in both forms."""

    def send(form: Form, length: int) -> Reply:
        message = target.message(model.request(make_strings(model, length), send=form))
        return target.send(message.with_header("Content-Type", MEDIA_TYPES[media]) if media else message, fresh=True)

    def expect_answer(reply: Reply, length: int) -> None:
        about = _WRONG_VALUES[reply.is_over_grpc, form] if reply.succeeded else None
        about = attribution.attribute_missing_answer(reply) if reply.status is None else about
        expect(reply, about).tensors(model.expected(make_strings(model, length)))

    reply = send(form, size * MIB)
    if reply.is_refusal and media:
        for control, what in (((form, FEW_BYTES), "few bytes"), ((OTHER_FORM[form], size * MIB), "the other form")):
            if send(*control).is_refusal:
                expect_refusal_status(reply)
                raise NotApplicableError(f"refused under this content type, and so are {what}: {reply.outcome()}")
    is_small_wrong = "few bytes in the same form get a wrong answer as well"
    with block_if(lambda: not is_met(lambda: expect_answer(send(form, FEW_BYTES), FEW_BYTES)), is_small_wrong):
        expect_answer(reply, size * MIB)
