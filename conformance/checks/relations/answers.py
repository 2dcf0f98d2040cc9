"""Relations of a model and its plain answers, as the base protocol has them."""

from __future__ import annotations

from conformance.checks.relations.plain_answer import FEW, ask, expect_same, form, several, some
from conformance.checks.support.answers import expect_fits_schema, expect_no_null, expect_only
from conformance.checks.support.metadata import expect_document, expect_health
from conformance.expect import attribution
from conformance.expect.expectation import expect
from conformance.expect.unmet import Unmet
from conformance.survey.deployed import FULL, PLAIN, Deployed
from conformance.terms.check import Row, check, rows
from conformance.terms.text import safe
from conformance.transport.target import Target
from conformance.wire.finding import shown

# --- the model, and its answers as the base protocol has them -----------------------------------------------------


@check("relations.metadata-are-well-formed", answers=("OIP-MODEL-METADATA", "OIP-NULL"))
def metadata_are_well_formed(target: Target, model: Deployed) -> None:
    """Model metadata has what it has to have, and nothing in it is null."""
    reply = target.get(model.path)
    expect_no_null(reply, expect_document(reply, "model_metadata", ("name", "platform", "inputs", "outputs")))


@check("relations.health-is-told", answers="OIP-HEALTH")
@rows("live", "ready", "model")
def health_is_told(target: Target, model: Deployed, of: str) -> str:
    """A server whose model answers says that it is live, that the model is ready, and something of itself."""
    return expect_health(target, model, of).outcome()


@check("relations.answer-has-the-declared-outputs", answers=("OIP-OUTPUTS-ALL", "OIP-MODEL-METADATA"))
def answer_has_the_declared_outputs(target: Target, model: Deployed) -> None:
    """A request that lists no outputs is answered with those of the model's metadata, in the datatypes given there."""
    reply = model.answer(target, PLAIN)
    if model.listed():
        reply = target.infer(model.request(send=model.sends, binary_data_output=True))
    expect(reply).answered()
    for name, datatype in model.declared.items():
        expected = f"{name} {datatype}, as the model's metadata have it"
        found = reply.answer.output(name)
        if found is None:
            listed = f"outputs {shown(list(reply.answer.names()))}"
            raise Unmet(expected, listed, reply, requirement=attribution.of_output(reply, name))
        if found.datatype != datatype:
            raise Unmet(expected, f"{name} {safe(found.datatype, 40)}", reply, requirement="OIP-MODEL-METADATA")


@check("relations.listed-outputs-come-alone", answers=("OIP-OUTPUTS-LISTED", "OIP-OUTPUTS-ONLY"))
def listed_outputs_come_alone(target: Target, model: Deployed) -> None:
    """Where the request lists some of the outputs, the answer has these and no others, as it has them among all."""
    names = several(model.outputs, "output")
    for chosen in some(names)[:FEW]:
        listed = [output for output in form(model, ()) if output.name in chosen]
        reply = ask(target, model, outputs=listed)
        expect(reply).answered()
        for name in chosen:
            expect(reply).output(name)
        if set(chosen) - set(model.unsteady):
            expect_same(target, model, reply, "OIP-ANSWER", chosen)
        expect_only(reply, chosen)


@check(
    "relations.answer-is-well-formed",
    answers=("OIP-OUTPUT-MEMBERS", "OIP-SHAPE", "OIP-MODEL-NAME", "OIP-JSON", "OIP-MODEL-VERSION", "OIP-NULL"),
)
@rows(("plain", PLAIN), Row("binary", (FULL,), needs=("binary_tensor_data",)))
def answer_is_well_formed(target: Target, model: Deployed, which: str) -> None:
    """The JSON of an answer is JSON, and has what an inference answer has."""
    reply = model.answer(target, which)
    expect(reply, "OIP-JSON").free_of("json-invalid", "json-not-utf8")
    for requirement in ("OIP-OUTPUT-MEMBERS", "OIP-SHAPE", "OIP-MODEL-NAME", "OIP-MODEL-VERSION"):
        expect_fits_schema(reply, requirement)
    expect(reply, "OIP-SHAPE").free_of("data-count")
    expect_no_null(reply, reply.answer.document)
