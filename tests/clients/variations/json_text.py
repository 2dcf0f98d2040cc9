"""Clients that write the JSON of a request in another way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.clients.alterations import Original, variation
from tests.clients.honest.caller import CallerRequest, RequestedOutput, Tensor


@variation("request.written")
def members_in_reverse(original: Original, said: dict[str, Any]) -> bytes:
    """The members of every object are in reverse order."""
    return bytes(original(_reversed(said)))


def _reversed(said: Any) -> Any:
    if isinstance(said, dict):
        return {name: _reversed(value) for name, value in reversed(said.items())}
    return [_reversed(one) for one in said] if isinstance(said, list) else said


@variation("request.written")
def white_space_everywhere(_original: Original, said: dict[str, Any]) -> bytes:
    """The JSON is indented, with blanks around colons."""
    return json.dumps(said, ensure_ascii=False, indent=2, separators=(" ,", " : ")).encode()


@variation("request.written")
def white_space_around_the_json(original: Original, said: dict[str, Any]) -> bytes:
    """White space stands before and behind the object, and is counted with it."""
    return b"\r\n " + bytes(original(said)) + b"\t\n\n"


@variation("request.written")
def minus_zero_without_fraction(original: Original, said: dict[str, Any]) -> bytes:
    """-0.0 is written as -0."""
    return bytes(original(said)).replace(b"-0.0,", b"-0,")


@variation("request.written")
def ascii_escapes(_original: Original, said: dict[str, Any]) -> bytes:
    """Whatever is no ASCII is escaped."""
    return json.dumps(said).encode()


@variation("request.written")
def slashes_escaped(original: Original, said: dict[str, Any]) -> bytes:
    """A slash is escaped, as PHP does."""
    return bytes(original(said)).replace(b"/", b"\\/")


@variation("request.arranged")
def nested_data(_original: Original, elements: list[Any], shape: Sequence[int]) -> Any:
    """`data` are nested as the shape says."""
    return nested(elements, shape)


def nested(elements: list[Any], shape: Sequence[int]) -> Any:
    """Return elements as nested arrays; one of rank 0 in an array all the same."""
    if len(shape) < 2:
        return elements
    length = len(elements) // shape[0] if shape[0] else 0
    return [nested(elements[place * length : (place + 1) * length], shape[1:]) for place in range(shape[0])]


@variation("request.document")
def model_name_in_the_json(original: Original, asked: CallerRequest) -> dict[str, Any]:
    """The JSON has `model_name`, as in an example of the documents."""
    return {"model_name": asked.model, **original(asked)}


@variation("request.document")
def parameters_of_its_own(original: Original, asked: CallerRequest) -> dict[str, Any]:
    """The request has parameters that no document defines."""
    said = original(asked)
    own = {"priority": 1, "x-trace": "on", "is_retry": False, "weight": 0.5, "stop": None}
    return {**said, "parameters": {**own, **said.get("parameters", {})}}


@variation("request.described_input")
def parameters_of_its_own_on_inputs(original: Original, tensor: Tensor) -> dict[str, Any]:
    """An input has parameters that no document defines."""
    said = original(tensor)
    return {**said, "parameters": {"content_type": "np", **said.get("parameters", {})}}


@variation("request.described_input", "request.described_output")
def empty_parameters(original: Original, one: Any) -> dict[str, Any]:
    """Inputs and outputs have `parameters`, also where there are none."""
    said = original(one)
    return {**said, "parameters": said.get("parameters", {})}


@variation("request.document")
def empty_parameters_of_the_request(original: Original, asked: CallerRequest) -> dict[str, Any]:
    """The request has `parameters`, also where there are none."""
    return {"parameters": {}, **original(asked)}


@variation("request.document")
def id_of_its_own(original: Original, asked: CallerRequest) -> dict[str, Any]:
    """Where the caller gives no id, the client does."""
    return {"id": f"{asked.model}-1", **original(asked)}


@variation("request.request")
def binary_data_output_for_binary_data(original: Original, asked: CallerRequest) -> Any:
    """Where all outputs are asked for in one form, the request says so instead of each output."""
    forms = {output.form for output in asked.outputs or ()}
    if asked.outputs is None or len(forms) != 1 or None in forms:
        return original(asked)
    outputs = tuple(RequestedOutput(output.name, None, output.classes) for output in asked.outputs)
    return original(CallerRequest(**{**vars(asked), "outputs": outputs, "all_outputs": forms.pop()}))


@variation("request.request")
def both_parameters(original: Original, asked: CallerRequest) -> Any:
    """Where outputs are asked for in a form, the request has the contrary for all others."""
    forms = [output.form for output in asked.outputs or ()]
    if not forms or None in forms or asked.all_outputs is not None:
        return original(asked)
    return original(CallerRequest(**{**vars(asked), "all_outputs": "json" if "binary" in forms else "binary"}))


@variation("request.described_output")
def false_said_aloud(original: Original, output: RequestedOutput) -> dict[str, Any]:
    """Classes that are asked for in no form are asked for as JSON, which is the default."""
    form = output.form or ("json" if output.classes is not None else None)
    return dict(original(RequestedOutput(output.name, form, output.classes)))


@variation("request.described_input")
def empty_data_beside_size(original: Original, tensor: Tensor) -> dict[str, Any]:
    """A binary input has an empty array as `data`, as structures with defaults are written."""
    said = original(tensor)
    return {**said, "data": []} if tensor.is_binary else dict(said)


@variation("request.document")
def inputs_behind_outputs(original: Original, asked: CallerRequest) -> dict[str, Any]:
    """`outputs` stands before `inputs`."""
    said = original(asked)
    return {**({"outputs": said["outputs"]} if "outputs" in said else {}), **said}


@variation("request.request")
def inputs_sorted(original: Original, asked: CallerRequest) -> Any:
    """Inputs are sent in the order of their names, JSON and data alike."""
    inputs = tuple(sorted(asked.inputs, key=lambda tensor: tensor.name))
    return original(CallerRequest(**{**vars(asked), "inputs": inputs}))


@variation("request.request")
def outputs_sorted(original: Original, asked: CallerRequest) -> Any:
    """Outputs are asked for in the order of their names."""
    outputs = None if asked.outputs is None else tuple(sorted(asked.outputs, key=lambda output: output.name))
    return original(CallerRequest(**{**vars(asked), "outputs": outputs}))


@variation("request.json_elements", datatypes="FP32 FP64")
def floats_in_exponents(original: Original, tensor: Tensor) -> list[Any]:
    """Whole numbers of floating-point tensors are written without a fraction."""
    found = original(tensor)
    return [int(one) if one.is_integer() and abs(one) < 1e15 and str(one) != "-0.0" else one for one in found]
