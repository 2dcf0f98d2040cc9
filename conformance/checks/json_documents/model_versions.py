"""Two versions of a model that compute different things: which of them computed an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from conformance.checks.support.documents import list_versions
from conformance.checks.support.versions import read_named_version
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, is_met
from conformance.roles.model import Model
from conformance.spec.check import Only, Row, claim, rows
from conformance.spec.extensions import BINARY, HTTP, RAW
from conformance.transport.any_target import AnyTarget
from conformance.transport.exchange import Reply
from conformance.wire.finding import format_value
from conformance.wire.request import Message

# The versions that requests name, in this order; an empty string stands for a request without a version.
ORDER = ("1", "2", "", "1", "", "2")

Sender = Callable[[AnyTarget, Sequence[Model], Sequence[Message]], Sequence[Reply]]


def _send_in_turn(target: AnyTarget, _: Sequence[Model], messages: Sequence[Message]) -> Sequence[Reply]:
    return [target.infer(message) for message in messages]


def _send_after_metadata(target: AnyTarget, models: Sequence[Model], messages: Sequence[Message]) -> Sequence[Reply]:
    """Ask for the metadata of the version of the next request before each request."""
    replies = []
    for message, following in zip(messages, (*models[1:], models[0]), strict=True):
        target.describe(following)
        replies.append(target.infer(message))
    return replies


@claim("json.named-version-computes", requirements="OIP-VERSIONED", role="versioned")
@rows(
    Row("in-turn", (_send_in_turn,)),
    Row(
        "in-turn-binary",
        (_send_in_turn, "binary"),
        needs=BINARY,
        only=Only(HTTP, "the row `in-turn` has typed and raw contents"),
    ),
    Row("in-turn-raw", (_send_in_turn, "raw"), needs=RAW),
    Row("in-flight", (lambda target, _, messages: target.send_together(messages),)),
    Row("after-metadata", (_send_after_metadata,)),
)
def named_version_computes(target: AnyTarget, model: Model, send_all: Sender, send: str = "json") -> None:
    """The version that a request or its answer names has computed the outputs; a listed version may not be loaded.

    Raises NotApplicableError: the metadata list no version of the role, or no request that names one is answered.
    """
    listed = list_versions(target, model)
    if set(model.role.versions).isdisjoint(listed):
        raise NotApplicableError(f"the metadata of {model.name} list none of its versions")
    asked = [replace(model, version=version) for version in ORDER if version in ("", *listed)]
    replies = send_all(target, asked, [_build_message(target, each, send) for each in asked])
    answered = [pair for pair in zip(asked, replies, strict=True) if pair[1].succeeded]
    for each, reply in answered:
        _expect_computed(each, reply)
    if not any(each.version for each, _ in answered):
        raise NotApplicableError(f"no request that names a version of {model.name} is answered")


def _build_message(target: AnyTarget, model: Model, send: str) -> Message:
    if send == "raw":
        return model.raw(bytes(model.sample()[0].to_bytes()))
    return target.message(model.request(send="binary" if send == "binary" else "json"))


def _expect_computed(model: Model, reply: Reply) -> None:
    """Expect the outputs of the version that the request names, and a `model_version` that has these outputs.

    Raises BlockedError: no version of the role has such outputs.
    """
    versions = model.role.versions
    computed = [version for version in versions if _has_outputs_of(replace(model, version=version), reply)]
    if not computed:
        raise BlockedError(f"an answer has the outputs of no version of {model.name}")
    if model.version and model.version not in computed:
        raise UnmetError(f"the outputs of version {model.version}", f"those of version {computed[0]}", reply)
    named = read_named_version(reply)
    if named in versions and named not in computed:
        expected = f"model_version {format_value(computed[0])}, which computed the outputs, or none"
        raise UnmetError(expected, format_value(named), reply)


def _has_outputs_of(model: Model, reply: Reply) -> bool:
    return is_met(lambda: expect(reply).tensors(model.expected(model.sample())))
