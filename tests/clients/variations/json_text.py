"""Clients that write the JSON of a request in another way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.clients import steps
from tests.clients.alterations import Original, variation
from tests.clients.honest.caller import CallerRequest, RequestedOutput, Tensor


def _reversed(said: Any) -> Any:
    if isinstance(said, dict):
        return {name: _reversed(value) for name, value in reversed(said.items())}
    return [_reversed(one) for one in said] if isinstance(said, list) else said


members_in_reverse = steps.WRITTEN.before("", said=_reversed).says("The members of every object are in reverse order.")
white_space_everywhere = steps.WRITTEN.instead(
    "", lambda said: json.dumps(said, ensure_ascii=False, indent=2, separators=(" ,", " : ")).encode()
).says("The JSON is indented, with blanks around colons.")
white_space_around_the_json = steps.WRITTEN.after("", lambda made: b"\r\n " + made + b"\t\n\n").says(
    "White space stands before and behind the object, and is counted with it."
)
minus_zero_without_fraction = steps.WRITTEN.after("", lambda made: made.replace(b"-0.0,", b"-0,")).says(
    "-0.0 is written as -0."
)
ascii_escapes = steps.WRITTEN.instead("", lambda said: json.dumps(said).encode()).says(
    "Whatever is no ASCII is escaped."
)
slashes_escaped = steps.WRITTEN.after("", lambda made: made.replace(b"/", b"\\/")).says(
    "A slash is escaped, as PHP does."
)


def nested(elements: list[Any], shape: Sequence[int]) -> Any:
    """Return elements as nested arrays; one of rank 0 in an array all the same."""
    if len(shape) < 2:
        return elements
    length = len(elements) // shape[0] if shape[0] else 0
    return [nested(elements[place * length : (place + 1) * length], shape[1:]) for place in range(shape[0])]


@variation("request.arranged")
def nested_data(_original: Original, elements: list[Any], shape: Sequence[int]) -> Any:
    """`data` are nested as the shape says."""
    return nested(elements, shape)


model_name_in_the_json = steps.DOCUMENT.after("", lambda said, asked: {"model_name": asked.model, **said}).says(
    "The JSON has `model_name`, as in an example of the documents."
)


@variation("request.document")
def parameters_of_its_own(original: Original, asked: CallerRequest) -> dict[str, Any]:
    """The request has parameters that no document defines."""
    said = original(asked)
    own = {"priority": 1, "x-trace": "on", "is_retry": False, "weight": 0.5, "stop": None}
    return {**said, "parameters": {**own, **said.get("parameters", {})}}


parameters_of_its_own_on_inputs = steps.DESCRIBED_INPUT.after(
    "", lambda said: {**said, "parameters": {"content_type": "np", **said.get("parameters", {})}}
).says("An input has parameters that no document defines.")


@variation("request.described_input", "request.described_output")
def empty_parameters(original: Original, one: Any) -> dict[str, Any]:
    """Inputs and outputs have `parameters`, also where there are none."""
    said = original(one)
    return {**said, "parameters": said.get("parameters", {})}


empty_parameters_of_the_request = steps.DOCUMENT.after("", lambda said: {"parameters": {}, **said}).says(
    "The request has `parameters`, also where there are none."
)
id_of_its_own = steps.DOCUMENT.after("", lambda said, asked: {"id": f"{asked.model}-1", **said}).says(
    "Where the caller gives no id, the client does."
)


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


empty_data_beside_size = steps.DESCRIBED_INPUT.after(
    "", lambda said, tensor: {**said, "data": []} if tensor.is_binary else dict(said)
).says("A binary input has an empty array as `data`, as structures with defaults are written.")
inputs_behind_outputs = steps.DOCUMENT.after(
    "", lambda said: {**({"outputs": said["outputs"]} if "outputs" in said else {}), **said}
).says("`outputs` stands before `inputs`.")


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
