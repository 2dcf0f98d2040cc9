"""The method ModelInfer; `json_documents.endpoints` has the others."""

from __future__ import annotations

from conformance.expect.attribution import SERVER_FAULTS
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError
from conformance.roles.model import Model
from conformance.spec.check import check
from conformance.spec.extensions import GRPC, HTTP
from conformance.spec.fit import ANY
from conformance.spec.text import escape_text
from conformance.transport.grpc_target import GrpcTarget


@check(
    "grpc.inference-over-http-is-one-over-grpc",
    requirements="OIP-ENDPOINTS/grpc",
    role="identity_int32",
    infers=False,
    over=(GRPC, HTTP),
    fit=ANY,
)
def inference_over_http_is_one_over_grpc(target: GrpcTarget, model: Model) -> None:
    """The server answers ModelInfer for a model with which it infers over HTTP."""
    for request in target.build_good_requests(model):
        reply = target.infer(request)
        if reply.exchange.code not in SERVER_FAULTS:
            return
    if over_http := target.over_http.find_plain_refusal(model):
        raise BlockedError(f"{model.name} answers no plain request over HTTP either: {over_http.outcome()}")
    hint = " (is the service registered under another name?)" if reply.exchange.code == "UNIMPLEMENTED" else ""
    raise expect(reply).unmet("an answer to a plain call, as over HTTP", f"{escape_text(reply.outcome())}{hint}")
