"""Methods and paths that no endpoint has: the error has the form of every other."""

from __future__ import annotations

from dataclasses import replace

from conformance.checks.errors.refusal_form import expect_error_object
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import JSON
from conformance.transport.target import Target

INFER, MODEL, SERVER = "{model}/infer", "{model}", "/v2"


@check("errors.wrong-method-or-path-has-an-error-object", answers="OIP-ERROR-ELSEWHERE", role="identity_int32")
@rows(
    Row("get-of-infer", ("GET", INFER), fit=JSON),
    ("put-of-infer", "PUT", INFER),
    ("delete-of-infer", "DELETE", INFER),
    ("post-of-server-metadata", "POST", SERVER),
    ("put-of-model-metadata", "PUT", MODEL),
    Row("path-behind-a-model", ("POST", "{model}/no-such-endpoint"), fit=JSON),
    ("path-behind-infer", "POST", "{model}/infer/no-such-endpoint"),
    ("path-behind-v2", "GET", "/v2/no-such-endpoint"),
)
def wrong_method_or_path_has_an_error_object(target: Target, model: Model, method: str, path: str) -> None:
    """An error for a method or a path that no endpoint has is a JSON object with the string `error`."""
    good = model.request(send="json").message()
    wanted = replace(good, method=method, path=path.format(model=model.path))
    reply = target.send(wanted.with_body(b"") if method == "GET" else wanted, fresh=True)
    if reply.succeeded:
        raise NotApplicableError(f"{method} of {wanted.path} is answered")
    expect_error_object(reply, "OIP-ERROR-ELSEWHERE")
