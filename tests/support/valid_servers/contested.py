"""Points that the documents leave open, or settle in an unexpected place: limits of JSON, versions, both forms."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import fields
from typing import Any

from reference_server import tensors
from reference_server.errors import InferenceError
from reference_server.faults import fault as variation
from reference_server.models import Model
from reference_server.tensors import Tensor

# --- both forms ------------------------------------------------------------------------------------------------------


@variation("response.encode_output", breaks="BIN-SIZE-WITHOUT-DATA")
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


def _refuse(strings: Any, limit: str) -> None:
    if any(isinstance(text, str) and any(letter < limit for letter in text) for text in strings):
        raise InferenceError("a string has a character that is not supported")


def _flat(data: Any) -> Any:
    return [one for item in data for one in _flat(item)] if isinstance(data, list) else [data]


@variation("tensors.decode_json", "tensors.encode_json")
def strings_with_nul_are_refused(original: Any, *arguments: Any) -> Any:
    """The server refuses NUL in strings of JSON data, in requests and in answers."""
    return _within(original, arguments, "\x01")


@variation("tensors.decode_json", "tensors.encode_json")
def strings_with_control_characters_are_refused(original: Any, *arguments: Any) -> Any:
    """The server refuses control characters in strings of JSON data, in requests and in answers."""
    return _within(original, arguments, " ")


@variation("tensors.decode_json")
def integers_beyond_2_53_are_refused(original: Any, datatype: str, shape: Any, data: Any) -> Any:
    """The server parses JSON numbers as doubles, and refuses integers that a double may not hold."""
    if any(type(one) is int and abs(one) >= 2**53 for one in _flat(data)):
        raise InferenceError("an integer is beyond 2^53")
    return original(datatype, shape, data)


def _within(original: Any, arguments: Any, limit: str) -> Any:
    if len(arguments) > 1:
        _refuse(_flat(arguments[2]), limit)
        return original(*arguments)
    found = original(*arguments)
    _refuse(_flat(found), limit)
    return found


# --- elements of another type ----------------------------------------------------------------------------------------


@variation("tensors.decode_json")
def numbers_among_strings_are_octets(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """The server converts an integer in JSON data of BYTES to the byte of this value."""
    if datatype == "BYTES" and isinstance(data, list):
        data = [chr(item) if type(item) is int and 0 <= item < 128 else item for item in data]
    found: Tensor = original(datatype, shape, data)
    return found


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


@variation("metadata.describe_model", "app.Service.find_model", "response.build", "response.encode")
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


@variation("grpc_methods.model_metadata", "grpc_methods.find_model", "grpc_methods.model_infer")
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
