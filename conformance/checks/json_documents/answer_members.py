"""What the JSON of an answer says of model and outputs."""

from __future__ import annotations

from conformance.checks.support.documents import ANSWERS, expect_fits_schema, expect_no_null
from conformance.expect import attribution
from conformance.expect.expectation import expect
from conformance.expect.unmet import UnmetError
from conformance.roles.model import MessageBuilder, Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import ANY, Fit
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.finding import format_value
from conformance.wire.request import Message

# --- what an answer says of itself -------------------------------------------------------------------------------------


@check("json.answer-names-its-model", answers=("OIP-MODEL-NAME", "OIP-MODEL-NAME-ASKED", "OIP-JSON"))
@rows(*ANSWERS)
def answer_names_its_model(target: Target, model: Model, make: MessageBuilder) -> None:
    """An inference answer has the string model_name, which is the name that was asked for."""
    reply = target.infer(make(model))
    expect_fits_schema(reply, "OIP-MODEL-NAME")
    found = (reply.answer.document or {}).get("model_name")
    if found != model.name:
        asked = "OIP-MODEL-NAME-ASKED"
        raise UnmetError(
            f"model_name {format_value(model.name)}", f"model_name {format_value(found)}", reply, requirement=asked
        )


@check("json.answer-describes-its-outputs", answers=("OIP-OUTPUT-MEMBERS", "OIP-JSON"))
@rows(*ANSWERS)
def answer_describes_its_outputs(target: Target, model: Model, make: MessageBuilder) -> None:
    """An inference answer is an object with an array of outputs, each with name, shape and datatype."""
    expect_fits_schema(target.infer(make(model)), "OIP-OUTPUT-MEMBERS")


@check("json.model-version-is-a-string", answers=("OIP-MODEL-VERSION", "OIP-JSON"))
@rows(*ANSWERS)
def model_version_is_a_string(target: Target, model: Model, make: MessageBuilder) -> None:
    """The model_version of an inference answer is a string, where there is one."""
    expect_fits_schema(target.infer(make(model)), "OIP-MODEL-VERSION")


@check("json.shape-counts-the-elements", answers=("OIP-SHAPE", "OIP-JSON"))
@rows(*ANSWERS)
def shape_counts_the_elements(target: Target, model: Model, make: MessageBuilder) -> None:
    """The dimensions of an output are non-negative integers whose product is the number of its elements."""
    reply = target.infer(make(model))
    expect_fits_schema(reply, "OIP-SHAPE")
    expect(reply).free_of("shape-no-integers", "data-count", "bytes-count")


@check("json.integers-are-written-as-such", answers=("OIP-INTEGERS", "OIP-JSON"))
@rows(*ANSWERS)
def integers_are_written_as_such(target: Target, model: Model, make: MessageBuilder) -> None:
    """Dimensions and sizes in an answer are written as integers, 8 and not 8.0."""
    expect(target.infer(make(model))).answered().free_of("integer-with-a-point")


@check("json.absent-members-are-left-out", answers=("OIP-NULL", "OIP-JSON"))
@rows(
    *ANSWERS,
    Row("server-metadata", (lambda _: Message("/v2", method="GET"),), role="identity_int32", fit=ANY),
    Row("model-metadata", (lambda model: Message(model.path, method="GET"),), role="identity_int32", fit=ANY),
)
def absent_members_are_left_out(target: Target, model: Model, make: MessageBuilder) -> None:
    """An optional member of an answer or of metadata is absent, rather than null, where it has nothing to say."""
    made = make(model)
    reply = target.send(made) if isinstance(made, Message) else target.infer(made)
    expect(reply, "OIP-ENDPOINTS" if reply.exchange.message.method == "GET" else "OIP-ANSWER").answered()
    expect_no_null(reply, reply.answer.document)


@check("json.bool-is-true-or-false", answers=("OIP-BOOL", "OIP-JSON"))
@rows(
    Row("identity", role="identity_bool"),
    Row("beside-others", role="multi"),
    Row("own", fit=Fit(outputs=frozenset({"BOOL"}), is_json=True)),
)
def bool_is_true_or_false(target: Target, model: Model) -> None:
    """BOOL elements of an answer in JSON are true and false, not numbers."""
    expect(target.infer(model.request(send="json"))).answered().free_of("bool-number")


@check("json.answer-is-json-in-utf-8", answers="OIP-JSON")
@rows(*ANSWERS)
def answer_is_json_in_utf_8(target: Target, model: Model, make: MessageBuilder) -> None:
    """The JSON of an answer is valid and in UTF-8, and nothing but binary data follows it."""
    expect_json(target.infer(make(model)))


def expect_json(reply: Reply) -> None:
    """Expect an answer with a JSON document (OIP-ANSWER)."""
    expect(reply, "OIP-ANSWER").answered()
    if requirement := attribution.attribute_json_text(reply):
        findings = "; ".join(finding.described for finding in reply.answer.findings)
        raise UnmetError("JSON in UTF-8, and nothing behind it", findings, reply, requirement=requirement)
