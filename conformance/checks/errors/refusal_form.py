"""The status and the error object of refusals, for every request that a server has to refuse.

Each area judges whether its requests are refused; this module does not judge accepted requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace

from conformance import checks
from conformance.checks.errors.impossible import REFUSALS_OVER_GRPC
from conformance.checks.errors.impossible_requests import NULL_MEMBERS, REFUSALS
from conformance.checks.support.documents import list_versions
from conformance.checks.support.refusals import Refusal
from conformance.checks.support.versions import read_named_version
from conformance.checks.support.wrong_requests import send_json
from conformance.expect.expectation import expect
from conformance.expect.refusals import ERROR, ERROR_ELSEWHERE, expect_alive, expect_error_object
from conformance.expect.unmet import NotApplicableError, UnmetError
from conformance.roles.model import MessageBuilder, Model
from conformance.spec.check import Only, Row, check, claim, rows
from conformance.spec.extensions import GRPC, HTTP
from conformance.spec.fit import JSON
from conformance.spec.text import escape_text
from conformance.transport.any_target import AnyTarget
from conformance.transport.exchange import Reply
from conformance.transport.grpc_target import GrpcTarget
from conformance.transport.target import REDIRECTIONS, Target
from conformance.wire.json_text import parse_json

# --- requests that have to be refused, from every area ----------------------------------------------------------------

THIS_AREA = "errors"


def _list_refusals_of_other_areas(constant: str) -> Iterator[tuple[str, Refusal]]:
    """Yield the area and the refusal, for each refusal that modules of other areas list in this constant.

    A refusal that several modules list is yielded once.
    """
    seen: set[int] = set()
    for area, package in checks.PACKAGES.items():
        for module in checks.import_modules(package) if area not in (THIS_AREA, *checks.CLIENT_AREAS) else ():
            for refusal in getattr(module, constant, ()):
                if id(refusal) not in seen:
                    seen.add(id(refusal))
                    yield area, refusal


# row id -> refusal over HTTP; the id starts with the area
_REFUSAL_BY_ROW = {
    f"{area}-{refusal.fault}": refusal for area, refusal in _list_refusals_of_other_areas("REFUSALS")
} | {f"{THIS_AREA}-{refusal.fault}": refusal for refusal in REFUSALS}


def _choose_first_refusals(key: Callable[[str], object], areas: Collection[str] = checks.PACKAGES) -> set[str]:
    """Return the first row id of these areas for each result of `key`, among rows that fit deployed models."""
    fitting = [one for one, refusal in _REFUSAL_BY_ROW.items() if refusal.fit and one.partition("-")[0] in areas]
    return set({key(identity): identity for identity in reversed(fitting)}.values())


_ONE_PER_STAGE = {
    f"{THIS_AREA}-{fault}"
    for fault in (  # detected by the path, the JSON text, its members, its names, its data, an element
        *("unknown-model", "json-cut-short", "inputs-no-array"),
        *("unknown-output", "last-element-missing", "null-for-the-first-number"),
    )
}
# Refusals for deployed models: the faults above, and of the others one for each requirement, or for each area.
SENT_TO_DEPLOYED_MODELS = _ONE_PER_STAGE | _choose_first_refusals(
    lambda identity: _REFUSAL_BY_ROW[identity].requirement
)
ONE_PER_AREA = _ONE_PER_STAGE | _choose_first_refusals(
    lambda identity: identity.partition("-")[0], checks.PACKAGES.keys() - {THIS_AREA}
)
REFUSALS_BY_ROW = {
    identity: refusal
    for identity, refusal in _REFUSAL_BY_ROW.items()
    if refusal.role or identity in SENT_TO_DEPLOYED_MODELS
}

EVERY_GRPC_REFUSAL = (
    *[refusal for _, refusal in _list_refusals_of_other_areas("REFUSALS_OVER_GRPC")],
    *REFUSALS_OVER_GRPC,
)
GRPC_SENT_TO_DEPLOYED_MODELS = list(
    {one.requirement: one for one in reversed(EVERY_GRPC_REFUSAL) if one.fit is not None}.values()
)


# --- the form ---------------------------------------------------------------------------------------------------------
# Each area judges whether its requests are refused; a request that was accepted is not judged here.


@check("errors.refusal-is-an-oip-error", requirements=("OIP-ERROR", "OIP-ERROR-STATUS", "OIP-JSON"))
@rows(
    *[
        Row(
            *(identity, (refusal.message,), refusal.role),
            needs=refusal.extensions,
            fit=refusal.fit if identity in SENT_TO_DEPLOYED_MODELS else None,
        )
        for identity, refusal in REFUSALS_BY_ROW.items()
    ],
    *[
        Row(f"{THIS_AREA}-{fault.name}", (fault.build_request(send_json),), fault.role, needs=fault.needs)
        for fault in NULL_MEMBERS
    ],
)
def refusal_is_an_oip_error(target: Target, model: Model, message: MessageBuilder) -> None:
    """The server refuses with a 4xx status and a JSON object that has the string `error`."""
    reply = target.send(message(model), fresh=True)
    if reply.succeeded:
        return
    expect_error_object(reply, ERROR)
    for finding in parse_json(reply.body).findings:
        if finding.kind == "json-not-utf8":
            raise expect(reply, "OIP-JSON").unmet("JSON in UTF-8", finding.described, finding.offset)
    expect_client_error(reply)


def expect_client_error(reply: Reply) -> None:
    """Expect a refusal to have a 4xx status."""
    if reply.status is not None and reply.status >= 500:
        raise expect(reply, "OIP-ERROR-STATUS").unmet("a 4xx status", escape_text(reply.outcome()))


@check(
    "grpc.refusal-says-that-the-request-is-wrong",
    requirements=("OIP-ERROR-STATUS/grpc", "GRPC-STATUS"),
    over=(GRPC,),
    only=Only(GRPC, "a refusal is a status; over HTTP it is an object as well"),
)
@rows(
    *[
        Row(
            *(refusal.fault, (refusal,), refusal.role),
            needs=refusal.extensions,
            fit=refusal.fit if refusal in GRPC_SENT_TO_DEPLOYED_MODELS else None,
        )
        for refusal in EVERY_GRPC_REFUSAL
    ]
)
def refusal_says_that_the_request_is_wrong(target: GrpcTarget, model: Model, refusal: Refusal) -> None:
    """The server refuses with INVALID_ARGUMENT; an unknown name or an unreadable call, with any error status."""
    reply = target.send(refusal.message(model), fresh=True)
    if reply.succeeded:
        return
    expect(reply, "OIP-REFUSAL/grpc").refused(refusal.described)
    if reply.exchange.code != "INVALID_ARGUMENT" and not refusal.unknown:
        raise UnmetError(f"INVALID_ARGUMENT for {refusal.described}", escape_text(reply.outcome()), reply)


# --- methods and paths that no endpoint has ---------------------------------------------------------------------------

INFER, MODEL, SERVER = "{model}/infer", "{model}", "/v2"


@check("errors.wrong-method-or-path-has-an-error-object", requirements="OIP-ERROR-ELSEWHERE", role="identity_int32")
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
    """The server answers a wrong method or path with a JSON object that has the string `error`."""
    good = model.request(send="json").message()
    wanted = replace(good, method=method, path=path.format(model=model.path))
    reply = target.send(wanted.with_body(b"") if method == "GET" else wanted, fresh=True)
    if reply.succeeded or reply.status in REDIRECTIONS:
        raise NotApplicableError(f"the server answers {method} {wanted.path} without an error")
    expect_error_object(reply, ERROR_ELSEWHERE)


# --- versions that the model does not have ----------------------------------------------------------------------------

UNLISTED, BEYOND_64_BITS = "87654", str(2**64)
ANSWERING = "inference-by-the-version-that-answers"
# An example of Triton, Classification Extension, asks for version -1.
MALFORMED_VERSIONS: Mapping[str, str] = {"a-word": "no-such-version", "a-letter": "v"}
# Spellings that equal the version if a server parses versions as numbers; versions are strings.
SPELLINGS: Mapping[str, str] = {
    "a-zero-in-front": "0{}",
    "a-plus-in-front": "+{}",
    "a-fraction-of-0": "{}.0",
    "letters-behind": "{}-beta",
    "an-underscore": "0_{}",
}


@check(
    "errors.version-beyond-64-bits-is-refused",
    requirements=("OIP-VERSION-UNKNOWN", "OIP-ERROR-STATUS"),
    role="identity_int32",
    fit=JSON,
    only=Only(HTTP, "any status but OK refuses an unknown name; `unlisted-version-is-refused` sends such versions too"),
)
@rows(
    *[(of, of, BEYOND_64_BITS) for of in ("inference", "metadata")],
    *[
        (f"{of}-of-{name}", of, version)
        for of in ("inference", "metadata")
        for name, version in MALFORMED_VERSIONS.items()
    ],
)
def version_beyond_64_bits_is_refused(target: Target, model: Model, operation: str, version: str) -> None:
    """The server refuses a version that no model has (20 digits, letters, -1) with a 4xx status."""
    listed = list_versions(target, model)
    if not listed or version in listed:
        raise NotApplicableError(
            f"the metadata of {model.name} list {f'version {version}' if listed else 'no versions'}"
        )
    expect_client_error(_expect_version_refused(target, model, version, operation))


_IN_CALLS = Only(GRPC, "`version-beyond-64-bits-is-refused` judges it; the readiness of a version has no sentence")


@claim("errors.unlisted-version-is-refused", requirements="OIP-VERSION-UNKNOWN", role="identity_int32", fit=JSON)
@rows(
    *[(of, of, UNLISTED) for of in ("inference", "metadata")],
    Row("readiness", ("readiness", UNLISTED), only=_IN_CALLS),
    *[
        Row(f"{of}-of-{name}", (of, version), fit=None, only=_IN_CALLS)
        for of in ("inference", "metadata", "readiness")
        for name, version in (("beyond-64-bits", BEYOND_64_BITS), *MALFORMED_VERSIONS.items())
    ],
    (ANSWERING, ANSWERING, ""),
    *[(f"{of}-of-{name}", of, text) for of in ("inference", "metadata") for name, text in SPELLINGS.items()],
)
def unlisted_version_is_refused(target: AnyTarget, model: Model, operation: str, spelling: str) -> None:
    """The server refuses a request for a version that the model's metadata do not list, or says that it is not ready."""
    listed = list_versions(target, model)
    own = next(iter(listed), "")
    version = _find_answering_version(target, model) if operation == ANSWERING else spelling.format(own)
    if listed and not version:
        raise NotApplicableError(f"the answer of {model.name} has no version that a path can contain")
    if not listed or version in listed:
        known = f"version {escape_text(version)}" if listed else "no versions"
        raise NotApplicableError(f"the metadata of {model.name} list {known}")
    _expect_version_refused(target, model, version, operation)


def _expect_version_refused(target: AnyTarget, model: Model, version: str, operation: str) -> Reply:
    """Expect the server to refuse an operation for a version, or to answer that it is not ready."""
    named = replace(model, version=version)
    if operation == "inference":
        reply = target.send(target.message(named.request(send="json")), fresh=True)
    else:
        reply = target.describe(named, fresh=True) if operation == "metadata" else target.ask_health("model", named)
    if not (operation == "readiness" and (reply.answer.document or {}).get("ready") is False):
        expect(reply).refused("a version that does not exist")
    expect_alive(target, model)
    return reply


def _find_answering_version(target: AnyTarget, model: Model) -> str:
    """Return the version in an answer; empty if the answer has no version, or none that a path can contain."""
    version = read_named_version(target.infer(model.request(send="json")))
    return version if isinstance(version, str) and re.fullmatch("[A-Za-z0-9._-]+", version) else ""
