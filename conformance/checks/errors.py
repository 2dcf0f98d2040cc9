"""How a server refuses: with an error status, with an error object, and without harm to what comes next.

What each area says has to be refused stands in its module's `REFUSALS`, and is judged there; here all of them are sent
again to see what the refusal looks like. A request that was accepted is no refusal, and not judged here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module

from conformance.check import Row, check, rows
from conformance.checks._error_requests import REFUSALS
from conformance.checks._refusals import Refusal, refusal_rows
from conformance.expect import expect, refuses, still_answers
from conformance.outcome import TargetLost
from conformance.roles import Model
from conformance.target.exchange import Reply
from conformance.target.target import Target
from conformance.text import safe
from conformance.wire.json_text import parse
from conformance.wire.request import Message, Output
from conformance.wire.tensor import Tensor

__all__ = ["REFUSALS"]

Make = Callable[[Model], Message]

AREAS = ("headers", "sizes", "datatypes", "bytes", "ordering", "overrides", "raw", "classification", "json")


def _all_refusals() -> Iterator[tuple[str, Refusal]]:
    """Yield the refusals of every area, with a row id that names the area."""
    for area in AREAS:
        found: tuple[Refusal, ...] = getattr(import_module(f"conformance.checks.{area}"), "REFUSALS", ())
        yield from ((f"{area}-{refusal.fault}", refusal) for refusal in found)
    yield from ((f"errors-{refusal.fault}", refusal) for refusal in REFUSALS)


ALL = tuple(_all_refusals())
FIRST_OF_EACH = {refusal.requirement: identity for identity, refusal in reversed(ALL)}


@check("errors.impossible-request-has-an-error-status", answers="OIP-ERR-CODE")
@rows(*refusal_rows(refusal for refusal in REFUSALS if refusal.requirement == "OIP-ERR-CODE"))
def impossible_request_has_an_error_status(target: Target, model: Model, refusal: Refusal) -> None:
    """A request that cannot be carried out is refused."""
    refuses(target, model, refusal.message(model), refusal.told)


@check("errors.input-against-the-metadata-is-refused", answers="OIP-ERR-SIGNATURE")
@rows(*refusal_rows(refusal for refusal in REFUSALS if refusal.requirement == "OIP-ERR-SIGNATURE"))
def input_against_the_metadata_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """An input that contradicts the model's metadata, or that the model does not have, is refused."""
    refuses(target, model, refusal.message(model), refusal.told)


@check("errors.refusal-is-an-oip-error", answers=("OIP-ERR", "OIP-ERR-STATUS", "OIP-JSON"))
@rows(*[Row(identity, (refusal.message,), role=refusal.role) for identity, refusal in ALL])
def refusal_is_an_oip_error(target: Target, model: Model, message: Make) -> None:
    """A refusal is a JSON object with the string `error`, under a 4xx status."""
    reply = target.send(message(model), fresh=True)
    if reply.succeeded:
        return
    expectation = expect(reply, "OIP-ERR").refused()
    if not _is_error_object(reply):
        text = safe(reply.body[:200].decode("utf-8", "replace"))
        raise expectation.unmet('a JSON object with the string "error"', f"HTTP {reply.status}: {text or 'no body'}")
    for finding in parse(reply.body).findings:
        if finding.kind == "json-not-utf8":
            raise expect(reply, "OIP-JSON").unmet("JSON in UTF-8", finding.told, finding.offset)
    if reply.status is not None and reply.status >= 500:
        raise expect(reply, "OIP-ERR-STATUS").unmet("a 4xx status", safe(reply.outcome()))


def _is_error_object(reply: Reply) -> bool:
    document, _ = parse(reply.body)
    return isinstance(document, dict) and isinstance(document.get("error"), str)


@check("errors.good-request-after-a-refusal-is-answered-right", answers="OIP-ALIVE")
@rows(
    *[
        Row(identity, (refusal.message,), role=refusal.role, thorough=refusal.requirement == "OIP-ERR-SIGNATURE")
        for identity, refusal in ALL
        if refusal in REFUSALS or identity == FIRST_OF_EACH[refusal.requirement]
    ]
)
def good_request_after_a_refusal_is_answered_right(target: Target, model: Model, message: Make) -> None:
    """A good request is answered after a refusal as it was before."""
    good, before = _answered(target, replace(model, salt=(model.salt + 101) % 256))
    target.send(message(model), fresh=True)
    try:
        after = target.send(good, fresh=True)
    except TargetLost:
        still_answers(target, model)
        raise
    arrays = [(output, output.array) for output in before.answer.outputs if output.array is not None]
    right = [Tensor(output.name, output.datatype, array.shape, array) for output, array in arrays]
    expect(after).tensors(right)


def _answered(target: Target, model: Model) -> tuple[Message, Reply]:
    """Return a good request and its answer: as JSON, or as binary data where JSON is not answered."""
    plain = [model.request(send="json")] if model.role.speaks_json else []
    for request in plain:
        reply = target.infer(request)
        if reply.succeeded:
            return request.message(), reply
    binary = model.request(want="binary")
    return binary.message(), target.infer(binary)


# --- what has ended servers ---------------------------------------------------------------------------------------


def _classified(model: Model, tensors: Sequence[Tensor] | None = None) -> Message:
    wanted = [Output(model.role.outputs[0].name, classification=1)]
    return model.request(tensors, send="json", outputs=wanted).message()


def _classified_nothing(model: Model) -> Message:
    return _classified(model, [model.tensor([], (0,))])


def _nested_deeply(model: Model) -> Message:
    message = model.request([model.tensor([1])], send="json").message()
    return message.with_body(message.body.replace(b"[1]}", b"[" * DEEP + b"1" + b"]" * DEEP + b"}"))


DEEP = 200_000
CLASSES = ("classification",)


@check("errors.server-outlives-what-has-ended-others", answers="OIP-ALIVE")
@rows(
    Row("classified-strings", (_classified,), role="identity_bytes", needs=CLASSES, dangerous=True),
    Row("classes-of-no-elements", (_classified_nothing,), role="identity_fp32", needs=CLASSES, dangerous=True),
    Row("data-nested-deeply", (_nested_deeply,), role="identity_int32", dangerous=True),
)
def server_outlives_what_has_ended_others(target: Target, model: Model, message: Make) -> None:
    """A request that has ended servers is answered, with or without an error, and so is a good one afterwards."""
    reply = target.send(message(model), fresh=True)
    if reply.status is None:
        raise expect(reply).unmet("an answer, with or without an error", safe(reply.outcome()))
    still_answers(target, model)
