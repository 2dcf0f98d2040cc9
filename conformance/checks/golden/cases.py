"""The golden bytes of `fixtures/`, replayed: each request byte for byte, each answer held against what its case says.

These requests are nobody's code: literal JSON and literal tensors. A row answers for the requirements of its case, and
what is unmet is named as `_golden` says.
"""

from __future__ import annotations

from conformance.checks.golden import case_answers
from conformance.checks.support import golden_classes
from conformance.checks.support.binary_sides import is_right_alone
from conformance.checks.support.deployed_models import attribute_to_isolation
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive
from conformance.expect.unmet import UnmetError, block_if
from conformance.roles.golden_requests import Case, load_all
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.text import escape_text
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.tensor import Tensor

# Shapes whose product overflows have ended servers.
DANGEROUS = frozenset({"shape-product-2-to-the-64"})

# Requirements that say what an answer must hold where the server answers against advice.
_UNHARMED = {
    "BIN-BODY-LONG": "BIN-BODY-LONG-SAFE",
    "BIN-SIZE-FALSE": "BIN-SIZE-FALSE-SAFE",
    "RAW-BYTES-SHAPE": "RAW-BYTES-SHAPE-SAFE",
    "BIN-DATA-AND-SIZE": "BIN-DATA-AND-SIZE-SAFE",
    "BIN-HEADER-SPELLING": "BIN-HEADER-SPELLING-SAFE",
    "BIN-HEADER-MISSING": "BIN-HEADER-MISSING-SAFE",
    "OIP-DIMENSION-NEGATIVE": "OIP-SIGNATURE-SAFE",
}


def _rows(*, valid: bool) -> list[Row]:
    """Return a row for each case; those that no document shows are left out by the quick profile."""
    return [
        Row(
            case.name,
            (case,),
            role=case.role,
            answers=_answers(case),
            thorough=case.source is None,
            needs=case_answers.list_extensions(case),
            dangerous=case.name in DANGEROUS,
        )
        for case in load_all()
        if case.valid == valid
    ]


def _answers(case: Case) -> tuple[str, ...]:
    more = ("OIP-ANSWER", "OIP-ISOLATION") if case.valid else ()
    return (
        *case.requirements,
        *more,
        *(("OIP-WRITTEN", "OIP-VALUE") if case.valid and case.json_length else ()),
        *(("OIP-MEMBERS",) if case.valid and case_answers.list_undefined_members(case) else ()),
    )


@check("golden.valid-case-is-answered")
@rows(*_rows(valid=True))
def valid_case_is_answered(target: Target, model: Model, case: Case) -> str | None:
    """A golden request is answered with the golden outputs."""
    reply = target.send(case_answers.make_message(case, model))
    _expect_no_matter_of_writing(target, case, model, reply)
    if (reply.status or 0) >= 400 and case_answers.list_undefined_members(case):
        case_answers.expect_answered_as(
            case, model, target.send(case_answers.make_plain_message(case, model), fresh=True)
        )
        raise UnmetError(
            "the answer to the same request without that member",
            escape_text(reply.outcome()),
            reply,
            requirement="OIP-MEMBERS",
        )
    if case.may_refuse and not reply.succeeded:
        expect(reply).refused()
    else:
        with block_if(lambda: _is_written_wrong(target, case), "BYTES alone are written wrong, too"):
            _expect_answered_as(target, case, model, reply)
    return case_answers.describe_answer(reply) if case.level == "OBSERVE" else None


def _expect_no_matter_of_writing(target: Target, case: Case, model: Model, reply: Reply) -> None:
    """Expect that a request which is refused is refused as well when its JSON is written in the usual way."""
    usual = case_answers.make_usual_message(case, model) if (reply.status or 0) >= 400 and not case.may_refuse else None
    if usual and target.send(usual, fresh=True).succeeded:
        expected = "the answer to the same request with its JSON in the usual order and without blanks"
        raise UnmetError(expected, escape_text(reply.outcome()), reply, requirement="OIP-WRITTEN")


def _expect_answered_as(target: Target, case: Case, model: Model, reply: Reply) -> None:
    try:
        case_answers.expect_answered_as(case, model, reply)
    except UnmetError as unmet:
        golden_classes.attribute_unmet(target, case, model, unmet)
        if unmet.requirement == "OIP-ANSWER" and any(_is_misread_as_json(target, item) for item in _json_inputs(case)):
            unmet.requirement = "OIP-VALUE"
        if unmet.requirement == "OIP-ANSWER":
            attribute_to_isolation(target, unmet, lambda found: case_answers.expect_answered_as(case, model, found))
        raise


def _json_inputs(case: Case) -> list[Tensor]:
    binary = {part.name for part in case.parts}
    return [tensor for tensor in golden_classes.list_inputs(case) if tensor.name not in binary]


def _is_misread_as_json(target: Target, tensor: Tensor) -> bool:
    """Say whether a tensor that came as JSON is wrong alone, too, from JSON to JSON."""
    return not is_right_alone(target, tensor, "neither")


def _is_written_wrong(target: Target, case: Case) -> bool:
    """Say whether a case of BYTES, whose reading is advice alone, comes out wrong for the writing of them."""
    return "RAW-BYTES-BODY" in case.requirements and not is_right_alone(
        target, Tensor.of("INPUT", "BYTES", [case.body]), "written"
    )


@check("golden.invalid-case-is-refused")
@rows(*_rows(valid=False))
def invalid_case_is_refused(target: Target, model: Model, case: Case) -> None:
    """A golden request with a single fault is refused, and harms no tensor where it is answered."""
    reply = target.send(case_answers.make_message(case, model), fresh=True)
    if reply.succeeded:
        _expect_unharmed(case, model, reply)
    expect(reply).refused(case.name.replace("-", " "))
    expect_alive(target, model)


def _expect_unharmed(case: Case, model: Model, reply: Reply) -> None:
    """Expect that the server, if it takes the request against advice, gets its tensors right."""
    for output in case.outputs:
        try:
            case_answers.expect_output(case, model, reply, output)
        except UnmetError as unmet:
            first, is_readable = case.requirements[0], "OIP-REFUSAL" in case.requirements
            unmet.requirement = "OIP-REFUSAL" if is_readable else _UNHARMED.get(first, unmet.requirement)
            raise
