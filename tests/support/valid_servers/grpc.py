"""Other valid answers over gRPC: forms, names, statuses, and open points of classification."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reference_server.errors import InferenceError
from reference_server.faults import fault as variation
from reference_server.request import RequestedOutput
from reference_server.tensors import Tensor, make_objects

Message = Any

# --- forms -----------------------------------------------------------------------------------------------------------


@variation("grpc_response.is_raw_answer")
def grpc_answers_are_always_raw(original: Any, request: Any, outputs: Any) -> bool:  # noqa: ARG001
    """The server sends every answer in raw contents."""
    return True


@variation("grpc_response.is_raw_answer")
def grpc_answers_are_typed_where_they_can_be(original: Any, request: Any, outputs: Any) -> bool:  # noqa: ARG001
    """The server sends an answer in typed contents unless one of its datatypes has no typed form."""
    return any(tensor.datatype in ("FP16", "BF16") for _, tensor in outputs)


@variation("grpc_response.add_raw")
def grpc_raw_answers_have_empty_contents(original: Any, response: Message, outputs: Any) -> None:
    """The server adds empty typed contents to each output of a raw answer."""
    original(response, outputs)
    for entry in response.outputs:
        entry.contents.SetInParent()


@variation("grpc_response.build")
def grpc_outputs_in_another_order(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """The server sends outputs and their raw contents in reverse order."""
    response = original(model, request, produced)
    entries, raw = list(response.outputs)[::-1], list(response.raw_output_contents)[::-1]
    del response.outputs[:]
    response.outputs.extend(entries)
    response.raw_output_contents[:] = raw
    return response


@variation("grpc_contents.decode_typed")
def grpc_other_fields_of_integers_are_taken(original: Any, datatype: str, shape: Any, contents: Message) -> Tensor:
    """The server reads integers from any integer field, as in the example of the classification extension."""
    if datatype in ("UINT32", "INT32", "UINT64", "INT64"):
        field = {"UINT32": "uint", "INT32": "int", "UINT64": "uint64", "INT64": "int64"}[datatype]
        for other, values in contents.ListFields():
            if other.name in ("int_contents", "uint_contents") and other.name != f"{field}_contents":
                getattr(contents, f"{field}_contents").extend(values)
                contents.ClearField(other.name)
    tensor: Tensor = original(datatype, shape, contents)
    return tensor


@variation("grpc_request.parse_input")
def grpc_tensors_without_elements_are_refused(
    original: Any, model: Any, spec: Any, entry: Message, raw: bytes | None
) -> Tensor:
    """The server refuses inputs without elements."""
    if 0 in entry.shape:
        raise InferenceError("has no elements")
    tensor: Tensor = original(model, spec, entry, raw)
    return tensor


# --- names and metadata ----------------------------------------------------------------------------------------------


@variation("grpc_response.build")
def grpc_answers_have_no_version(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """The server omits the version of the model in answers."""
    response = original(model, request, produced)
    response.ClearField("model_version")
    return response


@variation("grpc_response.build")
def grpc_answers_have_an_id_and_parameters(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """The server adds parameters to an answer, and an id if the request has none."""
    response = original(model, request, produced)
    response.id = response.id or "7f3a"
    response.parameters["triton_final_response"].bool_param = True
    for entry in response.outputs:
        entry.parameters["stage"].string_param = "1"
    return response


@variation("grpc_methods.model_metadata")
def grpc_metadata_leave_out_the_batch(original: Any, models: Any, message: Message) -> Message:
    """The model metadata have shapes without the batch dimension, no versions and no platform."""
    response = original(models, message)
    if models[message.name].batching:
        for entry in (*response.inputs, *response.outputs):
            del entry.shape[0]
    del response.versions[:]
    response.platform = ""
    return response


@variation("grpc_methods.model_metadata", breaks="OIP-MODEL-NAME-ASKED/grpc")
def grpc_metadata_name_the_version(original: Any, models: Any, message: Message) -> Message:
    """The model metadata name the model with its version, as `name:version`."""
    response = original(models, message)
    response.name = f"{message.name}:{response.versions[0]}"
    return response


@variation("grpc_methods.server_ready")
def grpc_server_is_not_ready(original: Any, models: Any, message: Message) -> Message:
    """The server says that it is not ready, because one of its models is not."""
    response = original(models, message)
    response.ready = False
    return response


@variation("grpc_request.parse_outputs", breaks="OIP-OUTPUTS-ONLY/grpc")
def grpc_further_outputs_come_with_the_listed(original: Any, model: Any, message: Message) -> list[RequestedOutput]:
    """The server returns all outputs of a model, even if the request lists only some."""
    wishes: list[RequestedOutput] = original(model, message)
    listed = {wish.name for wish in wishes}
    return [
        *(RequestedOutput(spec.name, wishes[0].binary) for spec in model.outputs if spec.name not in listed),
        *wishes,
    ]


@variation("grpc_request.parse_inputs", breaks="OIP-SIGNATURE/grpc")
def grpc_the_only_input_has_any_name(original: Any, model: Any, message: Message) -> Any:
    """The server accepts any name for the only input of a model."""
    if len(model.inputs) == len(message.inputs) == 1:
        message.inputs[0].name = model.inputs[0].name
    return original(model, message)


@variation("grpc_methods.server_metadata")
def grpc_metadata_list_further_extensions(original: Any, models: Any, message: Message) -> Message:
    """The server metadata have no name, and list extensions that no document defines."""
    response = original(models, message)
    response.ClearField("name")
    response.extensions[:] = ["sequence", "classification", "trace"]
    return response


# --- statuses --------------------------------------------------------------------------------------------------------


@variation("grpc_server.get_status")
def grpc_refusals_say_nothing(original: Any, error: Any) -> Any:
    """The server refuses calls without a message."""
    return original(error)[0], ""


@variation("grpc_server.get_status")
def grpc_unknown_names_are_not_found(original: Any, error: Any) -> Any:
    """The server refuses an unknown name of a tensor with NOT_FOUND."""
    from grpc import StatusCode

    code, text = original(error)
    return (StatusCode.NOT_FOUND if "no such" in text else code), text


@variation("grpc_contents.decode_raw", "grpc_server.get_status")
def grpc_large_tensors_exhaust_the_server(original: Any, *arguments: Any) -> Any:
    """The server refuses a raw tensor of more than 64 KiB with RESOURCE_EXHAUSTED."""
    from grpc import StatusCode

    if len(arguments) == 1:
        code, text = original(*arguments)
        return (StatusCode.RESOURCE_EXHAUSTED if text.endswith("too large") else code), text
    if len(arguments[2]) > 64 * 1024:
        raise InferenceError("too large")
    return original(*arguments)


# --- classes ---------------------------------------------------------------------------------------------------------


@variation("grpc_response.classify_output", breaks="CLS-VALUE-EXACT/grpc")
def grpc_values_have_six_decimals(original: Any, model: Any, wish: RequestedOutput, tensor: Tensor) -> Tensor:
    """The server writes float values of classes with six decimals."""
    found: Tensor = original(model, wish, tensor)
    if wish.classes is None or tensor.elements.dtype.kind != "f":
        return found
    parts = [text.partition(b":") for text in found.elements]
    return replace(found, elements=make_objects(b"%.6f:%s" % (float(value), rest) for value, _, rest in parts))


@variation("grpc_request.get_class_count")
def grpc_count_0_is_no_classification(original: Any, entry: Message) -> int | None:
    """The server returns the output itself if the number of classes is 0."""
    is_zero = "classification" in entry.parameters and entry.parameters["classification"].int64_param == 0
    wanted = is_zero and entry.parameters["classification"].WhichOneof("parameter_choice") == "int64_param"
    count: int | None = None if wanted else original(entry)
    return count


@variation("grpc_response.classify_output")
def grpc_counts_above_the_classes_are_refused(
    original: Any, model: Any, wish: RequestedOutput, tensor: Tensor
) -> Tensor:
    """The server refuses a number of classes above the number of elements."""
    batch = tensor.shape[0] if model.batching else 1
    if wish.classes is not None and wish.classes > tensor.elements.size // max(batch, 1):
        raise InferenceError("classification asks for more classes than there are")
    found: Tensor = original(model, wish, tensor)
    return found
