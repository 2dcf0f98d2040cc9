"""The paths with a version, where a server has them: they do what the paths without one do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from conformance.checks.support.classes import read_texts
from conformance.checks.support.documents import list_versions
from conformance.checks.support.versions import find_default_version, read_named_version
from conformance.expect.expectation import expect
from conformance.expect.unmet import NotApplicableError, UnmetError, attribute_to, block_if, is_met
from conformance.roles.model import MessageBuilder, Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import BINARY, CLASSES, RAW
from conformance.spec.fit import ANY, JSON
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.finding import format_value
from conformance.wire.request import Message, RequestedOutput

Expect = Callable[[Reply, Model], object]


def _raw(model: Model) -> Message:
    return model.raw(bytes(model.sample(batch=1)[0].to_bytes()))


def _classes(model: Model) -> Message:
    return model.request(send="json", outputs=[RequestedOutput(model.role.outputs[0].name, classification=2)]).message()


def _expect_tensors(reply: Reply, model: Model) -> None:
    expect(reply).tensors(
        model.expected(model.sample(batch=1) if reply.exchange.message.json_length == 0 else model.sample())
    )


def _expect_classes(reply: Reply, model: Model) -> None:
    read_texts(reply, model.role.outputs[0].name)


ROWS: tuple[Row, ...] = (
    Row("json-of-four", (lambda m: m.request(send="json").message(), _expect_tensors), role="multi"),
    Row("json-with-id", (lambda m: m.request(send="json", request_id="1").message(), _expect_tensors), role="add_sub"),
    Row("binary-in", (lambda m: m.request(send="binary").message(), _expect_tensors), role="add_sub", needs=BINARY),
    Row(
        "binary-out",
        (lambda m: m.request(send="json", want="binary").message(), _expect_tensors),
        role="add_sub",
        needs=BINARY,
    ),
    Row(
        "binary-by-default",
        (lambda m: m.request(send="json", binary_data_output=True).message(), _expect_tensors),
        role="add_sub",
        needs=BINARY,
    ),
    Row(
        "binary-in-and-out",
        (lambda m: m.request(want="binary").message(), _expect_tensors),
        role="identity_fp32",
        needs=BINARY,
    ),
    Row("raw", (_raw, _expect_tensors), role="raw_fixed", needs=RAW),
    Row("raw-of-a-batch", (_raw, _expect_tensors), role="raw_batching", needs=RAW),
    Row("classes", (_classes, _expect_classes), role="scores", needs=CLASSES),
    Row("own-json", (lambda m: m.request(send="json").message(), _expect_tensors), fit=JSON),
    Row("own-binary", (lambda m: m.request(want="binary").message(), _expect_tensors), needs=BINARY, fit=ANY),
)


@check("json.path-with-a-version-does-the-same", answers="OIP-VERSIONED")
@rows(*ROWS)
def path_with_a_version_does_the_same(target: Target, model: Model, make: MessageBuilder, right: Expect) -> None:
    """Where a model's listed version has a path of its own, every kind of request is answered there as without it, by that version."""
    versioned, listed = _with_a_version(target, model)
    reply = target.infer(make(versioned))
    plain = replace(model, version="")

    def is_wrong_without() -> bool:
        return not is_met(lambda: right(target.send(make(plain), fresh=True), plain))

    with (
        block_if(is_wrong_without, "the request is answered wrongly at the path without a version, too"),
        attribute_to(None),
    ):
        right(reply, versioned)
    named = read_named_version(reply)
    # Its type is for a check of its own; and a version of the user's own that is not listed may be an alias of another.
    if versioned.version in listed and isinstance(named, str) and named not in ("", versioned.version):
        raise UnmetError(f"model_version {format_value(versioned.version)}, or none", format_value(named), reply)


def _with_a_version(target: Target, model: Model) -> tuple[Model, list[str]]:
    """Return the model under the version that it answers by without one, and those that its metadata list.

    Raises:
        NotApplicable: nobody says which that is, or a plain request is not answered there: these paths are optional.
    """
    versions = list_versions(target, model)
    own = model.version or find_default_version(target, model, versions)
    if not own:
        raise NotApplicableError(
            f"by which version {model.name} answers is not said: its metadata list {format_value(versions)}"
        )
    versioned = replace(model, version=own)
    if not target.send(versioned.request(send="json").message(), fresh=True).succeeded:
        raise NotApplicableError(f"a plain request to {versioned.infer_path} is not answered")
    return versioned, versions
