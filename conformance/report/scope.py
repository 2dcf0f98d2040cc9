"""Describes the scope of a report: the judged transports, and the extensions whose MUSTs are judged."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.roles.declared_limits import describe_limits
from conformance.spec.extensions import EXTENSIONS, GRPC, HTTP, find_transport
from conformance.spec.ledger import Party
from conformance.spec.report import Report, find_party
from conformance.spec.tally import is_judged
from conformance.spec.verdict import describe_verdict

TRANSPORT_NAMES: Mapping[str, str] = {HTTP: "HTTP", GRPC: "gRPC"}


def list_transports(report: Report) -> list[str]:
    """Return the names of the transports over which a report has judged requirements."""
    judged = {find_transport(entry["area"]) for entry in report["requirements"] if is_judged(entry)}
    return [name for transport, name in TRANSPORT_NAMES.items() if transport in judged]


def describe_transports(report: Report) -> str:
    """Return the judged transports in two or three words; empty if nothing is judged."""
    names = list_transports(report)
    return f"{names[0]} alone" if len(names) == 1 else " and ".join(names)


def describe_scope(report: Report) -> str:
    """Return a sentence with the judged transports and extensions, which decide how many MUSTs apply."""
    transports = describe_transports(report)
    if not transports:
        return ""
    offered = [name for name in EXTENSIONS if name in report["extensions"] and report["extensions"][name]["offered"]]
    parts = ["the base protocol", *map(_name_extension, offered)]
    listed = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    return f"Judged over {transports}{_explain_transports(report)}: {listed}."


def describe_report_verdict(report: Report) -> str:
    """Return the verdict of a report with the declared limits, such as "conformant without BYTES"."""
    return describe_verdict(report["verdict"], report["interoperable"], describe_limits_of(report))


def describe_limits_of(report: Report) -> str:
    """Return what limits the verdict, in words: the declared limits of the target, and that only gRPC is judged."""
    declared = describe_limits(report["target"].get("limits"))
    return " ".join(filter(None, (declared, "over gRPC alone" if covers_grpc_alone(report) else "")))


def covers_grpc_alone(report: Report) -> bool:
    """Whether a server is judged over gRPC, and nothing of it over HTTP."""
    return list_transports(report) == [TRANSPORT_NAMES[GRPC]] and find_party(report) is Party.SERVER


def _explain_transports(report: Report) -> str:
    """Return ", " and the reason why only gRPC is judged; empty if HTTP is judged, or for a client."""
    if not covers_grpc_alone(report):
        return ""
    is_over_http = report["target"]["url"].startswith("http")
    return ", since it offers none of the extensions over HTTP" if is_over_http else ", since the run had no HTTP URL"


def _name_extension(name: str) -> str:
    own = {"raw": "raw binary requests", "classification_grpc": "classification over gRPC"}
    return own.get(name, name.replace("_", " "))
