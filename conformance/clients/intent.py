"""Compares a client's request with what the caller asked the client for: model, tensors, outputs and their forms, id.

A form is how a tensor is encoded: `binary` or `json`. Compares only what the caller specified, and only the readable
parts of a request: `rules.judging` reports faults in its bytes. The forms of inputs and the content coding are not
compared, because no document prescribes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from conformance.clients.answers.script import VERSION
from conformance.clients.inference import Inference, RequestedOutput
from conformance.clients.intent_tensors import find_order_fault, find_tensor_faults
from conformance.clients.rules.members import CLASSIFICATION, is_count
from conformance.clients.rules.rule import Fault, Violation
from conformance.wire import parsed_call, parsed_request
from conformance.wire.client_request import ClientRequest, parse_path
from conformance.wire.finding import format_name, format_value
from conformance.wire.grpc_request import Pb
from conformance.wire.outputs import Output
from conformance.wire.parsed_call import ParsedCall, read_typed_elements
from conformance.wire.parsed_request import ParsedRequest
from conformance.wire.request import INFERENCE_HEADER, Form

# With these findings the inputs cannot be identified.
_UNNAMED: Final = frozenset({"inputs-missing", "inputs-invalid", "inputs-too-many", "input-invalid"})
# The address of the peer has no path; a proxy may be sent the whole URL.
_PATH_BEGIN: Final = re.compile(r"(?:https?://[^/]*)?/+v2/models/")

_NamedFault = tuple[str, Fault]


def find_differences(received: ClientRequest, inference: Inference) -> tuple[Violation, ...]:
    """Return how a request differs from the caller's inference. Pure, never raises.

    Options that the caller did not specify may have any value; a version has to be one of the model's. Returns only the
    first difference for each requirement.
    """
    if received.is_over_grpc:
        call = parsed_call.parse(received)
        found = [] if call is None else [(f"{name}/grpc", fault) for name, fault in _find_call_faults(call, inference)]
    else:
        found = list(_find_request_faults(parsed_request.parse(received), inference))
    first: dict[str, Fault] = {}
    for name, fault in found:
        first.setdefault(name, fault)
    return tuple(Violation(name, *fault) for name, fault in first.items())


def _find_tensor_faults(
    inputs: Sequence[Output], data: bytes, inference: Inference, elements: Mapping[int, Any], *, is_json: bool
) -> Iterator[_NamedFault]:
    """Yield how the inputs of a request differ from the caller's tensors.

    Skips differences of elements if the binary data are in the wrong order.
    """
    order_fault = find_order_fault(data, [one for one in inputs if one.binary], inference)
    if order_fault is not None:
        yield "CLIENT-SENDS-ORDER", order_fault
    for found in find_tensor_faults(inputs, inference, elements, is_json=is_json):
        if order_fault is None or not found.is_about_elements:
            yield found.requirement, found.fault


# --- over HTTP -------------------------------------------------------------------------------------------------------


def _find_request_faults(request: ParsedRequest, inference: Inference) -> Iterator[_NamedFault]:
    yield from (("CLIENT-SENDS-POST", fault) for fault in _find_path_faults(request.received.path, inference))
    kinds = {finding.kind for finding in request.findings}
    if inference.is_raw and not request.is_raw:
        header = "no such header" if request.header is None else format_value(request.header)
        actual = "a request with JSON" if request.document is not None else header
        yield "CLIENT-SENDS-RAW", Fault(f"{INFERENCE_HEADER}: 0, since the caller wants a raw binary request", actual)
    if request.is_raw and not request.has_coding_fault:
        yield from _find_raw_faults(request, inference)
    elif request.document is not None and "json-not-utf8" not in kinds:
        if not kinds & _UNNAMED:
            elements = {index: item.get("data") for index, item in request.items().items()}
            data = request.body[request.json_end :]
            yield from _find_tensor_faults(request.inputs, data, inference, elements, is_json=True)
        options = read_request_options(request.document)
        yield from (("CLIENT-SENDS-OUTPUTS", fault) for fault in _find_option_faults(options, inference))
        yield from (("CLIENT-SENDS-OVERRIDE", fault) for fault in _find_default_binary_faults(options, inference))


def _find_default_binary_faults(options: RequestOptions, inference: Inference) -> Iterator[Fault]:
    """Yield a fault for each output that the caller wants as JSON, if `binary_data_output` may make it binary."""
    for output in inference.outputs or ():
        if (
            output.form == "json"
            and output.name in options.outputs
            and options.outputs[output.name].is_binary_by_default
        ):
            name = format_name(output.name)
            yield Fault(f"binary_data: false for {name}", "no binary_data, with binary_data_output: true")


def _find_path_faults(path: str, inference: Inference) -> Iterator[Fault]:
    parsed_path = parse_path(path)
    if parsed_path is None:
        return  # the rules report it
    wanted = inference.model.encode("utf-8", "surrogatepass")
    if parsed_path.model != wanted:
        yield Fault(f"the model {format_value(inference.model)}", format_value(path))
    if not _is_version_right(parsed_path.version or b"", inference):
        yield _name_version_fault(inference, path)
    if not _PATH_BEGIN.match(path):
        yield Fault("a path below the address of the server", format_value(path))


def _is_version_right(version: bytes, inference: Inference) -> bool:
    """Whether a request names the caller's version. Without one, it names none, or the one that the metadata list."""
    wanted = ("", VERSION) if inference.version is None else (inference.version,)
    return version in [one.encode("utf-8", "surrogatepass") for one in wanted]


def _name_version_fault(inference: Inference, found: str) -> Fault:
    return Fault(
        "no version" if inference.version is None else f"the version {format_value(inference.version)}",
        format_value(found),
    )


def _find_raw_faults(request: ParsedRequest, inference: Inference) -> Iterator[_NamedFault]:
    """Yield how a raw request differs from the inference. A raw request has one tensor, but no outputs and no id."""
    wanted = [bytes(one.to_bytes()) for one in inference.inputs]
    if len(wanted) == 1 and inference.inputs[0].datatype == "BYTES" and inference.inputs[0].elements == 1:
        wanted.append(wanted[0][4:])  # the documents disagree: the element with its length prefix, or without
    if len(inference.inputs) != 1:
        yield "CLIENT-SENDS-VALUES", Fault("the tensors of the caller", "one raw tensor", 0)
    elif request.body not in wanted:
        more = len(request.body) - len(wanted[0])
        if wanted[0] in request.body:
            yield (
                "CLIENT-SENDS-RAW",
                Fault("only the data of the caller's tensor", f"these data and {more} more bytes", 0),
            )
        else:
            yield (
                "CLIENT-SENDS-VALUES",
                Fault("the tensor of the caller", f"a body of {len(request.body)} bytes with other content", 0),
            )
    has_options = inference.outputs or inference.id is not None or inference.all_outputs == "json"
    if has_options and not inference.is_raw:
        yield (
            "CLIENT-SENDS-OUTPUTS",
            Fault("the outputs and the id of the caller", "a raw request, which has no outputs and no id"),
        )


# --- over gRPC -------------------------------------------------------------------------------------------------------


def _find_call_faults(call: ParsedCall, inference: Inference) -> Iterator[_NamedFault]:
    message = call.message
    if message.model_name != inference.model:
        yield "CLIENT-SENDS-POST", Fault(f"the model {format_value(inference.model)}", format_value(message.model_name))
    if not _is_version_right(message.model_version.encode("utf-8", "surrogatepass"), inference):
        yield "CLIENT-SENDS-POST", _name_version_fault(inference, message.model_version)
    data = b"".join(call.body[slice(*span)] for span in call.entries)
    elements = {index: read_typed_elements(entry) for index, entry in enumerate(message.inputs)}
    yield from _find_tensor_faults(call.inputs, data, inference, elements, is_json=False)
    yield from (("CLIENT-SENDS-OUTPUTS", fault) for fault in _find_option_faults(read_call_options(message), inference))


# --- outputs, classes and id ------------------------------------------------------------------------------------------


class OutputOptions(NamedTuple):
    """The options of a request for one output.

    Attributes:
        forms: the forms in which the server may send the output; both if the request is ambiguous.
        classes: the requested number of classes, as written; None requests the tensor.
        is_binary_by_default: whether the output has no `binary_data`, and `binary_data_output` is true for the request.
    """

    forms: frozenset[Form]
    classes: Any = None
    is_binary_by_default: bool = False


class RequestOptions(NamedTuple):
    """The options of a request.

    Attributes:
        outputs: name -> options of each output in the request's list.
        other_forms: the forms in which the server may send outputs that the request does not list.
        id: the id, as written.
        has_names: whether every listed output has a name. If not, the outputs are not compared: `rules.members` reports
            the missing name.
    """

    outputs: Mapping[str, OutputOptions]
    other_forms: frozenset[Form]
    id: Any
    has_names: bool = True


_EITHER_FORM: frozenset[Form] = frozenset(("binary", "json"))


def read_request_options(document: Mapping[str, Any]) -> RequestOptions:
    """Read the options from the JSON of a request. Ignores parameters in places where no document defines them."""
    rest = _read_parameter_form(_get_parameters(document).get("binary_data_output"))
    # The documents are ambiguous on whether `binary_data_output` applies to a listed output without `binary_data`.
    default_forms: frozenset[Form] = _EITHER_FORM if "binary" in rest else rest
    listed = document.get("outputs") or []
    named = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    named = [item for item in named if isinstance(item.get("name"), str)]
    outputs: dict[str, OutputOptions] = {}
    for item in named:
        given = _get_parameters(item)
        own = given.get("binary_data")
        outputs[item["name"]] = OutputOptions(
            default_forms if own is None else _read_parameter_form(own),
            given.get(CLASSIFICATION),
            own is None and "binary" in rest,
        )
    has_names = isinstance(listed, list) and len(named) == len(listed)
    return RequestOptions(outputs, rest, document.get("id"), has_names)


def read_call_options(message: Pb) -> RequestOptions:
    """Read the options of a gRPC call. Each output may have either form, because the server chooses the contents."""
    outputs = {
        entry.name: OutputOptions(_EITHER_FORM, _read_parameter(entry.parameters[CLASSIFICATION]))
        if CLASSIFICATION in entry.parameters
        else OutputOptions(_EITHER_FORM)
        for entry in message.outputs
    }
    return RequestOptions(outputs, _EITHER_FORM, message.id, all(outputs))


def _read_parameter(parameter: Pb) -> Any:
    """Return the value of a gRPC parameter; without a value, return an empty string (not a valid number of classes)."""
    return getattr(parameter, parameter.WhichOneof("parameter_choice") or "", "")


def _get_parameters(owner: Mapping[str, Any]) -> Mapping[str, Any]:
    given = owner.get("parameters")
    return given if isinstance(given, dict) else {}


def _read_parameter_form(value: Any) -> frozenset[Form]:
    """Return the form that a JSON parameter requests; both forms if the parameter is not a boolean."""
    if value is None or value is False:
        return frozenset(("json",))
    return frozenset(("binary",)) if value is True else _EITHER_FORM


def _find_option_faults(options: RequestOptions, inference: Inference) -> Iterator[Fault]:
    """Yield how the options of a request differ from those of the caller.

    Skips ids that are not strings, and invalid numbers of classes: `rules.members` reports both.
    """
    if inference.id is not None and options.id != inference.id and isinstance(options.id, str | None):
        yield Fault(f"the id {format_value(inference.id)}", "none" if options.id is None else format_value(options.id))
    if not options.has_names:
        return
    if inference.outputs:
        yield from _find_output_name_faults(options, inference.outputs)
        for output in inference.outputs:
            if output.name in options.outputs:
                form = output.form or inference.all_outputs
                yield from _find_output_option_faults(output.name, options, form, output.classes)
        return
    for name in options.outputs:
        yield from _find_output_option_faults(name, options, inference.all_outputs, None)
    if not options.outputs and inference.all_outputs is not None and inference.all_outputs not in options.other_forms:
        yield Fault(f"all outputs as {inference.all_outputs}", f"as {'/'.join(sorted(options.other_forms))}")


def find_changed_options(before: ClientRequest, after: ClientRequest) -> Iterator[Fault]:
    """Yield how the options of two requests differ, although the caller specified the same options for both.

    Ignores an id or an output that only the earlier request has.
    """
    (version, first), (later_version, last) = _read_options(before), _read_options(after)
    if later_version != version:
        yield Fault(f"the version {format_value(version)}, as before", format_value(later_version))
    if first is None or last is None:
        return
    if not first.id and last.id:
        yield Fault("no id, as before", format_value(last.id))
    for name in sorted(last.outputs.keys() - first.outputs.keys()):
        yield Fault("only the outputs that were requested before", f"{format_name(name)} requested")
    for name in sorted(last.outputs.keys() & first.outputs.keys()):
        if last.outputs[name] != first.outputs[name]:
            yield Fault(
                f"{format_name(name)} with the same options as before", "another encoding or another number of classes"
            )
    if last.other_forms != first.other_forms:
        yield Fault(
            f"all outputs as {'/'.join(sorted(first.other_forms))}, as before",
            f"as {'/'.join(sorted(last.other_forms))}",
        )


def _read_options(received: ClientRequest) -> tuple[str, RequestOptions | None]:
    """Return the model version of a request (empty without one), and its options (None if they cannot be read)."""
    if received.is_over_grpc:
        call = parsed_call.parse(received)
        return ("", None) if call is None else (call.message.model_version, read_call_options(call.message))
    parsed_path = parse_path(received.path)
    version = "" if parsed_path is None or parsed_path.version is None else parsed_path.version.decode(errors="replace")
    document = parsed_request.parse(received).document
    return version, None if document is None else read_request_options(document)


def _find_output_name_faults(options: RequestOptions, outputs: tuple[RequestedOutput, ...]) -> Iterator[Fault]:
    wanted = {output.name for output in outputs}
    for name in sorted(wanted - options.outputs.keys()):
        yield Fault(f"the output {format_name(name)} requested", "not requested")
    for name in sorted(options.outputs.keys() - wanted):
        yield Fault("only the caller's outputs", f"{format_name(name)} requested")


def _find_output_option_faults(
    name: str, options: RequestOptions, form: Form | None, classes: int | None
) -> Iterator[Fault]:
    found = options.outputs[name]
    if found.classes != classes and (found.classes is None or is_count(found.classes)):
        wanted = "the tensor" if classes is None else f"{classes} classes"
        yield Fault(
            f"{wanted} of {format_name(name)}", "the tensor" if found.classes is None else format_value(found.classes)
        )
    if form is not None and form not in found.forms:
        yield Fault(f"{format_name(name)} as {form}", f"as {'/'.join(sorted(found.forms))}")
