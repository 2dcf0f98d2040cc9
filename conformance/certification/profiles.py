"""What can be certified, and what each demands: these extensions, every MUST of them judged and met.

A server that meets every MUST of exchange and transport, and not all of the others, can be certified as interoperable.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from conformance.report.findings import missing_role
from conformance.roles import roles
from conformance.terms.outcome import CONFORMANT, INTEROPERABLE, ReasonKind
from conformance.terms.verdict import OF_INTEROPERABILITY

PROFILES: Mapping[str, tuple[str, ...]] = {
    "binary": ("binary_tensor_data",),
    "binary+raw": ("binary_tensor_data", "raw"),
    "classification": ("classification",),
    "full": ("binary_tensor_data", "raw", "classification"),
}


# What is certified beside a profile where the server's gRPC address is given, and the area of its requirements.
OVER_GRPC, GRPC_AREA = "classification_grpc", "grpc"


def extensions(profile: str, *, grpc: bool) -> list[str]:
    """Return what a run under a profile judges, over gRPC too or not."""
    return [*PROFILES[profile], *([OVER_GRPC] if grpc else [])]


def standing(profile: str, report: Mapping[str, Any]) -> str | None:
    """Return the most that a report can be certified as: conformant, or else interoperable; None: as neither."""
    if report["verdict"] == CONFORMANT and not unmet(profile, report):
        return CONFORMANT
    return INTEROPERABLE if report["interoperable"] and not unmet(profile, report, INTEROPERABLE) else None


def unmet(profile: str, report: Mapping[str, Any], standing: str = CONFORMANT) -> list[str]:
    """Return what a profile demands and a report does not show: roles that no model fills, MUSTs that were not met.

    A role counts because what it alone would show is otherwise unseen: who leaves out a model hides what it gets wrong.
    A MUST of which every row needs an extension that the profile does not have is not demanded.

    Args:
        profile: a key of `PROFILES`.
        report: of a run, as `schemas/report.schema.json` has it.
        standing: what is to be certified; `interoperable` demands the MUSTs of exchange and transport alone.
    """
    return [*_missing_roles(report), *_unmet_musts(profile, report, standing)]


def _missing_roles(report: Mapping[str, Any]) -> list[str]:
    missing = dict.fromkeys(role for row in report["rows"] if (role := missing_role(row)) is not None)
    optional = {name for name, role in roles.load().items() if role.is_optional}
    return [f"no model fills the role {name}" for name in missing if name not in optional]


def _unmet_musts(profile: str, report: Mapping[str, Any], standing: str) -> list[str]:
    grpc = OVER_GRPC in report["options"]["extensions"]
    demanded = {"protocol", *extensions(profile, grpc=grpc)}
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for row in report["rows"]:
        for requirement in row["requirements"]:
            rows.setdefault(requirement, []).append(row)
    return [
        f"{entry['id']} is {entry['verdict'].replace('_', ' ')}"
        for entry in report["requirements"]
        if entry["level"] == "MUST"
        and (standing == CONFORMANT or entry["concern"] in OF_INTEROPERABILITY)
        and entry["extension"] in demanded
        and (grpc or entry["area"] != GRPC_AREA)
        and entry["verdict"] != "pass"
        and not (entry["verdict"] == "not_applicable" and _need_more(rows.get(entry["id"], []), demanded))
    ]


def _need_more(rows: Sequence[Mapping[str, Any]], demanded: Collection[str]) -> bool:
    """Say whether every row waits for an extension that the profile does not have, though others may."""
    beyond = {name for name in PROFILES["full"] if name not in demanded}
    return bool(rows) and all(_awaited_extension(row) in beyond for row in rows)


def _awaited_extension(row: Mapping[str, Any]) -> str | None:
    """Return the extension for want of which a row does not apply, or None."""
    reason = row.get("reason")
    if reason is None:
        return None
    # What has no JSON form waits for binary data.
    awaited = {ReasonKind.NOT_OFFERED: str(reason["subject"]), ReasonKind.NO_JSON_FORM: "binary_tensor_data"}
    return awaited.get(reason["kind"])
