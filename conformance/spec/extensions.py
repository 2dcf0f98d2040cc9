"""The extensions that can be judged, and the transports that carry them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

HTTP, GRPC = "http", "grpc"
TRANSPORTS = (HTTP, GRPC)
# The areas of the requirements for clients, over each transport.
CLIENT, CLIENT_GRPC = "client", "client-grpc"


@dataclass(frozen=True, slots=True)
class Extension:
    """An extension that can be judged; `discovery.offered_extensions` probes it.

    Attributes:
        listed_as: its name in server metadata; empty if servers do not list it.
        over_http: over gRPC, the name of the same extension over HTTP; empty for an extension over HTTP.
    """

    title: str
    model: str
    listed_as: str = ""
    over_http: str = ""


# Raw binary requests have no name in metadata, since one of the two documents of the binary tensor data extension does
# not define them: they are offered if they work. `python -m tests.support.pages` writes the names into the schemas.
TABLE: Mapping[str, Extension] = {
    "binary_tensor_data": Extension("binary tensor data", "that answers requests", "binary_tensor_data"),
    "raw": Extension("raw binary requests", "with one input"),
    "classification": Extension("classification", "with a numeric output", "classification"),
    "classification_grpc": Extension(
        "classification over gRPC", "with a numeric output", "classification", over_http="classification"
    ),
}
OVER_HTTP = tuple(name for name, extension in TABLE.items() if not extension.over_http)
OVER_GRPC = tuple(name for name, extension in TABLE.items() if extension.over_http)
EXTENSIONS = (*OVER_HTTP, *OVER_GRPC)
# The base protocol. It is judged with any extension, and if selected by name.
PROTOCOL = "protocol"
CHOICES = (*EXTENSIONS, PROTOCOL)
# Robustness: not an extension, and not part of any verdict. Judged only on request.
ROBUSTNESS = "robustness"
# The area of the requirements of packs: each pack is an extension of its own, with a verdict beside that of the run.
PACK = "pack"

# extension -> its title within a sentence
TITLES: Mapping[str, str] = {PROTOCOL: "base protocol"} | {name: one.title for name, one in TABLE.items()}

# Values of `Row.needs`: an extension that a row needs besides that of its requirement.
BINARY = ("binary_tensor_data",)
RAW = ("raw",)
CLASSES = ("classification",)
CLASSES_OVER_GRPC = ("classification_grpc",)


def find_transport(area: str) -> str:
    """Return the transport over which the suite judges the requirements of an area."""
    return GRPC if area in (GRPC, CLIENT_GRPC) else HTTP
