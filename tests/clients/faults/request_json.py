"""Requests over HTTP whose JSON is wrong."""

from __future__ import annotations

import json
from typing import Any

from tests.clients.alterations import Original, fault
from tests.clients.honest import tensors
from tests.clients.honest.caller import CallerRequest, RequestedOutput, Tensor


@fault("request.written", misses="CLIENT-SENDS-JSON CLIENT-SENDS-OUTPUTS CLIENT-SENDS-VALUES")
def json_in_latin_1(original: Original, said: dict[str, Any]) -> bytes:
    """The JSON is written in ISO 8859-1."""
    return bytes(original(said)).decode().encode("latin-1", errors="replace")


@fault("request.written", misses="CLIENT-SENDS-JSON")
def json_with_a_comma_at_the_end(original: Original, said: dict[str, Any]) -> bytes:
    """The JSON has a comma behind its last member."""
    return bytes(original(said))[:-1] + b",}"


@fault("request.written", misses="CLIENT-SENDS-JSON")
def json_in_single_quotes(_original: Original, said: dict[str, Any]) -> bytes:
    """The JSON is what Python prints of it."""
    return str(said).encode()


@fault("request.json_elements", misses="CLIENT-SENDS-JSON")
def nan_as_json(original: Original, tensor: Tensor) -> list[Any]:
    """NaN and infinity are written into the JSON as bare words."""
    if tensor.datatype in ("FP32", "FP64"):
        return tensors.elements(tensor.datatype, tensor.data)
    return list(original(tensor))


@fault("request.written", misses="CLIENT-SENDS-MEMBER-ONCE")
def inputs_twice(original: Original, said: dict[str, Any]) -> bytes:
    """The member `inputs` is there twice."""
    first = json.dumps({"inputs": said["inputs"]}, ensure_ascii=False, separators=(",", ":")).encode()
    return first[:-1] + b"," + bytes(original(said))[1:]


@fault("request.described_input", misses="CLIENT-SENDS-MEMBERS")
def shape_as_strings(original: Original, tensor: Tensor) -> dict[str, Any]:
    """The sizes of a shape are strings."""
    return {**original(tensor), "shape": [str(size) for size in tensor.shape]}


@fault("request.described_input", misses="CLIENT-SENDS-MEMBERS")
def datatypes_of_numpy(original: Original, tensor: Tensor) -> dict[str, Any]:
    """Datatypes have the names of numpy."""
    return {**original(tensor), "datatype": tensor.datatype.lower().replace("fp", "float")}


@fault("request.described_input", misses="CLIENT-SENDS-MEMBERS")
def bytes_as_string(original: Original, tensor: Tensor) -> dict[str, Any]:
    """BYTES is called STRING, as in an example of the classification extension."""
    return {**original(tensor), **({"datatype": "STRING"} if tensor.datatype == "BYTES" else {})}


@fault("request.described_input", misses="CLIENT-SENDS-MEMBERS")
def shape_left_out(original: Original, tensor: Tensor) -> dict[str, Any]:
    """An input has no shape."""
    return {name: value for name, value in original(tensor).items() if name != "shape"}


@fault("request.described_output", misses="CLIENT-SENDS-MEMBERS")
def outputs_as_strings(_original: Original, output: RequestedOutput) -> str:
    """An output that is asked for is its name alone."""
    return output.name


@fault("request.document", misses="CLIENT-SENDS-MEMBERS")
def array_as_parameter(original: Original, asked: CallerRequest) -> dict[str, Any]:
    """A parameter of the request is an array, as `stop` of completions is elsewhere."""
    said = original(asked)
    return {**said, "parameters": {**said.get("parameters", {}), "stop": ["END"]}}


@fault("request.described_output", misses="CLIENT-SENDS-MEMBERS")
def object_as_parameter(original: Original, output: RequestedOutput) -> dict[str, Any]:
    """A parameter of a requested output is an object."""
    said = original(output)
    return {**said, "parameters": {**said.get("parameters", {}), "format": {"kind": "text"}}}


@fault("request.document", misses="CLIENT-SENDS-MEMBERS")
def id_as_number(original: Original, asked: CallerRequest) -> dict[str, Any]:
    """The id is a number."""
    said = original(asked)
    return {**said, "id": len(asked.id)} if asked.id else said


@fault("request.document", misses="CLIENT-SENDS-MEMBERS")
def inputs_by_name(original: Original, asked: CallerRequest) -> dict[str, Any]:
    """`inputs` is an object with a member for each input."""
    said = original(asked)
    return {**said, "inputs": {one["name"]: one for one in said["inputs"]}}


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


@fault("request.for_all_outputs", misses="CLIENT-SENDS-PARAMETERS")
def all_outputs_as_number(_original: Original, form: str) -> dict[str, Any]:
    """`binary_data_output` is 1 or 0."""
    return {"binary_data_output": int(form == "binary")}


@fault("request.for_all_outputs", misses="CLIENT-SENDS-OUTPUTS CLIENT-SENDS-PARAMETERS-PLACE")
def binary_data_for_all_outputs(_original: Original, form: str) -> dict[str, Any]:
    """`binary_data` stands in the parameters of the request."""
    return {"binary_data": form == "binary"}


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


@fault("request.document", misses="CLIENT-SENDS-OUTPUTS")
def outputs_left_out(original: Original, asked: CallerRequest) -> dict[str, Any]:
    """No output is ever listed."""
    return {name: value for name, value in original(asked).items() if name != "outputs"}


@fault("request.document", misses="CLIENT-SENDS-OUTPUTS")
def id_left_out(original: Original, asked: CallerRequest) -> dict[str, Any]:
    """The caller's id is not sent."""
    return {name: value for name, value in original(asked).items() if name != "id"}


@fault("request.document", misses="CLIENT-SENDS-OUTPUTS")
def all_outputs_ignored(original: Original, asked: CallerRequest) -> dict[str, Any]:
    """The form that the caller asks of all outputs is not sent."""
    return {name: value for name, value in original(asked).items() if name != "parameters"}


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


@fault("request.document", misses="CLIENT-SENDS-OUTPUTS")
def first_output_asked_for_only(original: Original, asked: CallerRequest) -> dict[str, Any]:
    """Of several outputs the first alone is asked for."""
    said = original(asked)
    return {**said, "outputs": said["outputs"][:1]} if "outputs" in said else said
