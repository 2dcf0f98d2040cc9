"""The extensions that can be judged, and the transports that carry them."""

from __future__ import annotations

from collections.abc import Mapping

HTTP, GRPC = "http", "grpc"
TRANSPORTS = (HTTP, GRPC)
# The areas of the requirements for clients, over each transport.
CLIENT, CLIENT_GRPC = "client", "client-grpc"

OVER_HTTP = ("binary_tensor_data", "raw", "classification")
OVER_GRPC = ("classification_grpc",)
EXTENSIONS = (*OVER_HTTP, *OVER_GRPC)
# The base protocol. It is judged with any extension, and if selected by name.
PROTOCOL = "protocol"
CHOICES = (*EXTENSIONS, PROTOCOL)
# Robustness: not an extension, and not part of any verdict. Judged only on request.
ROBUSTNESS = "robustness"

# extension -> its title within a sentence
TITLES: Mapping[str, str] = {
    PROTOCOL: "base protocol",
    "binary_tensor_data": "binary tensor data",
    "raw": "raw binary requests",
    "classification": "classification",
    "classification_grpc": "classification over gRPC",
}

# Values of `Row.needs`: an extension that a row needs besides that of its requirement.
BINARY = ("binary_tensor_data",)
RAW = ("raw",)
CLASSES = ("classification",)
CLASSES_OVER_GRPC = ("classification_grpc",)


def find_transport(area: str) -> str:
    """Return the transport over which the suite judges the requirements of an area."""
    return GRPC if area in (GRPC, CLIENT_GRPC) else HTTP
