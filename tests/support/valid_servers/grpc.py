"""Other valid answers over gRPC: forms, names, statuses, and open points of classification."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reference_server.errors import InferenceError
from reference_server.faults import fault as variation
from reference_server.faults import steps
from reference_server.faults.answers import list_all
from reference_server.faults.grpc_classes import is_classified_float, respell_values
from reference_server.faults.grpc_frame import set_field
from reference_server.tensors import NUMPY, Tensor, TensorSpec

Message = Any

# --- forms -----------------------------------------------------------------------------------------------------------


grpc_answers_are_always_raw = steps.IS_RAW_ANSWER.instead((), lambda: True).says(
    "The server sends every answer in raw contents."
)
grpc_answers_are_typed_where_they_can_be = steps.IS_RAW_ANSWER.instead(
    (), lambda outputs: any(tensor.datatype in ("FP16", "BF16") for _, tensor in outputs)
).says("The server sends an answer in typed contents unless one of its datatypes has no typed form.")


@variation(steps.ADD_RAW)
def grpc_raw_answers_have_empty_contents(original: Any, response: Message, outputs: Any) -> None:
    """The server adds empty typed contents to each output of a raw answer."""
    original(response, outputs)
    for entry in response.outputs:
        entry.contents.SetInParent()


@variation(steps.BUILD_RESPONSE)
def grpc_outputs_in_another_order(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """The server sends outputs and their raw contents in reverse order."""
    response = original(model, request, produced)
    entries, raw = list(response.outputs)[::-1], list(response.raw_output_contents)[::-1]
    del response.outputs[:]
    response.outputs.extend(entries)
    response.raw_output_contents[:] = raw
    return response


@variation(steps.DECODE_TYPED)
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


@variation(steps.PARSE_CALL_INPUT, breaks="OIP-SIGNATURE/grpc")
def grpc_other_datatypes_are_converted(original: Any, model: Any, spec: TensorSpec, entry: Message, raw: Any) -> Tensor:
    """The server reads a numeric input of another datatype in this datatype, and converts the elements."""
    if entry.datatype not in NUMPY or "BYTES" in (entry.datatype, spec.datatype) or entry.datatype == spec.datatype:
        return original(model, spec, entry, raw)  # type: ignore[no-any-return]
    tensor: Tensor = original(model, replace(spec, datatype=entry.datatype), entry, raw)
    return Tensor(spec.datatype, tensor.shape, tensor.elements.astype(NUMPY[spec.datatype]))


@variation(steps.PARSE_CALL_INPUTS)
def grpc_last_of_equal_inputs_counts(original: Any, model: Any, message: Message) -> Any:
    """If a call repeats the name of an input, the server uses the last input of that name."""
    last = {entry.name: index for index, entry in enumerate(message.inputs)}
    inputs, raw = list(message.inputs), list(message.raw_input_contents)
    if len(last) < len(inputs) and len(raw) in (0, len(inputs)):
        del message.inputs[:], message.raw_input_contents[:]
        for index in sorted(last.values()):
            message.inputs.append(inputs[index])
            message.raw_input_contents.extend(raw[index : index + 1])
    return original(model, message)


grpc_tensors_without_elements_are_refused = steps.PARSE_CALL_INPUT.refuse(when=lambda entry: 0 in entry.shape).says(
    "The server refuses inputs without elements."
)

# --- names and metadata ----------------------------------------------------------------------------------------------

grpc_answers_have_no_version = steps.BUILD_RESPONSE.after((), set_field("model_version", None)).says(
    "The server omits the version of the model in answers."
)


@variation(steps.BUILD_RESPONSE)
def grpc_answers_have_an_id_and_parameters(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """The server adds parameters to an answer, and an id if the request has none."""
    response = original(model, request, produced)
    response.id = response.id or "7f3a"
    response.parameters["triton_final_response"].bool_param = True
    for entry in response.outputs:
        entry.parameters["stage"].string_param = "1"
    return response


@variation(steps.CALL_MODEL_METADATA)
def grpc_metadata_leave_out_the_batch(original: Any, models: Any, message: Message) -> Message:
    """The model metadata have shapes without the batch dimension, no versions and no platform."""
    response = original(models, message)
    if models[message.name].batching:
        for entry in (*response.inputs, *response.outputs):
            del entry.shape[0]
    del response.versions[:]
    response.platform = ""
    return response


@variation(steps.CALL_MODEL_METADATA, breaks="OIP-MODEL-NAME-ASKED/grpc")
def grpc_metadata_name_the_version(original: Any, models: Any, message: Message) -> Message:
    """The model metadata name the model with its version, as `name:version`."""
    response = original(models, message)
    response.name = f"{message.name}:{response.versions[0]}"
    return response


grpc_server_is_not_ready = steps.CALL_SERVER_READY.after((), set_field("ready", False)).says(
    "The server says that it is not ready, because one of its models is not."
)
grpc_further_outputs_come_with_the_listed = steps.PARSE_CALL_OUTPUTS.after(
    "OIP-OUTPUTS-ONLY/grpc",
    lambda requested, model: [
        *list_all(requested, model, binary=requested[0].binary)[len(requested) :],
        *requested,
    ],
).says("The server returns all outputs of a model, even if the request lists only some.")


@variation(steps.PARSE_CALL_INPUTS, breaks="OIP-SIGNATURE/grpc")
def grpc_the_only_input_has_any_name(original: Any, model: Any, message: Message) -> Any:
    """The server accepts any name for the only input of a model."""
    if len(model.inputs) == len(message.inputs) == 1:
        message.inputs[0].name = model.inputs[0].name
    return original(model, message)


@variation(steps.CALL_SERVER_METADATA)
def grpc_metadata_list_further_extensions(original: Any, models: Any, message: Message) -> Message:
    """The server metadata have no name, and list extensions that no document defines."""
    response = original(models, message)
    response.ClearField("name")
    response.extensions[:] = ["sequence", "classification", "trace"]
    return response


# --- statuses --------------------------------------------------------------------------------------------------------


grpc_refusals_say_nothing = steps.GET_STATUS.after((), lambda status: (status[0], "")).says(
    "The server refuses calls without a message."
)


@variation(steps.GET_STATUS)
def grpc_unknown_names_are_not_found(original: Any, error: Any) -> Any:
    """The server refuses an unknown name of a tensor with NOT_FOUND."""
    from grpc import StatusCode

    code, text = original(error)
    return (StatusCode.NOT_FOUND if "no such" in text else code), text


@variation(steps.DECODE_RAW, steps.GET_STATUS)
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


grpc_values_have_six_decimals = steps.CLASSIFY_OUTPUT.after(
    "CLS-VALUE-EXACT/grpc", respell_values("f"), when=is_classified_float
).says("The server writes float values of classes with six decimals.")


@variation(steps.GET_CLASS_COUNT)
def grpc_count_0_is_no_classification(original: Any, entry: Message) -> int | None:
    """The server returns the output itself if the number of classes is 0."""
    is_zero = "classification" in entry.parameters and entry.parameters["classification"].int64_param == 0
    wanted = is_zero and entry.parameters["classification"].WhichOneof("parameter_choice") == "int64_param"
    count: int | None = None if wanted else original(entry)
    return count


grpc_counts_above_the_classes_are_refused = steps.CLASSIFY_OUTPUT.refuse(
    when=lambda model, output, tensor: (
        (output.classes or 0) > tensor.elements.size // max(tensor.shape[0] if model.batching else 1, 1)
    )
).says("The server refuses a number of classes above the number of elements.")
