"""Whether a request says what its caller meant: the model, the tensors, the outputs and their forms, the id.

Only what the caller asked for is compared, and only where the request can be read: what is wrong with its bytes is left
to `rules.judged`. In which form an input travels, and whether in a content coding, binds no document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from conformance.clients.inference import Inference
from conformance.clients.intent_outputs import find_output_faults, read_call_options, read_request_options
from conformance.clients.intent_tensors import find_order_fault, find_value_faults
from conformance.clients.rules.rule import Fault
from conformance.clients.violation import Violation
from conformance.wire import parsed_call, parsed_request
from conformance.wire.client_request import ClientRequest, parse_path
from conformance.wire.finding import format_value
from conformance.wire.outputs import Output
from conformance.wire.parsed_call import ParsedCall, read_typed_elements
from conformance.wire.parsed_request import ParsedRequest
from conformance.wire.request import INFERENCE_HEADER

# Which inputs there are cannot be told.
_UNNAMED: Final = frozenset({"inputs-missing", "inputs-invalid", "inputs-too-many", "input-invalid"})

_Named = tuple[str, Fault]


def find_differences(received: ClientRequest, inference: Inference) -> tuple[Violation, ...]:
    """Return how a request differs from what its client was asked to send. Pure, never raises.

    Where the caller left something open, anything is right. The first difference stands for all of one requirement.
    """
    if received.is_over_grpc:
        call = parsed_call.parse(received)
        found = [] if call is None else [(f"{name}/grpc", fault) for name, fault in _of_call(call, inference)]
    else:
        found = list(_of_request(parsed_request.parse(received), inference))
    first: dict[str, Fault] = {}
    for name, fault in found:
        first.setdefault(name, fault)
    return tuple(Violation(name, *fault) for name, fault in first.items())


def _of_tensors(
    inputs: Sequence[Output], data: bytes, inference: Inference, elements: Mapping[int, Any], *, is_json: bool
) -> Iterator[_Named]:
    """Yield how the inputs differ from the caller's; their elements are not said to where their order is wrong."""
    displaced = find_order_fault(data, [one for one in inputs if one.binary], inference)
    if displaced is not None:
        yield "CLIENT-SENDS-ORDER", displaced
    for found in find_value_faults(inputs, inference, elements, is_json=is_json):
        if displaced is None or not found.is_of_elements:
            yield found.requirement, found.fault


# --- over HTTP -------------------------------------------------------------------------------------------------------


def _of_request(request: ParsedRequest, inference: Inference) -> Iterator[_Named]:
    yield from (("CLIENT-SENDS-POST", fault) for fault in _addressed(request.received.path, inference))
    kinds = {finding.kind for finding in request.findings}
    if inference.is_raw and not request.is_raw:
        header = "no such header" if request.header is None else format_value(request.header)
        said = "one with JSON" if request.document is not None else header
        yield "CLIENT-SENDS-RAW", Fault(f"a raw binary request, as the caller asks: {INFERENCE_HEADER}: 0", said)
    if request.is_raw and not request.has_coding_fault:
        yield from _of_raw(request, inference)
    elif request.document is not None and "json-not-utf8" not in kinds:
        if not kinds & _UNNAMED:
            elements = {index: item.get("data") for index, item in request.items().items()}
            data = request.body[request.json_end :]
            yield from _of_tensors(request.inputs, data, inference, elements, is_json=True)
        asked = read_request_options(request.document)
        yield from (("CLIENT-SENDS-OUTPUTS", fault) for fault in find_output_faults(asked, inference))


def _addressed(path: str, inference: Inference) -> Iterator[Fault]:
    place = parse_path(path)
    if place is None:
        return  # the rules say so
    wanted = inference.model.encode("utf-8", "surrogatepass")
    if place.model != wanted:
        yield Fault(f"the model {format_value(inference.model)}", format_value(path))
    if inference.version is not None and place.version != inference.version.encode("utf-8", "surrogatepass"):
        yield Fault(f"the version {format_value(inference.version)}", format_value(path))


def _of_raw(request: ParsedRequest, inference: Inference) -> Iterator[_Named]:
    """A raw request carries one tensor and nothing else: neither outputs nor an id."""
    wanted = [bytes(one.to_bytes()) for one in inference.inputs]
    if len(wanted) == 1 and inference.inputs[0].datatype == "BYTES" and inference.inputs[0].elements == 1:
        wanted.append(wanted[0][4:])  # contested: the element with its length, or without
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


def _of_call(call: ParsedCall, inference: Inference) -> Iterator[_Named]:
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
    yield from _of_tensors(call.inputs, data, inference, elements, is_json=False)
    yield from (("CLIENT-SENDS-OUTPUTS", fault) for fault in find_output_faults(read_call_options(message), inference))
