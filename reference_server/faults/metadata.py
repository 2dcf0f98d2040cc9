"""What the server says of itself and of its models, said wrongly."""

from __future__ import annotations

from typing import Any

from reference_server.faults import fault
from reference_server.models import Model

Described = dict[str, Any]

# --- the server ------------------------------------------------------------------------------------------------------


@fault("metadata.server", breaks="BIN-LISTED")
def binary_extension_not_listed(original: Any) -> Described:
    """Server metadata leave out binary_tensor_data, which the server offers."""
    document: Described = original()
    return document | {"extensions": ["classification"]}


@fault("metadata.server", breaks="CLS-LISTED")
def list_of_extensions_without_its_last(original: Any) -> Described:
    """Server metadata list all extensions but the last, by a loop that ends too early."""
    document: Described = original()
    return document | {"extensions": document["extensions"][:-1]}


@fault("metadata.server", breaks="OIP-SERVER-METADATA")
def server_without_a_name(original: Any) -> Described:
    """Server metadata have no name."""
    document: Described = original()
    return {member: value for member, value in document.items() if member != "name"}


# --- a model ---------------------------------------------------------------------------------------------------------


@fault("metadata.describe", breaks="OIP-MODEL-METADATA")
def model_without_a_platform(original: Any, model: Model) -> Described:
    """Model metadata have no platform."""
    return {member: value for member, value in original(model).items() if member != "platform"}


@fault("metadata.describe", breaks="OIP-MODEL-METADATA")
def outputs_described_as_the_inputs(original: Any, model: Model) -> Described:
    """Model metadata describe the inputs twice, once as outputs."""
    document: Described = original(model)
    return document | {"outputs": document["inputs"]}
