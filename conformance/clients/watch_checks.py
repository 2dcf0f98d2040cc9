"""What is judged of clients that are watched: a check for each requirement that a request alone can miss."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from conformance.spec import ledger
from conformance.spec.ledger import GRPC_SUFFIX, Requirement

_CHECK: Final = "client.watched-"
_GRPC_SUFFIX: Final = "-over-grpc"
CLAIM: Final = "Every request of this client that has to do with it meets it."

# What only the caller knows, or somebody who sees what the caller is given, is not here.
CLAIMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "CLIENT-SENDS-POST": "request-is-a-post-to-its-model",
        "CLIENT-SENDS-WHOLE": "body-is-as-long-as-it-says",
        "CLIENT-SENDS-CODING": "announced-coding-is-applied",
        "CLIENT-SENDS-CONTENT-TYPE": "content-type-fits-the-form",
        "CLIENT-SENDS-JSON": "json-is-valid",
        "CLIENT-SENDS-MEMBER-ONCE": "members-stand-once",
        "CLIENT-SENDS-MEMBERS": "request-has-its-members",
        "CLIENT-SENDS-PARAMETERS": "parameters-have-their-types",
        "CLIENT-SENDS-PARAMETERS-PLACE": "parameters-stand-in-their-place",
        "CLIENT-SENDS-CLASSIFICATION": "classification-is-a-count",
        "CLIENT-SENDS-CLASSIFICATION-PLACE": "classification-stands-in-its-place",
        "CLIENT-SENDS-DATA": "data-fit-the-shape",
        "CLIENT-SENDS-ELEMENTS": "elements-fit-the-datatype",
        "CLIENT-SENDS-BOOL-JSON": "bool-elements-are-true-or-false",
        "CLIENT-SENDS-FP16": "half-floats-are-binary",
        "CLIENT-SENDS-HEADER": "binary-data-have-the-header",
        "CLIENT-SENDS-HEADER-LENGTH": "header-counts-the-json",
        "CLIENT-SENDS-HEADER-ON-JSON": "header-without-binary-data-counts-the-json",
        "CLIENT-SENDS-SIZE": "sizes-fit-shape-and-datatype",
        "CLIENT-SENDS-SIZES-FILL": "sizes-fill-the-body",
        "CLIENT-SENDS-ORDER": "binary-data-follow-the-json",
        "CLIENT-SENDS-BYTES": "bytes-elements-have-their-lengths",
        "CLIENT-SENDS-BOOL": "bool-elements-are-0-or-1",
        "CLIENT-SENDS-DATA-OR-SIZE": "an-input-has-data-or-a-size",
        "CLIENT-SENDS-RAW": "raw-request-is-one-tensor",
        "CLIENT-SENDS-ONE-FORM": "contents-have-one-form",
    }
)


def get_check_id(requirement: str) -> str:
    """Return the id of the check that judges a requirement."""
    name = requirement.removesuffix(GRPC_SUFFIX)
    return f"{_CHECK}{CLAIMS[name]}{_GRPC_SUFFIX if requirement != name else ''}"


def is_watched(check: str) -> bool:
    """Say whether a check is one of clients that are watched."""
    return check.startswith(_CHECK)


def list_requirements(transport: str) -> list[Requirement]:
    """Return what is judged over a transport, in the order of the ledger."""
    watched = [entry for entry in ledger.load_for_party(ledger.Party.CLIENT) if entry.name in CLAIMS]
    return [entry for entry in watched if entry.transport == transport]
