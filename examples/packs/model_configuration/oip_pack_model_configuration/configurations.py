"""The configuration of a model says what its metadata say, and what the model does."""

from dataclasses import replace

from conformance.checks.support.documents import expect_extension_listed, is_declared_shape, list_versions
from conformance.checks.support.refusals import LIMIT_STATUSES, Refusal, expect_fault_refused, make_refusal_rows
from conformance.checks.support.wrong_requests import Fault, make_refusals
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_error_object, expect_refusal
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, block_if
from conformance.roles.model import Model
from conformance.spec.check import Row, check, claim, rows
from conformance.spec.fit import ANY
from conformance.spec.text import escape_text
from conformance.transport.any_target import AnyTarget
from conformance.transport.target import Target
from conformance.wire.message_edits import Path
from conformance.wire.request import Message
from oip_pack_model_configuration.reading import ask, describe_tensors, find_max_batch, find_tensor

MAX_ITEMS = 1024  # of a batch that is sent
REFUSALS = make_refusals(
    "MODEL-CONFIGURATION-UNKNOWN",
    lambda model: Message(f"{model.path}/config", method="GET"),
    (
        Fault("unknown-model", "identity_int32", Path("/v2/models/there_is_no_such_model/config"), fit=ANY),
        Fault("unknown-version", "identity_int32", Path(lambda sent: f"{sent.path[:-7]}/versions/987654/config")),
    ),
)


@claim("model_configuration.is-listed", requirements="MODEL-CONFIGURATION-LISTED")
def is_listed(target: AnyTarget) -> None:
    """Server metadata list the extension."""
    expect_extension_listed(target, "model_configuration")


@claim("model_configuration.is-a-message", requirements="MODEL-CONFIGURATION-ANSWER", role="identity_int32", fit=ANY)
def is_a_message(target: AnyTarget, model: Model) -> None:
    """The configuration has the members of the message, each of its type."""
    ask(target, model)


@claim("model_configuration.has-the-name", requirements="MODEL-CONFIGURATION-NAME", role="identity_int32", fit=ANY)
def has_the_name(target: AnyTarget, model: Model) -> None:
    """The configuration has the name of the model."""
    configuration, reply = ask(target, model)
    if configuration.get("name") != model.name:
        raise UnmetError(f"the name {model.name}", str(configuration.get("name"))[:100], reply)


@claim("model_configuration.has-the-tensors", requirements="MODEL-CONFIGURATION-TENSORS")
@rows(
    Row("integers", role="identity_int32", fit=ANY),
    *[Row(role.replace("_", "-"), role=role) for role in ("identity_bytes", "batching", "rank3", "multi")],
    Row("batching-texts", role="model_configuration_batching_texts"),
)
def has_the_tensors(target: AnyTarget, model: Model) -> None:
    """The configuration has the inputs and outputs of the metadata, each with its datatype and shape."""
    configuration, reply = ask(target, model)
    batch = [[-1]] if find_max_batch(configuration) else []
    for kind, described in describe_tensors(target, model).items():
        found = {entry["name"]: find_tensor(entry) for entry in configuration.get(kind, ())}
        if found.keys() != described.keys():
            raise UnmetError(f"{kind}s {', '.join(described)}", ", ".join(found) or "none", reply)
        for name, (datatype, dims) in found.items():
            entry = described[name]
            shapes = [dims, *(first + dims for first in batch)]  # metadata may leave out the batch dimension
            if datatype != entry["datatype"] or not any(is_declared_shape(tuple(s), entry["shape"]) for s in shapes):
                raise UnmetError(f"{name} {entry['datatype']} {entry['shape']}", f"{datatype} {dims}", reply)


def ask_max_batch(target: AnyTarget, model: Model) -> int:
    """Return the largest batch of a model, if so many items can be sent."""
    with block_if(lambda: True, "the configuration cannot be read"):  # its own rows judge that
        items = find_max_batch(ask(target, model)[0])
    if not 0 < items <= MAX_ITEMS:
        raise NotApplicableError(f"max_batch_size is {items}")
    return items


@claim("model_configuration.largest-batch-is-answered", requirements="MODEL-CONFIGURATION-BATCH", role="batching")
def largest_batch_is_answered(target: AnyTarget, model: Model) -> None:
    """A batch of max_batch_size items is answered, with a batch of outputs."""
    tensors = model.build_salted_inputs(ask_max_batch(target, model), 1)
    reply = target.infer(model.request(tensors, send="json"))
    if reply.status in LIMIT_STATUSES:
        raise BlockedError(f"the server is busy, or limits requests: {reply.status_line}")
    if not reply.succeeded:  # without the reply: no limit of the server excuses what its own configuration denies
        raise UnmetError(f"an answer to a batch of {tensors[0].shape[0]}", escape_text(reply.outcome(), 200))
    expect(reply).tensors(model.expected(tensors))


@claim("model_configuration.larger-batch-is-refused", requirements="MODEL-CONFIGURATION-MAX-BATCH", role="batching")
def larger_batch_is_refused(target: AnyTarget, model: Model) -> None:
    """A batch of more items than max_batch_size is refused, and the model still answers."""
    items = ask_max_batch(target, model) + 1
    request = model.request(model.build_salted_inputs(items, 1), send="json")
    expect_refusal(target, model, target.message(request), f"a batch of {items}")


@check("model_configuration.highest-version-counts", requirements="MODEL-CONFIGURATION-VERSION")
@rows(Row("one-version", role="identity_int32", fit=ANY), Row("two-versions", role="versioned"))
def highest_version_counts(target: Target, model: Model) -> None:
    """Without a version, the configuration is the same as with the highest number."""
    numbers = [int(version) for version in list_versions(target, model) if version.isdecimal()]
    if not numbers:
        raise NotApplicableError("the metadata list no versions with numbers")
    found, reply = ask(target, replace(model, version=""))
    if found != ask(target, replace(model, version=str(max(numbers))))[0]:
        raise UnmetError(f"the configuration of version {max(numbers)}", "another one", reply)


@check("model_configuration.unknown-is-refused", requirements="MODEL-CONFIGURATION-UNKNOWN")
@rows(*make_refusal_rows(REFUSALS))
def unknown_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The configuration of what does not exist is refused with an error object, and the model still answers."""
    expect_fault_refused(target, model, refusal)
    expect_error_object(target.send(refusal.message(model), fresh=True), "MODEL-CONFIGURATION-UNKNOWN")
