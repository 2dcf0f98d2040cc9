"""What can be certified, and what each demands: these extensions, every MUST of them judged and met."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from conformance import roles
from conformance.report.result import NO_MODEL

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


def unmet(profile: str, report: Mapping[str, Any]) -> list[str]:
    """Return what a profile demands and a report does not show: roles that no model fills, MUSTs that were not met.

    A role counts because what it alone would show is otherwise unseen: who leaves out a model hides what it gets wrong.
    A MUST of which every row needs an extension that the profile does not have is not demanded.

    Args:
        profile: a key of `PROFILES`.
        report: of a run, as `schemas/report.schema.json` has it.
    """
    return [*_missing_roles(report), *_unmet_musts(profile, report)]


def _missing_roles(report: Mapping[str, Any]) -> list[str]:
    messages = dict.fromkeys(row["message"] for row in report["checks"])
    missing = [message.removeprefix(NO_MODEL) for message in messages if message.startswith(NO_MODEL)]
    optional = {name for name, role in roles.load().items() if role.is_optional}
    return [f"no model fills the role {name}" for name in missing if name not in optional]


def _unmet_musts(profile: str, report: Mapping[str, Any]) -> list[str]:
    grpc = OVER_GRPC in report["options"]["extensions"]
    demanded = {"protocol", *extensions(profile, grpc=grpc)}
    beyond = tuple(f"{name} is not offered" for name in PROFILES["full"] if name not in demanded)
    reasons: dict[str, set[str]] = {}
    for row in report["checks"]:
        for requirement in row["requirements"]:
            reasons.setdefault(requirement, set()).add(row["message"])
    return [
        f"{entry['id']} is {entry['verdict'].replace('_', ' ')}"
        for entry in report["requirements"]
        if entry["level"] == "MUST"
        and entry["extension"] in demanded
        and (grpc or entry["area"] != GRPC_AREA)
        and entry["verdict"] != "pass"
        and not (entry["verdict"] == "not_applicable" and _begin_all(reasons.get(entry["id"], {""}), beyond))
    ]


def _begin_all(messages: Iterable[str], beginnings: tuple[str, ...]) -> bool:
    return bool(beginnings) and all(message.startswith(beginnings) for message in messages)
