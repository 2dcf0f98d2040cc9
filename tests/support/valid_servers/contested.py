"""Points that the documents leave open, or settle in an unexpected place: limits of JSON, versions, both forms."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import fields
from typing import Any

from reference_server import tensors
from reference_server.errors import InferenceError
from reference_server.faults import Fault, steps
from reference_server.faults import fault as variation
from reference_server.faults.ended_servers import iterate_elements
from reference_server.faults.families import combine
from reference_server.models import Model
from reference_server.tensors import Tensor

# --- both forms ------------------------------------------------------------------------------------------------------


@variation(steps.ENCODE_OUTPUT, breaks="BIN-SIZE-WITHOUT-DATA")
def binary_outputs_have_data_too(original: Any, model: Any, wish: Any, tensor: Tensor) -> Any:
    """The server sends an output as binary data and as `data`, since the base protocol requires `data`."""
    entry, data = original(model, wish, tensor)
    if data is None or "data" in entry or wish.classes is not None:
        return entry, data
    try:
        return entry | {"data": tensors.encode_json(tensor)}, data
    except InferenceError:
        return entry, data


# --- characters ------------------------------------------------------------------------------------------------------


def refuse_characters(limit: str) -> Fault:
    """Return a server that refuses characters below a limit in strings of JSON data, in requests and in answers."""

    def has_some(data: Any) -> bool:
        if isinstance(data, list):
            return any(map(has_some, data))
        return isinstance(data, str) and any(letter < limit for letter in data)

    return combine(
        (),
        steps.DECODE_JSON.refuse(when=has_some),
        steps.ENCODE_JSON.refuse(when=lambda result: any(map(has_some, result))),
    )


strings_with_nul_are_refused = refuse_characters("\x01").says(
    "The server refuses NUL in strings of JSON data, in requests and in answers."
)
strings_with_control_characters_are_refused = refuse_characters(" ").says(
    "The server refuses control characters in strings of JSON data, in requests and in answers."
)


def has_wide_integers(data: Any) -> bool:
    """Whether JSON data have integers that a double may not hold."""
    return any(type(one) is int and abs(one) >= 2**53 for one in iterate_elements(data))


integers_beyond_2_53_are_refused = steps.DECODE_JSON.refuse(when=has_wide_integers).says(
    "The server parses JSON numbers as doubles, and refuses integers that a double may not hold."
)
integers_beyond_2_53_have_no_json = combine(
    "OIP-NUMBER-EXACT",
    integers_beyond_2_53_are_refused,
    steps.ENCODE_JSON.refuse(when=lambda result: has_wide_integers(list(result))),
).says("The server refuses integers that a double may not hold in JSON, in requests and in answers.")

# --- elements of another type ----------------------------------------------------------------------------------------

numbers_among_strings_are_octets = steps.DECODE_JSON.before(
    (),
    data=lambda data: [chr(item) if type(item) is int and 0 <= item < 128 else item for item in data],
    when=lambda datatype, data: datatype == "BYTES" and isinstance(data, list),
).says("The server converts an integer in JSON data of BYTES to the byte of this value.")

# --- versions --------------------------------------------------------------------------------------------------------

OLDER = "0"
_names_older: ContextVar[bool] = ContextVar("_names_older", default=False)


class _Older(Model):
    """An earlier version of a model, which returns only zeros and empty strings."""

    def run(self, inputs: Any) -> dict[str, Tensor]:
        """Return the outputs."""
        produced = super().run(inputs)
        return {name: _cleared(tensor) for name, tensor in produced.items()}


def _cleared(tensor: Tensor) -> Tensor:
    elements = tensor.elements.copy()
    elements[:] = b"" if tensor.datatype == "BYTES" else 0
    return Tensor(tensor.datatype, tensor.shape, elements)


def _older(model: Model) -> Model:
    return _Older(**{each.name: getattr(model, each.name) for each in fields(model)})


@variation(steps.DESCRIBE_MODEL, steps.FIND_MODEL, steps.BUILD, steps.ENCODE)
def older_versions_compute_something_else(original: Any, *arguments: Any) -> Any:
    """Each model has an older version, listed first, with other results; the newer version is the default."""
    first = arguments[0]
    if len(arguments) == 3:  # response.build
        token = _names_older.set(isinstance(first, _Older))
        try:
            return original(*arguments)
        finally:
            _names_older.reset(token)
    if isinstance(first, Model):
        return original(first) | {"versions": [OLDER, "1"]}
    if len(arguments) == 1:
        return original(first | {"model_version": OLDER} if _names_older.get() and "model_version" in first else first)
    return _found(original, *arguments)


def _found(original: Any, service: Any, http: Any) -> Model:
    if http.path_params.get("version") != OLDER:
        model: Model = original(service, http)
        return model
    http.path_params["version"] = "1"
    return _older(original(service, http))


@variation(steps.CALL_MODEL_METADATA, steps.FIND_CALLED_MODEL, steps.MODEL_INFER)
def grpc_older_versions_take_other_inputs(original: Any, models: Any, *arguments: Any) -> Any:
    """Each model has an older version, listed first, with other inputs; the newer version is the default."""
    if len(arguments) == 2:  # grpc_methods.find_model
        name, version = arguments
        return original(models, name, "" if version == OLDER else version)
    (message,) = arguments
    if getattr(message, "model_version", "") == OLDER:
        raise InferenceError("this version takes other inputs")
    answer = original(models, message)
    if hasattr(answer, "versions"):
        answer.versions[:] = [OLDER, "1"]
    return answer


earlier_versions_are_not_loaded = steps.FIND_MODEL.refuse(
    when=lambda result: result is not list(result.versions.values())[-1], status=404
).says("The metadata of a model list all versions, but the server has loaded only the last one.")
grpc_earlier_versions_are_not_loaded = steps.FIND_CALLED_MODEL.refuse(
    when=lambda result: result is not list(result.versions.values())[-1], status=404
).says("The metadata of a model list all versions, but the server has loaded only the last one.")
requests_without_a_version_get_the_first = steps.FIND_MODEL.after(
    (), lambda model: next(iter(model.versions.values())), when=lambda http: "version" not in http.path_params
).says("The server answers a request without a version by the first version of the model, not by the last.")
grpc_calls_without_a_version_get_the_first = steps.FIND_CALLED_MODEL.after(
    (), lambda model: next(iter(model.versions.values())), when=lambda version: not version
).says("The server answers a call without a version by the first version of the model, not by the last.")
