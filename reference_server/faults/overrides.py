"""JSON outputs that should be binary data, and the reverse: wrong defaults, overrides and flags."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reference_server.faults import fault
from reference_server.members import Object
from reference_server.models import Model
from reference_server.request import RequestedOutput

RequestedOutputs = list[RequestedOutput]


def get_binary_data_output(request: Object) -> Any:
    """Return the `binary_data_output` of a request."""
    return (request.get("parameters") or {}).get("binary_data_output")


def get_binary_data_flags(request: Object) -> list[Any]:
    """Return `binary_data` of each listed output."""
    return [(entry.get("parameters") or {}).get("binary_data") for entry in request.get("outputs") or []]


def set_binary(requested: RequestedOutputs, flags: list[bool]) -> RequestedOutputs:
    """Return requested outputs with other values of `binary`."""
    return [replace(output, binary=binary) for output, binary in zip(requested, flags, strict=True)]


def get_parameters(owner: object) -> Object:
    """Return the parameters of an object; empty if it has none."""
    found = owner.get("parameters") if isinstance(owner, dict) else None
    return found if isinstance(found, dict) else {}


def set_binary_data_output(request: Object, value: object) -> Object:
    """Return a request with another value of binary_data_output."""
    return request | {"parameters": {**get_parameters(request), "binary_data_output": value}}


def get_entries(request: Object, name: str) -> list[Object]:
    """Return the objects in an array member; empty if it is not an array."""
    entries = request.get(name)
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


# --- listed outputs ---------------------------------------------------------------------------------------------------


@fault("request.parse_outputs", breaks=("BIN-OUTPUT-TRUE", "BIN-TRUE-OVERRIDES", "OIP-ANSWER", "OIP-ISOLATION"))
def json_requests_answered_in_json(original: Any, model: Any, request: Object) -> RequestedOutputs:
    """The server honours `binary_data` of an output only if the request has binary inputs."""
    requested: RequestedOutputs = original(model, request)
    ignored = bool(request.get("outputs")) and all("data" in item for item in request["inputs"])
    return set_binary(requested, [False] * len(requested)) if ignored else requested


@fault("request.parse_outputs", breaks=("BIN-OUTPUT-TRUE", "BIN-TRUE-OVERRIDES", "BIN-ALL-TRUE"))
def empty_outputs_fall_back_to_json(original: Any, model: Any, request: Object) -> RequestedOutputs:
    """The server returns outputs as JSON if all inputs are empty, although the request asks for binary data."""
    requested: RequestedOutputs = original(model, request)
    empty = all(0 in item["shape"] for item in request["inputs"])
    return set_binary(requested, [False] * len(requested)) if empty else requested


@fault("request.parse_outputs", breaks=("BIN-OUTPUT-FALSE", "BIN-FALSE-OVERRIDES"))
def binary_data_counts_when_it_is_there(original: Any, model: Any, request: Object) -> RequestedOutputs:
    """The server returns an output as binary data if the request has `binary_data`, even if the value is false."""
    requested: RequestedOutputs = original(model, request)
    flags = get_binary_data_flags(request)
    return set_binary(requested, [flag is not None for flag in flags]) if any(f is False for f in flags) else requested


@fault("request.parse_outputs", breaks="BIN-OUTPUT-UNSET")
def flag_carries_over_to_the_next_output(original: Any, model: Any, request: Object) -> RequestedOutputs:
    """The server applies `binary_data` of an output also to the next output, if the next has no `binary_data`."""
    requested: RequestedOutputs = original(model, request)
    flag = None
    for index, given in enumerate(get_binary_data_flags(request)):
        flag = flag if given is None else given
        if given is None and flag and not get_binary_data_output(request):
            requested[index] = replace(requested[index], binary=True)
    return requested


@fault("request.parse_outputs", breaks=("BIN-OUTPUT-UNSET", "BIN-ALL-UNSET"))
def binary_requests_answered_with_binary_data(original: Any, model: Any, request: Object) -> RequestedOutputs:
    """The server returns binary outputs by default if the request has binary inputs."""
    requested: RequestedOutputs = original(model, request)
    binary = any("data" not in item for item in request["inputs"])
    if not binary or get_binary_data_output(request) is not None:
        return requested
    flags = get_binary_data_flags(request) or [None] * len(requested)
    return set_binary(requested, [flag is not False for flag in flags])


# --- no output listed, and conflicting parameters -------------------------------------------------------------------


@fault("request.parse_outputs", breaks="BIN-ALL-TRUE")
def binary_data_output_covers_the_first_output(original: Any, model: Any, request: Object) -> RequestedOutputs:
    """If the request lists no outputs, the server applies `binary_data_output` only to the first output."""
    requested: RequestedOutputs = original(model, request)
    return (
        requested if request.get("outputs") else requested[:1] + set_binary(requested[1:], [False] * len(requested[1:]))
    )


@fault("request.parse_outputs", breaks="BIN-ALL-FALSE")
def binary_data_output_counts_when_it_is_there(original: Any, model: Any, request: Object) -> RequestedOutputs:
    """The server returns unlisted outputs as binary data if the request has `binary_data_output`, even if false."""
    requested: RequestedOutputs = original(model, request)
    given = not request.get("outputs") and get_binary_data_output(request) is not None
    return set_binary(requested, [True] * len(requested)) if given else requested


@fault("request.parse_outputs", breaks="BIN-ALL-UNSET")
def strings_binary_by_default(original: Any, model: Any, request: Object) -> RequestedOutputs:
    """If the request has no `outputs`, the server returns BYTES as binary data by default, beside JSON outputs."""
    requested: RequestedOutputs = original(model, request)
    strings = {spec.name for spec in model.outputs if spec.datatype == "BYTES" and len(model.outputs) > 1}
    silent = not request.get("outputs") and get_binary_data_output(request) is None
    return [replace(output, binary=True) if silent and output.name in strings else output for output in requested]


@fault("request.is_binary_output", breaks="BIN-TRUE-OVERRIDES")
def binary_data_output_false_wins(original: Any, binary_data: bool | None, binary_data_output: bool | None) -> Any:
    """The server returns every output as JSON if `binary_data_output` is false, even if `binary_data` is true."""
    return binary_data_output is not False and original(binary_data, binary_data_output)


@fault("request.parse_outputs", breaks=("BIN-FALSE-OVERRIDES", "BIN-TRUE-OVERRIDES"))
def request_parameter_wins_over_that_of_an_output(original: Any, model: Any, request: Object) -> RequestedOutputs:
    """The server lets `binary_data_output` of the request override `binary_data` of an output."""
    requested: RequestedOutputs = original(model, request)
    default = get_binary_data_output(request)
    return requested if default is None else set_binary(requested, [default] * len(requested))


@fault(
    "request.parse_outputs",
    breaks=("BIN-FALSE-OVERRIDES", "BIN-TRUE-OVERRIDES", "BIN-OUTPUT-FALSE", "BIN-OUTPUT-TRUE", "BIN-OUTPUT-UNSET"),
)
def first_output_decides_for_all(original: Any, model: Any, request: Object) -> RequestedOutputs:
    """The server returns all listed outputs as binary data if the first is binary, otherwise all as JSON."""
    requested: RequestedOutputs = original(model, request)
    return set_binary(requested, [requested[0].binary] * len(requested)) if request.get("outputs") else requested


# --- flags in the wrong place or of a wrong type ----------------------------------------------------------------------


@fault("request.parse_outputs", breaks="BIN-ALL-TRUE")
def binary_data_on_the_request_taken_for_all(original: Any, model: Model, request: Object) -> Any:
    """The server reads `binary_data` of the request as `binary_data_output`."""
    value = get_parameters(request).get("binary_data")
    return original(model, request if value is None else set_binary_data_output(request, value))


@fault("request.parse_outputs", breaks="BIN-OUTPUT-TRUE")
def binary_data_output_on_an_output_taken(original: Any, model: Model, request: Object) -> Any:
    """The server reads `binary_data_output` of an output as `binary_data`."""
    outputs = [
        entry | {"parameters": {**found, "binary_data": found["binary_data_output"]}}
        if "binary_data_output" in (found := get_parameters(entry))
        else entry
        for entry in get_entries(request, "outputs")
    ]
    return original(model, request | {"outputs": outputs} if outputs else request)


@fault("members.get_flag", breaks="BIN-PARAMETER-TYPE")
def flags_taken_by_their_truth(_original: Any, given: Object, name: str) -> bool | None:
    """The server accepts flags that are not booleans: empty values and zero are false, all others true."""
    value = given.get(name)
    return None if value is None else bool(value)
