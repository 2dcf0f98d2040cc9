"""JSON outputs that should be binary data, and the reverse: wrong defaults, overrides and flags."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from reference_server.faults import fault, steps
from reference_server.faults.edits import get_entries, get_parameters, set_binary, set_parameter
from reference_server.members import Object
from reference_server.request import RequestedOutput

RequestedOutputs = list[RequestedOutput]


def get_default(request: Object) -> Any:
    """Return the `binary_data_output` of a request."""
    return get_parameters(request).get("binary_data_output")


def get_flags(request: Object) -> list[Any]:
    """Return `binary_data` of each listed output."""
    return [get_parameters(entry).get("binary_data") for entry in request.get("outputs") or []]


def lists_outputs(request: Object) -> bool:
    """Whether a request lists outputs."""
    return bool(request.get("outputs"))


def return_all_as(binary: bool) -> Callable[[RequestedOutputs], RequestedOutputs]:
    """Return a function that returns requested outputs all as binary data, or all as JSON."""
    return lambda requested: set_binary(requested, [binary] * len(requested))


# --- listed outputs ---------------------------------------------------------------------------------------------------

json_requests_answered_in_json = steps.PARSE_OUTPUTS.after(
    ("BIN-OUTPUT-TRUE", "BIN-TRUE-OVERRIDES", "OIP-ANSWER"),
    return_all_as(False),
    when=lambda request: lists_outputs(request) and all("data" in item for item in request["inputs"]),
).says("The server honours `binary_data` of an output only if the request has binary inputs.")
empty_outputs_fall_back_to_json = steps.PARSE_OUTPUTS.after(
    ("BIN-OUTPUT-TRUE", "BIN-TRUE-OVERRIDES", "BIN-ALL-TRUE"),
    return_all_as(False),
    when=lambda request: all(0 in item["shape"] for item in request["inputs"]),
).says("The server returns outputs as JSON if all inputs are empty, although the request asks for binary data.")
binary_data_counts_when_it_is_there = steps.PARSE_OUTPUTS.after(
    ("BIN-OUTPUT-FALSE", "BIN-FALSE-OVERRIDES"),
    lambda requested, request: set_binary(requested, [flag is not None for flag in get_flags(request)]),
    when=lambda request: any(flag is False for flag in get_flags(request)),
).says("The server returns an output as binary data if the request has `binary_data`, even if the value is false.")


@fault(steps.PARSE_OUTPUTS, breaks="BIN-OUTPUT-UNSET")
def flag_carries_over_to_the_next_output(original: Any, model: Any, request: Object) -> RequestedOutputs:
    """The server applies `binary_data` of an output also to the next output, if the next has no `binary_data`."""
    requested: RequestedOutputs = original(model, request)
    flag = None
    for index, given in enumerate(get_flags(request)):
        flag = flag if given is None else given
        if given is None and flag and not get_default(request):
            requested[index] = replace(requested[index], binary=True)
    return requested


binary_requests_answered_with_binary_data = steps.PARSE_OUTPUTS.after(
    ("BIN-OUTPUT-UNSET", "BIN-ALL-UNSET"),
    lambda requested, request: set_binary(
        requested, [flag is not False for flag in get_flags(request) or [None] * len(requested)]
    ),
    when=lambda request: get_default(request) is None and any("data" not in item for item in request["inputs"]),
).says("The server returns binary outputs by default if the request has binary inputs.")

# --- no output listed, and conflicting parameters -------------------------------------------------------------------

binary_data_output_covers_the_first_output = steps.PARSE_OUTPUTS.after(
    "BIN-ALL-TRUE",
    lambda requested: requested[:1] + return_all_as(False)(requested[1:]),
    when=lambda request: not lists_outputs(request),
).says("If the request lists no outputs, the server applies `binary_data_output` only to the first output.")
binary_data_output_counts_when_it_is_there = steps.PARSE_OUTPUTS.after(
    "BIN-ALL-FALSE",
    return_all_as(True),
    when=lambda request: not lists_outputs(request) and get_default(request) is not None,
).says("The server returns unlisted outputs as binary data if the request has `binary_data_output`, even if false.")
strings_binary_by_default = steps.PARSE_OUTPUTS.after(
    "BIN-ALL-UNSET",
    lambda requested, model: set_binary(requested, [spec.datatype == "BYTES" for spec in model.outputs]),
    when=lambda model, request: len(model.outputs) > 1 and not lists_outputs(request) and get_default(request) is None,
).says("If the request has no `outputs`, the server returns BYTES as binary data by default, beside JSON outputs.")
binary_data_output_false_wins = steps.IS_BINARY_OUTPUT.instead(
    "BIN-TRUE-OVERRIDES", lambda: False, when=lambda binary_data_output: binary_data_output is False
).says("The server returns every output as JSON if `binary_data_output` is false, even if `binary_data` is true.")
request_parameter_wins_over_that_of_an_output = steps.PARSE_OUTPUTS.after(
    ("BIN-FALSE-OVERRIDES", "BIN-TRUE-OVERRIDES"),
    lambda requested, request: return_all_as(get_default(request))(requested),
    when=lambda request: get_default(request) is not None,
).says("The server lets `binary_data_output` of the request override `binary_data` of an output.")
first_output_decides_for_all = steps.PARSE_OUTPUTS.after(
    ("BIN-FALSE-OVERRIDES", "BIN-TRUE-OVERRIDES", "BIN-OUTPUT-FALSE", "BIN-OUTPUT-TRUE", "BIN-OUTPUT-UNSET"),
    lambda requested: return_all_as(requested[0].binary)(requested),
    when=lists_outputs,
).says("The server returns all listed outputs as binary data if the first is binary, otherwise all as JSON.")

# --- flags in the wrong place or of a wrong type ----------------------------------------------------------------------


def _copy_flag(owner: Object, name: str, source: str) -> Object:
    given = get_parameters(owner)
    return set_parameter(owner, name, given[source]) if source in given else owner


binary_data_on_the_request_taken_for_all = steps.PARSE_OUTPUTS.before(
    "BIN-ALL-TRUE", request=lambda request: _copy_flag(request, "binary_data_output", "binary_data")
).says("The server reads `binary_data` of the request as `binary_data_output`.")
binary_data_output_on_an_output_taken = steps.PARSE_OUTPUTS.before(
    "BIN-OUTPUT-TRUE",
    request=lambda request: (
        request | {"outputs": [_copy_flag(entry, "binary_data", "binary_data_output") for entry in request["outputs"]]}
    ),
    when=lambda request: get_entries(request, "outputs"),
).says("The server reads `binary_data_output` of an output as `binary_data`.")
flags_taken_by_their_truth = steps.GET_FLAG.instead(
    "BIN-PARAMETER-TYPE", lambda given, name: bool(given[name]), when=lambda given, name: given.get(name) is not None
).says("The server accepts flags that are not booleans: empty values and zero are false, all others true.")
