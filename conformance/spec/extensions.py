"""The extensions that can be judged, and the transports that carry them."""

from __future__ import annotations

HTTP, GRPC = "http", "grpc"
TRANSPORTS = (HTTP, GRPC)
# The areas of what clients owe, over each transport.
CLIENT, CLIENT_GRPC = "client", "client-grpc"

OVER_HTTP = ("binary_tensor_data", "raw", "classification")
OVER_GRPC = ("classification_grpc",)
EXTENSIONS = (*OVER_HTTP, *OVER_GRPC)
# What lies beneath them. It is judged with any of them, and where it is asked for by name.
PROTOCOL = "protocol"
CHOICES = (*EXTENSIONS, PROTOCOL)
# What a server withstands: no extension, and no part of any verdict. Judged only where it is asked for.
ROBUSTNESS = "robustness"

# What a row needs beside the extension of its requirement (`Row.needs`), where that is one.
BINARY = ("binary_tensor_data",)
RAW = ("raw",)
CLASSES = ("classification",)
CLASSES_OVER_GRPC = ("classification_grpc",)


def find_transport(area: str) -> str:
    """Return the transport that the requirements of an area are about."""
    return GRPC if area in (GRPC, CLIENT_GRPC) else HTTP
