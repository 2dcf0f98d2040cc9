"""Reads a configuration in any JSON form of its message: names in snake or camel case, integers also as text."""

from collections.abc import Mapping
from typing import Any

from conformance.checks.support.documents import expect_json
from conformance.expect.expectation import expect
from conformance.expect.unmet import NotApplicableError, UnmetError
from conformance.roles.model import Model
from conformance.transport.any_target import AnyTarget
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.grpc_answer import parse_message
from conformance.wire.grpc_request import make_grpc_call

TEXT, INTEGER = {"type": "string"}, {"type": ["integer", "string"], "pattern": "^-?[0-9]+$"}
DATATYPE = {"type": "string", "pattern": "^TYPE_[A-Z0-9]+$"}
TENSOR = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": TEXT,
        "dims": {"type": "array", "items": INTEGER},
        **dict.fromkeys(("data_type", "dataType"), DATATYPE),
    },
}
TENSORS = {"type": "array", "items": TENSOR}
CONFIGURATION = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("name", "platform", "backend"), TEXT),
        **dict.fromkeys(("max_batch_size", "maxBatchSize"), INTEGER),
        **dict.fromkeys(("input", "output"), TENSORS),
    },
}


def ask(target: AnyTarget, model: Model) -> tuple[dict[str, Any], Reply]:
    """Return the configuration of a model."""
    if not isinstance(target, Target):
        return ask_over_grpc(target, model)
    reply = target.get(f"{model.path}/config", fresh=True)
    configuration: dict[str, Any] = expect_json(reply, CONFIGURATION, "MODEL-CONFIGURATION-ANSWER")
    return configuration, reply


def ask_over_grpc(target: AnyTarget, model: Model) -> tuple[dict[str, Any], Reply]:
    """Return the configuration of a model in JSON, as its message prescribes it."""
    from google.protobuf.json_format import MessageToDict  # of the extra for gRPC

    reply = target.send(make_grpc_call("ModelConfig", name=model.name, version=model.version))
    if reply.exchange.code == "UNIMPLEMENTED":
        raise NotApplicableError("the server does not offer the extension over gRPC")
    expect(reply, "MODEL-CONFIGURATION-ANSWER").answered()
    message = parse_message(reply.body, "ModelConfig")
    if message is None or not message.HasField("config"):
        raise UnmetError("a ModelConfig", "none", reply, requirement="MODEL-CONFIGURATION-ANSWER")
    return MessageToDict(message.config), reply


def find_max_batch(configuration: Mapping[str, Any]) -> int:
    """Return the largest batch; 0 if the model does not batch, which the JSON of a message may leave out."""
    return int(configuration.get("max_batch_size", configuration.get("maxBatchSize", 0)))


def find_tensor(entry: Mapping[str, Any]) -> tuple[str, list[int]]:
    """Return the datatype and the dimensions of an input or output, in the words of model metadata."""
    datatype = entry.get("data_type", entry.get("dataType", "TYPE_INVALID")).removeprefix("TYPE_")
    return "BYTES" if datatype == "STRING" else datatype, [int(size) for size in entry.get("dims", ())]


def describe_tensors(target: AnyTarget, model: Model) -> Mapping[str, Mapping[str, Any]]:
    """Return the inputs and outputs in the model's metadata: `input` or `output` -> name -> entry."""
    document = target.describe(model).answer.document or {}
    return {kind: {entry["name"]: entry for entry in document.get(f"{kind}s", ())} for kind in ("input", "output")}
