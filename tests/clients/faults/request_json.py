"""Requests over HTTP whose JSON is wrong."""

from __future__ import annotations

import json
from typing import Any

from tests.clients import steps
from tests.clients.alterations import Original, fault
from tests.clients.honest import tensors
from tests.clients.honest.caller import CallerRequest, RequestedOutput, Tensor

json_in_latin_1 = steps.WRITTEN.after(
    "CLIENT-SENDS-JSON CLIENT-SENDS-OUTPUTS CLIENT-SENDS-VALUES",
    lambda made: made.decode().encode("latin-1", errors="replace"),
).says("The JSON is written in ISO 8859-1.")
json_with_a_comma_at_the_end = steps.WRITTEN.after("CLIENT-SENDS-JSON", lambda made: made[:-1] + b",}").says(
    "The JSON has a comma behind its last member."
)
json_in_single_quotes = steps.WRITTEN.instead("CLIENT-SENDS-JSON", lambda said: str(said).encode()).says(
    "The JSON is what Python prints of it."
)
nan_as_json = steps.JSON_ELEMENTS.instead(
    "CLIENT-SENDS-JSON",
    lambda tensor: tensors.elements(tensor.datatype, tensor.data),
    when=lambda tensor: tensor.datatype in ("FP32", "FP64"),
).says("NaN and infinity are written into the JSON as bare words.")


@fault("request.written", misses="CLIENT-SENDS-MEMBER-ONCE")
def inputs_twice(original: Original, said: dict[str, Any]) -> bytes:
    """The member `inputs` is there twice."""
    first = json.dumps({"inputs": said["inputs"]}, ensure_ascii=False, separators=(",", ":")).encode()
    return first[:-1] + b"," + bytes(original(said))[1:]


shape_as_strings = steps.DESCRIBED_INPUT.after(
    "CLIENT-SENDS-MEMBERS", lambda said, tensor: {**said, "shape": [str(size) for size in tensor.shape]}
).says("The sizes of a shape are strings.")
datatypes_of_numpy = steps.DESCRIBED_INPUT.after(
    "CLIENT-SENDS-MEMBERS", lambda said, tensor: {**said, "datatype": tensor.datatype.lower().replace("fp", "float")}
).says("Datatypes have the names of numpy.")
bytes_as_string = steps.DESCRIBED_INPUT.after(
    "CLIENT-SENDS-MEMBERS",
    lambda said, tensor: {**said, **({"datatype": "STRING"} if tensor.datatype == "BYTES" else {})},
).says("BYTES is called STRING, as in an example of the classification extension.")
shape_left_out = steps.DESCRIBED_INPUT.after(
    "CLIENT-SENDS-MEMBERS", lambda said: {name: value for name, value in said.items() if name != "shape"}
).says("An input has no shape.")
outputs_as_strings = steps.DESCRIBED_OUTPUT.instead("CLIENT-SENDS-MEMBERS", lambda output: output.name).says(
    "An output that is asked for is its name alone."
)
array_as_parameter = steps.DOCUMENT.after(
    "CLIENT-SENDS-MEMBERS", lambda said: {**said, "parameters": {**said.get("parameters", {}), "stop": ["END"]}}
).says("A parameter of the request is an array, as `stop` of completions is elsewhere.")
object_as_parameter = steps.DESCRIBED_OUTPUT.after(
    "CLIENT-SENDS-MEMBERS",
    lambda said: {**said, "parameters": {**said.get("parameters", {}), "format": {"kind": "text"}}},
).says("A parameter of a requested output is an object.")
id_as_number = steps.DOCUMENT.after(
    "CLIENT-SENDS-MEMBERS", lambda said, asked: {**said, "id": len(asked.id)} if asked.id else said
).says("The id is a number.")
inputs_by_name = steps.DOCUMENT.after(
    "CLIENT-SENDS-MEMBERS", lambda said: {**said, "inputs": {one["name"]: one for one in said["inputs"]}}
).says("`inputs` is an object with a member for each input.")


@fault("request.data_size", misses="CLIENT-SENDS-PARAMETERS")
def size_as_string(original: Original, tensor: Tensor) -> str:
    """`binary_data_size` is a string."""
    return str(original(tensor))


@fault("request.described_input", misses="CLIENT-SENDS-PARAMETERS CLIENT-SENDS-PARAMETERS-PLACE CLIENT-SENDS-DATA")
def size_beside_the_shape(original: Original, tensor: Tensor) -> dict[str, Any]:
    """`binary_data_size` is a member of the input instead of its parameters."""
    said = original(tensor)
    parameters = said.pop("parameters", {})
    return {**said, **parameters}


@fault("request.described_output", misses="CLIENT-SENDS-PARAMETERS")
def binary_data_as_string(original: Original, output: RequestedOutput) -> dict[str, Any]:
    """`binary_data` is a string."""
    said = original(output)
    if output.form is not None:
        said["parameters"]["binary_data"] = str(output.form == "binary").lower()
    return dict(said)


all_outputs_as_number = steps.FOR_ALL_OUTPUTS.instead(
    "CLIENT-SENDS-PARAMETERS", lambda form: {"binary_data_output": int(form == "binary")}
).says("`binary_data_output` is 1 or 0.")
binary_data_for_all_outputs = steps.FOR_ALL_OUTPUTS.instead(
    "CLIENT-SENDS-OUTPUTS CLIENT-SENDS-PARAMETERS-PLACE", lambda form: {"binary_data": form == "binary"}
).says("`binary_data` stands in the parameters of the request.")


@fault("request.described_output", misses="CLIENT-SENDS-OUTPUTS CLIENT-SENDS-PARAMETERS-PLACE")
def binary_data_output_on_an_output(original: Original, output: RequestedOutput) -> dict[str, Any]:
    """`binary_data_output` stands in the parameters of an output."""
    said = original(output)
    if output.form is not None:
        said["parameters"]["binary_data_output"] = said["parameters"].pop("binary_data")
    return dict(said)


@fault("request.described_output", misses="CLIENT-SENDS-CLASSIFICATION")
def classification_as_string(original: Original, output: RequestedOutput) -> dict[str, Any]:
    """The count of classes is a string."""
    said = original(output)
    if output.classes is not None:
        said["parameters"]["classification"] = str(output.classes)
    return dict(said)


@fault("request.document", misses="CLIENT-SENDS-PARAMETERS-PLACE CLIENT-SENDS-CLASSIFICATION-PLACE")
def parameters_in_other_places_too(original: Original, asked: CallerRequest) -> dict[str, Any]:
    """The request has a `binary_data` and a `classification` of the client's own, beside what it asks of outputs."""
    said = original(asked)
    return {**said, "parameters": {"binary_data": True, "classification": 9, **said.get("parameters", {})}}


@fault("request.document", misses="CLIENT-SENDS-OUTPUTS CLIENT-SENDS-CLASSIFICATION-PLACE")
def classification_of_the_request(original: Original, asked: CallerRequest) -> dict[str, Any]:
    """The count of classes stands in the parameters of the request."""
    said = original(asked)
    for output in said.get("outputs", ()):
        count = output.get("parameters", {}).pop("classification", None)
        if count is not None:
            said.setdefault("parameters", {})["classification"] = count
    return dict(said)


@fault("request.described_input", misses="CLIENT-SENDS-DATA-OR-SIZE")
def data_beside_size(original: Original, tensor: Tensor) -> dict[str, Any]:
    """A binary input has its first elements as `data`, too."""
    said = original(tensor)
    if tensor.is_binary and tensor.datatype == "INT32" and tensor.data:
        said["data"] = tensors.elements(tensor.datatype, tensor.data)
    return dict(said)


outputs_left_out = steps.DOCUMENT.after(
    "CLIENT-SENDS-OUTPUTS", lambda said: {name: value for name, value in said.items() if name != "outputs"}
).says("No output is ever listed.")
id_left_out = steps.DOCUMENT.after(
    "CLIENT-SENDS-OUTPUTS", lambda said: {name: value for name, value in said.items() if name != "id"}
).says("The caller's id is not sent.")
all_outputs_ignored = steps.DOCUMENT.after(
    "CLIENT-SENDS-OUTPUTS", lambda said: {name: value for name, value in said.items() if name != "parameters"}
).says("The form that the caller asks of all outputs is not sent.")


@fault("request.described_output", misses="CLIENT-SENDS-OUTPUTS")
def binary_data_turned_round(original: Original, output: RequestedOutput) -> dict[str, Any]:
    """`binary_data` is true where JSON is asked for."""
    turned = {"binary": "json", "json": "binary"}.get(output.form or "")
    return dict(original(RequestedOutput(output.name, turned, output.classes)))


@fault("request.described_output", misses="CLIENT-SENDS-OUTPUTS")
def one_class_more(original: Original, output: RequestedOutput) -> dict[str, Any]:
    """One class more is asked for than the caller wants."""
    classes = None if output.classes is None else output.classes + 1
    return dict(original(RequestedOutput(output.name, output.form, classes)))


first_output_asked_for_only = steps.DOCUMENT.after(
    "CLIENT-SENDS-OUTPUTS", lambda said: {**said, "outputs": said["outputs"][:1]} if "outputs" in said else said
).says("Of several outputs the first alone is asked for.")
