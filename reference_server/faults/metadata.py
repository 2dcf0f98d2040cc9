"""What the server says of itself and of its models, said wrongly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reference_server.faults import fault
from reference_server.models import Model
from reference_server.signature import TensorSpec

Described = dict[str, Any]

# --- the server ------------------------------------------------------------------------------------------------------


@fault("metadata.server", breaks="BIN-LISTED")
def binary_extension_not_listed(original: Any) -> Described:
    """Server metadata leave out binary_tensor_data, which the server offers."""
    document: Described = original()
    return document | {"extensions": ["classification"]}


@fault("metadata.server", breaks="BIN-LISTED")
def extension_names_with_hyphens(original: Any) -> Described:
    """Server metadata write the names of extensions with hyphens."""
    document: Described = original()
    return document | {"extensions": [name.replace("_", "-") for name in document["extensions"]]}


@fault("metadata.server", breaks="CLS-LISTED")
def list_of_extensions_without_its_last(original: Any) -> Described:
    """Server metadata list all extensions but the last, by a loop that ends too early."""
    document: Described = original()
    return document | {"extensions": document["extensions"][:-1]}


@fault("metadata.server", breaks=("OIP-SERVER-METADATA", "BIN-LISTED", "CLS-LISTED"))
def extensions_as_one_string(original: Any) -> Described:
    """Server metadata give the extensions as one string with commas."""
    document: Described = original()
    return document | {"extensions": ",".join(document["extensions"])}


@fault("metadata.server", breaks=("OIP-SERVER-METADATA", "BIN-LISTED", "CLS-LISTED"))
def extensions_as_objects(original: Any) -> Described:
    """Server metadata give each extension as an object with a name."""
    document: Described = original()
    return document | {"extensions": [{"name": name} for name in document["extensions"]]}


@fault("metadata.server", breaks="OIP-SERVER-METADATA")
def list_of_extensions_ended_by_null(original: Any) -> Described:
    """The list of extensions ends with null, like a table in C."""
    document: Described = original()
    return document | {"extensions": [*document["extensions"], None]}


@fault("metadata.server", breaks="OIP-SERVER-METADATA")
def server_version_as_a_number(original: Any) -> Described:
    """Server metadata give the version as a number."""
    document: Described = original()
    return document | {"version": 2.0}


@fault("metadata.server", breaks="OIP-SERVER-METADATA")
def server_without_a_name(original: Any) -> Described:
    """Server metadata have no name."""
    document: Described = original()
    return {member: value for member, value in document.items() if member != "name"}


# --- a model ---------------------------------------------------------------------------------------------------------


@fault("metadata.describe", breaks="OIP-MODEL-METADATA")
def model_without_a_name(original: Any, model: Model) -> Described:
    """Model metadata call the model `model_name`, as inference answers do."""
    document: Described = original(model)
    return {"model_name" if member == "name" else member: value for member, value in document.items()}


@fault("metadata.describe", breaks="OIP-MODEL-METADATA")
def model_without_a_platform(original: Any, model: Model) -> Described:
    """Model metadata have no platform."""
    return {member: value for member, value in original(model).items() if member != "platform"}


@fault("metadata.describe", breaks="OIP-NULL")
def versions_of_a_model_are_null(original: Any, model: Model) -> Described:
    """Model metadata have the versions null, since none can be asked for."""
    return {**original(model), "versions": None}


@fault("metadata.describe", breaks="OIP-MODEL-METADATA")
def outputs_described_as_the_inputs(original: Any, model: Model) -> Described:
    """Model metadata describe the inputs twice, once as outputs."""
    document: Described = original(model)
    return document | {"outputs": document["inputs"]}


_described: dict[str, Described] = {}


@fault("metadata.describe", breaks="OIP-MODEL-METADATA")
def every_model_described_as_the_first(original: Any, model: Model) -> Described:
    """Model metadata are cached without the model's name in the key."""
    return _described.setdefault("metadata", original(model))


@fault("metadata.describe", breaks="OIP-MODEL-METADATA")
def tensors_described_by_name(original: Any, model: Model) -> Described:
    """Model metadata describe inputs and outputs in an object by their names instead of an array."""
    document: Described = original(model)
    return document | {side: {item["name"]: item for item in document[side]} for side in ("inputs", "outputs")}


def _redescribed(
    original: Any, model: Model, specs: Iterable[TensorSpec], member: str, describe: Any
) -> list[Described]:
    """Return described tensors with one member described another way."""
    return [item | {member: describe(item[member])} for item in original(model, specs)]


@fault("metadata.tensor_list", breaks="OIP-MODEL-METADATA")
def dimensions_described_as_strings(original: Any, model: Model, specs: Iterable[TensorSpec]) -> list[Described]:
    """Model metadata write dimensions as strings, as Protocol Buffers write 64-bit integers in JSON."""
    return _redescribed(original, model, specs, "shape", lambda shape: [str(extent) for extent in shape])


@fault("metadata.tensor_list", breaks="OIP-MODEL-METADATA")
def variable_dimensions_described_as_null(original: Any, model: Model, specs: Iterable[TensorSpec]) -> list[Described]:
    """Model metadata write a variable dimension as null."""
    return _redescribed(
        original, model, specs, "shape", lambda shape: [None if extent < 0 else extent for extent in shape]
    )


@fault("metadata.tensor_list", breaks="OIP-MODEL-METADATA")
def variable_dimensions_described_as_0(original: Any, model: Model, specs: Iterable[TensorSpec]) -> list[Described]:
    """Model metadata write a variable dimension as 0."""
    return _redescribed(original, model, specs, "shape", lambda shape: [max(extent, 0) for extent in shape])


@fault("metadata.tensor_list", breaks="OIP-MODEL-METADATA")
def shapes_described_in_reverse(original: Any, model: Model, specs: Iterable[TensorSpec]) -> list[Described]:
    """Model metadata give the dimensions last to first, as a column-major library has them."""
    return _redescribed(original, model, specs, "shape", lambda shape: shape[::-1])


@fault("metadata.tensor_list", breaks="OIP-MODEL-METADATA", large=True)
def shape_of_a_scalar_left_out(original: Any, model: Model, specs: Iterable[TensorSpec]) -> list[Described]:
    """Model metadata have no shape where it would be an empty array."""
    return [{k: v for k, v in item.items() if k != "shape" or v} for item in original(model, specs)]


@fault("metadata.tensor_list", breaks="OIP-MODEL-METADATA")
def datatypes_described_in_names_of_a_framework(
    original: Any, model: Model, specs: Iterable[TensorSpec]
) -> list[Described]:
    """Model metadata name datatypes as the server's own configuration does: TYPE_INT32."""
    return _redescribed(original, model, specs, "datatype", lambda datatype: f"TYPE_{datatype}")


@fault("metadata.tensor_list", breaks="OIP-MODEL-METADATA")
def tensor_names_described_in_lower_case(original: Any, model: Model, specs: Iterable[TensorSpec]) -> list[Described]:
    """Model metadata give the names of tensors in lower case."""
    return _redescribed(original, model, specs, "name", str.lower)
