"""A server still answers valid requests after a refusal, and after requests that have crashed some servers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from conformance.checks.errors.refusal_form import EVERY_GRPC_REFUSAL, ONE_PER_AREA, REFUSALS_BY_ROW, THIS_AREA
from conformance.checks.support.controls import expect_or_attribute_to_isolation
from conformance.checks.support.refusals import Refusal
from conformance.checks.support.wrong_requests import send_json
from conformance.expect import attribution
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive, expect_refusal
from conformance.expect.unmet import UnmetError, attribute_to
from conformance.roles.model import MessageBuilder, Model
from conformance.spec.check import Only, Row, check, claim, rows
from conformance.spec.extensions import CLASSES, CLASSES_OVER_GRPC, GRPC, HTTP
from conformance.spec.fit import ANY, Fit
from conformance.spec.text import escape_text
from conformance.transport.any_target import AnyTarget
from conformance.transport.broken_request import BrokenRequest
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLostError
from conformance.wire.edits import update
from conformance.wire.grpc_request import make_infer_message
from conformance.wire.request import Message, RequestedOutput
from conformance.wire.tensor import Tensor

ALIVE_REQUIREMENT = "OIP-ALIVE-LEGAL"
# requirement -> the row id of its first refusal over HTTP
_FIRST_BY_REQUIREMENT: Mapping[str, str] = {
    refusal.requirement: identity for identity, refusal in reversed(REFUSALS_BY_ROW.items())
}
# Calls that a server refuses at different stages, and the first of each requirement.
_FITS: Mapping[str, Fit] = {"unknown-output": ANY, "no-message": ANY}
_KINDS = (*_FITS, "unknown-model", "raw-one-byte-short", "typed-one-element-long")
_FIRST_BY_REQUIREMENT_OVER_GRPC = {refusal.requirement: refusal for refusal in reversed(EVERY_GRPC_REFUSAL)}
_REFUSALS_OVER_GRPC: Mapping[str, Refusal] = {
    **{refusal.fault: refusal for refusal in EVERY_GRPC_REFUSAL if refusal.fault in _KINDS},
    **{refusal.fault: refusal for refusal in _FIRST_BY_REQUIREMENT_OVER_GRPC.values()},
}


# Refusals of this area that share requirement and role: a server detects them at the same stage.
MAX_REFUSALS_OF_A_KIND = 1


def _list_refusal_rows() -> Iterator[Row]:
    """Yield rows for refusals of this area, and for one refusal of each requirement of other areas.

    Deployed models get only the refusals in `ONE_PER_AREA`.
    """
    kinds: Counter[tuple[str, str | None]] = Counter()
    usual = {*_FIRST_BY_REQUIREMENT.values(), *ONE_PER_AREA}
    for identity, refusal in REFUSALS_BY_ROW.items():
        is_own = identity.startswith(f"{THIS_AREA}-")
        kinds[refusal.requirement, refusal.role] += is_own
        is_early = is_own and kinds[refusal.requirement, refusal.role] <= MAX_REFUSALS_OF_A_KIND
        is_for_role = is_early or identity in usual
        role, fit = refusal.role if is_for_role else None, refusal.fit if identity in ONE_PER_AREA else None
        if role or fit:
            yield Row(identity, (refusal.message,), role, needs=refusal.extensions, fit=fit)


@check("errors.good-request-after-a-refusal-is-answered-right", requirements=("OIP-ALIVE", "OIP-ISOLATION"))
@rows(*_list_refusal_rows())
@check("grpc.good-call-after-a-refusal-is-answered-right", requirements="OIP-ALIVE/grpc", over=(GRPC,))
@rows(
    *[
        Row(
            refusal.fault,
            (refusal.message,),
            refusal.role,
            needs=refusal.extensions,
            fit=refusal.fit or _FITS.get(name),
        )
        for name, refusal in _REFUSALS_OVER_GRPC.items()
    ]
)
def good_request_after_a_refusal_is_answered_right(target: AnyTarget, model: Model, message: MessageBuilder) -> None:
    """The server answers a valid request after a refusal as it did before."""
    other = replace(model, salt=(model.salt + 101) % 256)
    good, before = _find_answered_request(target, other)
    _find_answered_request(
        target, replace(model, salt=(model.salt + 102) % 256)
    )  # a stale answer to this one is detected
    right = other.find_outputs(other.sample()) if model.is_deployed else _read_outputs(before)
    fresh = not target.outlives_errors
    target.send(message(model), fresh=fresh)
    try:
        after = target.send(good, fresh=fresh)
    except TargetLostError:
        expect_alive(target, model)
        raise

    def expect_correct_outputs(reply: Reply) -> None:
        with attribute_to("OIP-ALIVE"):  # the answer was correct before, so any fault is due to the refusal
            expect(reply).tensors(right, through_json=target.through_json)

    expect_or_attribute_to_isolation(target, after, expect_correct_outputs)


def _find_answered_request(target: AnyTarget, model: Model) -> tuple[Message, Reply]:
    """Return the first valid request that the server answers, with the reply; the last request if it refuses all."""
    for request in target.build_good_requests(model):
        reply = target.infer(request)
        if reply.succeeded:
            break
    return target.message(request), reply


def _read_outputs(reply: Reply) -> Sequence[Tensor]:
    """Return the outputs of an answer as tensors."""
    arrays = [(output, output.array) for output in reply.answer.outputs if output.array is not None]
    return [Tensor(output.name, output.datatype, array.shape, array) for output, array in arrays]


# --- requests that crash servers --------------------------------------------------------------------------------------


def _request_classes(model: Model, tensors: Sequence[Tensor] | None = None) -> Message:
    """Return a request for one class of the first output."""
    wanted = [RequestedOutput(model.role.outputs[0].name, classification=1)]
    return model.request(tensors, send="json", outputs=wanted).message()


def _request_classes_of_empty_tensor(model: Model) -> Message:
    """Return a request for one class of an output without elements."""
    return _request_classes(model, [model.tensor([], (0,))])


def _request_classes_over_grpc(model: Model, tensors: Sequence[Tensor] | None = None) -> Message:
    """Return a call for one class of the first output."""
    wanted = [RequestedOutput(model.role.outputs[0].name, classification=1)]
    return make_infer_message(model.request(tensors, outputs=wanted))


def _send_empty_tensor_over_grpc(model: Model) -> Message:
    """Return a call with an input without elements."""
    return make_infer_message(model.request([model.tensor([], (0,))]))


MANY_ELEMENTS, INDENT = 30_000, b",\n" + b" " * 140  # more than 4.5 MB of JSON, mostly whitespace: fast to parse


def _send_megabytes_of_json(model: Model) -> Message:
    """Return a JSON request of more than 4.5 MB, with each element on a separate, indented line."""
    elements = range(2**30, 2**30 + MANY_ELEMENTS)
    message = model.request([model.tensor(elements, (MANY_ELEMENTS,))], send="json").message()
    return message.with_body(message.body.replace(b",", INDENT))


def _build_dangerous_row(identity: str, make: MessageBuilder, role: str, needs: tuple[str, ...] = ()) -> Row:
    """Return a row that runs only if the user allows dangerous requests."""
    return Row(identity, (make,), role=role, needs=needs, dangerous=True)


@check("errors.server-outlives-what-has-ended-others", requirements=ALIVE_REQUIREMENT)
@rows(
    _build_dangerous_row("classified-strings", _request_classes, "identity_bytes", CLASSES),
    _build_dangerous_row("classes-of-no-elements", _request_classes_of_empty_tensor, "identity_fp32", CLASSES),
    Row("megabytes-of-json", (_send_megabytes_of_json,), role="identity_int32"),
)
@check("grpc.server-outlives-what-has-ended-others", requirements=f"{ALIVE_REQUIREMENT}/grpc", over=(GRPC,))
@rows(
    _build_dangerous_row("classified-strings", _request_classes_over_grpc, "identity_bytes", CLASSES_OVER_GRPC),
    Row(
        "classes-of-no-elements",
        (lambda model: _request_classes_over_grpc(model, [model.tensor([], (0,))]),),
        role="identity_fp32",
        needs=CLASSES_OVER_GRPC,
    ),
    Row("no-elements", (_send_empty_tensor_over_grpc,), role="identity_fp32"),
)
def server_outlives_what_has_ended_others(target: AnyTarget, model: Model, message: MessageBuilder) -> None:
    """The server survives a request that has crashed other servers, and answers a valid one afterwards."""
    reply = target.send(message(model), fresh=True)
    expect_alive(target, model, ALIVE_REQUIREMENT)
    if reply.status is None:
        silent = attribution.attribute_missing_answer(reply)
        raise expect(reply, silent).unmet("an answer, with or without an error", escape_text(reply.outcome()))


@check(
    "errors.data-that-fill-no-such-shape-are-refused",
    requirements="OIP-REFUSAL",
    only=Only(HTTP, "`grpc.contents-of-a-wrong-size-are-refused` has such contents"),
)
@rows(
    *[
        Row(name, (shape, data), role=role, dangerous=has_crashed_one)
        for name, shape, data, role, has_crashed_one in (
            ("2-32-by-2-32-of-none", [2**32, 2**32], [], "rank2", True),
            ("2-32-by-2-32-of-one", [2**32, 2**32], [1], "rank2", True),
            ("2-63-by-2-of-none", [2**63, 2], [], "rank2", True),
            ("2-32-and-1-of-one", [2**32 + 1], [7], "identity_int32", True),
            ("2-64-of-none", [2**64], [], "identity_int32", False),
            ("strings-2-64-and-1-of-one", [2**64 + 1], ["a"], "identity_bytes", False),
        )
    ]
)
def data_that_fill_no_such_shape_are_refused(
    target: Target, model: Model, shape: Sequence[int], data: Sequence[object]
) -> None:
    """The server refuses JSON data of zero or one element for a shape of more than 2^32 elements."""
    message = send_json(model).encode_with(update("inputs.0", shape=list(shape), data=list(data)))
    expect_refusal(target, model, message, f"{len(data)} elements for the shape {list(shape)}")


# --- discovery --------------------------------------------------------------------------------------------------------

STATUS_REQUIREMENT = "OIP-ERROR-STATUS"


@claim(
    "errors.nothing-breaks-in-discovery", requirements=("OIP-ALIVE-LEGAL", STATUS_REQUIREMENT), judges_discovery=True
)
def nothing_breaks_in_discovery(target: AnyTarget) -> None:
    """The server answers or refuses every request that the suite sends during discovery."""
    for one in sorted(target.broken_before, key=lambda found: (not found.lost, found.is_deliberate)):
        requirement = STATUS_REQUIREMENT if one.is_deliberate else attribution.attribute_broken_request(one)
        raise UnmetError(
            one.expected, _describe_broken_request(one), one.reply, requirement=requirement, ends_server=bool(one.lost)
        )


def _describe_broken_request(found: BrokenRequest) -> str:
    """Describe the outcome of a request that the suite sent during discovery, and of its repetition."""
    again = (
        ""
        if found.second_reply is found.reply or found.is_deliberate
        else f"; sent again: {escape_text(found.second_reply.outcome())}"
    )
    return escape_text(found.outcome) + again
