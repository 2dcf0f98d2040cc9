"""A plain request is answered, at the endpoints of the protocol."""

from __future__ import annotations

from conformance.checks.support.metadata import ABSENT_STATUSES, expect_health
from conformance.checks.support.repeated_requests import attribute_to_isolation
from conformance.discovery.deployed_model import DeployedModel
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, UnmetError
from conformance.roles.model import Model
from conformance.roles.roles import load
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import BINARY
from conformance.spec.fit import ANY
from conformance.spec.text import escape_text
from conformance.transport.broken_request import UNAVAILABLE
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.json_text import parse_json

# --- a plain request ---------------------------------------------------------------------------------------------------


@check("json.plain-request-is-answered", answers=("OIP-ENDPOINTS", "OIP-ANSWER", "OIP-ISOLATION"), infers=False)
@rows(
    *[Row(name, role=name, needs=() if role.is_json_capable else BINARY) for name, role in load().items()],
    Row("own", fit=ANY),
)
def plain_request_is_answered(target: Target, model: Model) -> None:
    """A plain inference request is answered with status 200 and the right outputs."""
    if isinstance(model, DeployedModel) and model.tensors and (model.trouble or model.demands):
        _expect_any_answer(target.infer(model.plainest()), model)
    request = model.request(send="json") if model.is_json_capable else model.request(want="binary")
    reply = target.infer(request)
    if reply.status == UNAVAILABLE:  # a model to load
        reply = target.infer(request)
    if reply.status not in ABSENT_STATUSES:
        expect(reply, "OIP-ANSWER").answered()
    if expect(reply).answered().reply.status != 200:
        raise UnmetError("status 200 for an inference", f"status {reply.status}", reply)
    try:
        _expect_outputs(reply, model)
    except UnmetError as unmet:
        attribute_to_isolation(target, unmet, lambda again: _expect_outputs(again, model))
        raise


def _expect_any_answer(reply: Reply, model: DeployedModel) -> None:
    """Expect an answer that can be read from a model that takes the inputs."""
    if model.demands and not reply.succeeded:
        expected = f"an answer, as the same request with {model.demands} has"
        raise UnmetError(expected, escape_text(reply.outcome()), reply, requirement="OIP-ANSWER")
    for name in model.declared_outputs:
        expect(reply, "OIP-ANSWER").output(name)


def _expect_outputs(reply: Reply, model: Model) -> None:
    for tensor in model.find_outputs(model.sample()):
        if model.is_json_capable:
            expect(reply, "OIP-ANSWER").tensors([tensor])
        else:  # the values of binary data are judged by datatype
            expect(reply, "OIP-ANSWER").output(tensor.name)


@check("json.metadata-have-status-200", answers="OIP-ENDPOINTS", role="identity_int32", infers=False, fit=ANY)
@rows("server", "model")
def metadata_have_status_200(target: Target, model: Model, of: str) -> None:
    """Server metadata are a GET of v2, model metadata of v2/models/NAME, with status 200."""
    reply = target.get(model.path if of == "model" else "/v2")
    if expect(reply).answered().reply.status != 200:
        raise UnmetError(f"status 200 for {of} metadata", f"status {reply.status}", reply)


# --- health ------------------------------------------------------------------------------------------------------------


@check("json.health-is-told", answers="OIP-HEALTH", role="identity_int32", infers=False, fit=ANY)
@rows("live", "ready", "model")
def health_is_told(target: Target, model: Model, of: str) -> str:
    """A server that answers inference requests says that it is live, of their model that it is ready, and something of itself."""
    if not (plain := target.send(target.good_requests(model)[0].message(), fresh=True)).succeeded:
        raise BlockedError(f"{model.name} answers no plain request: {escape_text(plain.outcome())}")
    return expect_health(target, model, of).outcome()


@check("json.unknown-model-is-not-ready", answers="OIP-HEALTH", role="identity_int32", infers=False, fit=ANY)
def unknown_model_is_not_ready(target: Target, model: Model) -> None:
    """A model that there is not is refused, or said not to be ready, also right after one that is."""
    target.get(f"{model.path}/ready")
    reply = target.get("/v2/models/there-is-no-such-model/ready")
    document, _ = parse_json(reply.body)
    if not (reply.succeeded and isinstance(document, dict) and document.get("ready") is False):
        expect(reply).refused("a model that there is not")
