"""Numbers beyond 31, 32, 63 and 64 bits that a server computes with, and invalid names of models.

Other areas judge most such numbers: `sizes` judges sizes, `bytes` lengths of elements, `headers` inference headers,
`sizes` and `errors` shapes that no body can fill.
"""

from __future__ import annotations

from collections.abc import Sequence

from conformance.checks.robustness.hostile_requests import (
    CLOSED_KINDS,
    expect_settled,
    expect_still_serving,
    make_plain_request,
    make_row,
)
from conformance.checks.support.wrong_requests import Encoder, Start, WrongRequest, send_json
from conformance.expect.unmet import UnmetError
from conformance.roles.model import MessageBuilder, Model
from conformance.spec.check import Only, Row, check, rows
from conformance.spec.extensions import BINARY, CLASSES, CLASSES_OVER_GRPC, GRPC, HTTP
from conformance.spec.text import escape_text
from conformance.transport.any_target import AnyTarget
from conformance.transport.hostile_sending import Octets
from conformance.transport.target import Target
from conformance.wire.edits import Set
from conformance.wire.grpc_request import make_infer_message
from conformance.wire.message_edits import set_length
from conformance.wire.request import Form, InferRequest, RequestedOutput

# --- numbers ----------------------------------------------------------------------------------------------------------
# Other areas judge most such numbers; see the top of this module.

ROLES = {1: "identity_int32", 2: "rank2", 3: "rank3"}
# Shapes without elements, in which the product of the nonzero dimensions overflows some number of bits.
EMPTY = {
    "0-by-2-to-the-31": [0, 2**31],
    "0-by-2-to-the-63-less-1": [0, 2**63 - 1],
    "2-to-the-62-by-0": [2**62, 0],
    "2-to-the-32-twice-by-0": [2**32, 2**32, 0],
    "2-to-the-40-by-0-by-2-to-the-40": [2**40, 0, 2**40],
}


def _send_no_elements(send: Form) -> Start:
    """Return a builder of a request with an input without elements."""
    return lambda model: model.request([model.tensor([], (0,) * len(model.role.inputs[0].shape))], send=send)


def _set_shape(shape: Sequence[int], send: Form, encode: Encoder = InferRequest.encode_with) -> WrongRequest:
    """Return a request with an input of this shape and no elements."""
    return WrongRequest(_send_no_elements(send), (Set("inputs.0.shape", list(shape)),), encode)


def _request_classes(count: int | str) -> MessageBuilder:
    """Return a builder of a request for `count` classes."""
    return lambda model: model.request(
        [model.tensor([1, 2, 3])],
        send="json",
        outputs=[RequestedOutput(model.role.outputs[0].name, classification=count)],
    ).message()


COUNTS: tuple[tuple[str, int | str, bool], ...] = (
    ("0-classes", 0, False),
    ("2-to-the-31-classes", 2**31, True),
    ("2-to-the-32-classes", 2**32, True),
    ("2-to-the-63-classes", 2**63, True),
    ("2-to-the-64-classes", 2**64, True),
    ("10-to-the-400-classes", 10**400, True),
    ("2-to-the-32-classes-as-a-string", str(2**32), True),
)


def _call_for_classes(count: int) -> MessageBuilder:
    return lambda model: make_infer_message(
        model.request(
            [model.tensor([1, 2, 3])], outputs=[RequestedOutput(model.role.outputs[0].name, classification=count)]
        )
    )


@check(
    "robustness.number-beyond-all-is-answered-or-refused",
    requirements="ROBUST-NUMBERS",
    infers=False,
    only=Only(HTTP, "calls hold other numbers: their twin has those"),
)
@rows(
    *[
        make_row(f"shape-{name}", _set_shape(shape, "json"), role=ROLES[len(shape)], dangerous=max(shape) > 2**31)
        for name, shape in EMPTY.items()
    ],
    *[
        make_row(
            f"shape-{name}-in-binary", _set_shape(shape, "binary"), role=ROLES[len(shape)], needs=BINARY, dangerous=True
        )
        for name, shape in EMPTY.items()
    ],
    *[
        make_row(name, _request_classes(count), role="identity_fp32", needs=CLASSES, dangerous=bad)
        for name, count, bad in COUNTS
    ],
    make_row(
        "inference-header-of-minus-0", WrongRequest(send_json, (set_length("-0"),)), role="identity_int32", needs=BINARY
    ),
    make_row(
        "inference-header-of-4000-digits",
        WrongRequest(send_json, (set_length("9" * 4000),)),
        role="identity_int32",
        needs=BINARY,
    ),
)
def number_beyond_all_is_answered_or_refused(
    target: AnyTarget, model: Model, name: str, build_message: MessageBuilder
) -> None:
    """The server answers or refuses a number beyond 31, 32, 63 or 64 bits in time, or closes the connection."""
    with expect_still_serving(target, model):
        expect_settled(target.send(build_message(model), fresh=True), f"a request with {name}")


@check(
    "robustness.number-beyond-all-is-answered-or-refused-over-grpc",
    requirements="ROBUST-NUMBERS/grpc",
    over=(GRPC,),
    infers=False,
    only=Only(GRPC, "documents hold other numbers: their twin has those"),
)
@rows(
    *[
        make_row(
            f"shape-{name}", _set_shape(shape, "binary", make_infer_message), role=ROLES[len(shape)], dangerous=True
        )
        for name, shape in EMPTY.items()
    ],
    *[
        make_row(
            f"2-to-the-{bits}-classes",
            _call_for_classes(2**bits),
            role="identity_fp32",
            needs=CLASSES_OVER_GRPC,
            dangerous=True,
        )
        for bits in (31, 32, 62)
    ],
)
def number_beyond_all_is_answered_or_refused_over_grpc(
    target: AnyTarget, model: Model, name: str, build_message: MessageBuilder
) -> None:
    """Over gRPC, the server answers or refuses a number beyond 31, 32 or 62 bits in time, or closes the connection."""
    with expect_still_serving(target, model):
        expect_settled(target.send(build_message(model), fresh=True), f"a request with {name}")


# --- names of models --------------------------------------------------------------------------------------------------

PARENT_FOLDERS = 8  # folders
TARGET_FILE = "etc/passwd"


@check("robustness.odd-name-leads-nowhere", requirements="ROBUST-PATH", role="identity_int32", infers=False)
@rows(
    Row("folders-upwards", ("../" * PARENT_FOLDERS + TARGET_FILE,)),
    Row("folders-upwards-escaped", ("..%2F" * PARENT_FOLDERS + TARGET_FILE.replace("/", "%2F"),)),
    Row("dots-escaped", ("%2e%2e/" * PARENT_FOLDERS + TARGET_FILE,)),
    Row("escaped-twice", ("%252e%252e%252f" * PARENT_FOLDERS + TARGET_FILE,)),
    Row("backslashes", ("..%5C" * PARENT_FOLDERS + TARGET_FILE,)),
    Row("whole-path", ("%2F" + TARGET_FILE.replace("/", "%2F"),)),
    Row("nul-behind-the-name", ("{model}%00.txt",)),
    Row("nul-alone", ("%00",)),
    Row("no-utf-8", ("%FF%FE%ED%A0%80",)),
    Row("half-an-escape", ("%",)),
    Row("no-escape", ("%zz",)),
    Row("4000-letters", ("x" * 4000,)),
)
def odd_name_leads_nowhere(target: Target, model: Model, name: str) -> None:
    """The server refuses a model name that leaves the model folder or is not valid text."""
    message = make_plain_request(model)
    own, path = model.path.encode(), f"/v2/models/{name.format(model=model.name)}"
    octets = target.render_octets(message).replace(own, path.encode(), 1)
    with expect_still_serving(target, model):
        reply = target.send_octets(message, Octets(octets, f"to {path[:80]}"))[0]
        if not (reply.has_failed(*CLOSED_KINDS) or (reply.status or 0) >= 300):  # a redirect is not followed
            raise UnmetError("a refusal, or the end of the connection", escape_text(reply.outcome()), reply)
