"""Compares a request with the intent of its caller: the model, the tensors, the outputs and their forms, the id.

Compares only what the caller specified, and only readable parts of the request: `rules.judging` reports faults in its
bytes. No document prescribes the form of an input or a content coding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

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

_NamedFault = tuple[str, Fault]


def find_differences(received: ClientRequest, inference: Inference) -> tuple[Violation, ...]:
    """Return how a request differs from the inference that the client was to make. Pure, never raises.

    Options that the caller left open may have any value. Returns only the first difference of each requirement.
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
    """Yield how the inputs differ from the caller's; ignore elements if the order of the data is wrong."""
    displaced = find_order_fault(data, [one for one in inputs if one.binary], inference)
    if displaced is not None:
        yield "CLIENT-SENDS-ORDER", displaced
    for found in find_tensor_faults(inputs, inference, elements, is_json=is_json):
        if displaced is None or not found.is_of_elements:
            yield found.requirement, found.fault


# --- over HTTP -------------------------------------------------------------------------------------------------------


def _find_request_faults(request: ParsedRequest, inference: Inference) -> Iterator[_NamedFault]:
    yield from (("CLIENT-SENDS-POST", fault) for fault in _find_address_faults(request.received.path, inference))
    kinds = {finding.kind for finding in request.findings}
    if inference.is_raw and not request.is_raw:
        header = "no such header" if request.header is None else format_value(request.header)
        actual = "one with JSON" if request.document is not None else header
        yield "CLIENT-SENDS-RAW", Fault(f"a raw binary request, as the caller asks: {INFERENCE_HEADER}: 0", actual)
    if request.is_raw and not request.has_coding_fault:
        yield from _find_raw_faults(request, inference)
    elif request.document is not None and "json-not-utf8" not in kinds:
        if not kinds & _UNNAMED:
            elements = {index: item.get("data") for index, item in request.items().items()}
            data = request.body[request.json_end :]
            yield from _find_tensor_faults(request.inputs, data, inference, elements, is_json=True)
        asked = read_request_options(request.document)
        yield from (("CLIENT-SENDS-OUTPUTS", fault) for fault in find_output_faults(asked, inference))
        yield from (("CLIENT-SENDS-OVERRIDE", fault) for fault in _find_open_forms(asked, inference))


def _find_open_forms(asks: RequestOptions, inference: Inference) -> Iterator[Fault]:
    """Yield the outputs that the caller wants as JSON and that `binary_data_output` may make binary."""
    for output in inference.outputs or ():
        if output.form == "json" and output.name in asks.outputs and asks.outputs[output.name].is_left_open:
            yield Fault(f"binary_data false on {format_name(output.name)}", "none, under binary_data_output true")


def _find_address_faults(path: str, inference: Inference) -> Iterator[Fault]:
    place = parse_path(path)
    if place is None:
        return  # the rules report it
    wanted = inference.model.encode("utf-8", "surrogatepass")
    if place.model != wanted:
        yield Fault(f"the model {format_value(inference.model)}", format_value(path))
    if inference.version is not None and place.version != inference.version.encode("utf-8", "surrogatepass"):
        yield Fault(f"the version {format_value(inference.version)}", format_value(path))


def _find_raw_faults(request: ParsedRequest, inference: Inference) -> Iterator[_NamedFault]:
    """Yield the differences of a raw request, which carries one tensor, and neither outputs nor an id."""
    wanted = [bytes(one.to_bytes()) for one in inference.inputs]
    if len(wanted) == 1 and inference.inputs[0].datatype == "BYTES" and inference.inputs[0].elements == 1:
        wanted.append(wanted[0][4:])  # the documents disagree: the element with its length prefix, or without
    if len(inference.inputs) != 1:
        yield "CLIENT-SENDS-VALUES", Fault("the tensors of the caller", "one raw tensor", 0)
    elif request.body not in wanted:
        more = len(request.body) - len(wanted[0])
        if wanted[0] in request.body:
            yield "CLIENT-SENDS-RAW", Fault("the data of the caller's tensor and nothing else", f"{more} bytes more", 0)
        else:
            yield "CLIENT-SENDS-VALUES", Fault("the tensor of the caller", f"{len(request.body)} other bytes", 0)
    asks = inference.outputs or inference.id is not None or inference.all_outputs == "json"
    if asks and not inference.is_raw:
        yield "CLIENT-SENDS-OUTPUTS", Fault("the outputs and the id of the caller", "a raw request, which has none")


# --- over gRPC -------------------------------------------------------------------------------------------------------


def _find_call_faults(call: ParsedCall, inference: Inference) -> Iterator[_NamedFault]:
    message = call.message
    if message.model_name != inference.model:
        yield "CLIENT-SENDS-POST", Fault(f"the model {format_value(inference.model)}", format_value(message.model_name))
    if inference.version is not None and message.model_version != inference.version:
        yield (
            "CLIENT-SENDS-POST",
            Fault(f"the version {format_value(inference.version)}", format_value(message.model_version)),
        )
    data = b"".join(call.body[slice(*span)] for span in call.entries)
    elements = {index: read_typed_elements(entry) for index, entry in enumerate(message.inputs)}
    yield from _find_tensor_faults(call.inputs, data, inference, elements, is_json=False)
    yield from (("CLIENT-SENDS-OUTPUTS", fault) for fault in find_output_faults(read_call_options(message), inference))


# --- outputs, classes and id ------------------------------------------------------------------------------------------


class OutputOptions(NamedTuple):
    """The options of a request for one output.

    Attributes:
        forms: the forms that the request allows; more than one if the request is ambiguous.
        classes: the count, as written; None requests the tensor.
        is_left_open: whether the request sets no form for this output, while its `binary_data_output` may apply.
    """

    forms: frozenset[Form]
    classes: Any = None
    is_left_open: bool = False


class RequestOptions(NamedTuple):
    """The options of a request: its listed outputs by name, the forms of other outputs (`rest`), and its id.

    `has_names` is false if an entry of the list has no name: the rules report that, and the list is not compared.
    """

    outputs: Mapping[str, OutputOptions]
    rest: frozenset[Form]
    id: Any
    has_names: bool = True


_EITHER_FORM: frozenset[Form] = frozenset(("binary", "json"))


def read_request_options(document: Mapping[str, Any]) -> RequestOptions:
    """Read the options from the JSON of a request, using parameters only where a document defines them."""
    rest = _read_parameter_form(_find_parameters(document).get("binary_data_output"))
    # The documents are ambiguous on whether `binary_data_output` applies to a listed output without `binary_data`.
    default_forms: frozenset[Form] = _EITHER_FORM if "binary" in rest else rest
    listed = document.get("outputs") or []
    named = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    named = [item for item in named if isinstance(item.get("name"), str)]
    outputs: dict[str, OutputOptions] = {}
    for item in named:
        given = _find_parameters(item)
        own = given.get("binary_data")
        outputs[item["name"]] = OutputOptions(
            default_forms if own is None else _read_parameter_form(own),
            given.get(CLASSIFICATION),
            own is None and "binary" in rest,
        )
    has_names = isinstance(listed, list) and len(named) == len(listed)
    return RequestOptions(outputs, rest, document.get("id"), has_names)


def read_call_options(message: Pb) -> RequestOptions:
    """Read the options of a gRPC call; the server chooses the form of the contents."""
    outputs = {
        entry.name: OutputOptions(_EITHER_FORM, _read_parameter(entry.parameters[CLASSIFICATION]))
        if CLASSIFICATION in entry.parameters
        else OutputOptions(_EITHER_FORM)
        for entry in message.outputs
    }
    return RequestOptions(outputs, _EITHER_FORM, message.id, all(outputs))


def _read_parameter(parameter: Pb) -> Any:
    """Return the value of a parameter; without one, an empty string, which is not a count."""
    return getattr(parameter, parameter.WhichOneof("parameter_choice") or "", "")


def _find_parameters(owner: Mapping[str, Any]) -> Mapping[str, Any]:
    given = owner.get("parameters")
    return given if isinstance(given, dict) else {}


def _read_parameter_form(value: Any) -> frozenset[Form]:
    """Return the form that a parameter requests; either form if its type is wrong."""
    if value is None or value is False:
        return frozenset(("json",))
    return frozenset(("binary",)) if value is True else _EITHER_FORM


def find_output_faults(asks: RequestOptions, inference: Inference) -> Iterator[Fault]:
    """Yield how the options of a request differ from the caller's options.

    Skips an id that is not a string and classes that are not a count: the rules report them.
    """
    if inference.id is not None and asks.id != inference.id and isinstance(asks.id, str | None):
        yield Fault(f"the id {format_value(inference.id)}", "none" if asks.id is None else format_value(asks.id))
    if not asks.has_names:
        return
    if inference.outputs:
        yield from _find_name_faults(asks, inference.outputs)
        for output in inference.outputs:
            if output.name in asks.outputs:
                form = output.form or inference.all_outputs
                yield from _find_output_faults(output.name, asks, form, output.classes)
        return
    for name in asks.outputs:
        yield from _find_output_faults(name, asks, inference.all_outputs, None)
    if not asks.outputs and inference.all_outputs is not None and inference.all_outputs not in asks.rest:
        yield Fault(f"all outputs as {inference.all_outputs}", f"as {'/'.join(sorted(asks.rest))}")


def find_option_faults(before: ClientRequest, after: ClientRequest) -> Iterator[Fault]:
    """Yield the options of a request that an earlier request with the same intent did not have."""
    (version, first), (later_version, last) = _read_options(before), _read_options(after)
    if later_version != version:
        yield Fault(f"the version {format_value(version)}, as before", format_value(later_version))
    if first is None or last is None:
        return
    if not first.id and last.id:
        yield Fault("no id, as before", format_value(last.id))
    for name in sorted(last.outputs.keys() - first.outputs.keys()):
        yield Fault("the outputs that were asked for before", f"{format_name(name)} asked for")
    for name in sorted(last.outputs.keys() & first.outputs.keys()):
        if last.outputs[name] != first.outputs[name]:
            yield Fault(f"{format_name(name)} asked for as before", "with another form, or as classes")
    if last.rest != first.rest:
        yield Fault(f"all outputs as {'/'.join(sorted(first.rest))}, as before", f"as {'/'.join(sorted(last.rest))}")


def _read_options(received: ClientRequest) -> tuple[str, RequestOptions | None]:
    """Return the version that a request names, and its options, or None if the options cannot be read."""
    if received.is_over_grpc:
        call = parsed_call.parse(received)
        return ("", None) if call is None else (call.message.model_version, read_call_options(call.message))
    place = parse_path(received.path)
    version = "" if place is None or place.version is None else place.version.decode(errors="replace")
    document = parsed_request.parse(received).document
    return version, None if document is None else read_request_options(document)


def _find_name_faults(asks: RequestOptions, outputs: tuple[RequestedOutput, ...]) -> Iterator[Fault]:
    wanted = {output.name for output in outputs}
    for name in sorted(wanted - asks.outputs.keys()):
        yield Fault(f"the output {format_name(name)}", "it is not asked for")
    for name in sorted(asks.outputs.keys() - wanted):
        yield Fault("the outputs of the caller alone", f"{format_name(name)} asked for")


def _find_output_faults(name: str, asks: RequestOptions, form: Form | None, classes: int | None) -> Iterator[Fault]:
    asked = asks.outputs[name]
    if asked.classes != classes and (asked.classes is None or is_count(asked.classes)):
        wanted = "the tensor" if classes is None else f"{classes} classes"
        yield Fault(
            f"{wanted} of {format_name(name)}", "the tensor" if asked.classes is None else format_value(asked.classes)
        )
    if form is not None and form not in asked.forms:
        yield Fault(f"{format_name(name)} as {form}", f"as {'/'.join(sorted(asked.forms))}")
