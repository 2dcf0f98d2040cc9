"""What can be certified, and what each demands: these extensions, every MUST of them judged and met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

PROFILES: Mapping[str, tuple[str, ...]] = {
    "binary": ("binary_tensor_data",),
    "binary+raw": ("binary_tensor_data", "raw"),
    "classification": ("classification",),
    "full": ("binary_tensor_data", "raw", "classification"),
}


def unmet(profile: str, requirements: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the MUSTs that a profile demands and that were not met, each with its verdict.

    Args:
        profile: a key of `PROFILES`.
        requirements: of a report.
    """
    demanded = {"protocol", *PROFILES[profile]}
    return [
        f"{entry['id']} is {entry['verdict'].replace('_', ' ')}"
        for entry in requirements
        if entry["level"] == "MUST" and entry["extension"] in demanded and entry["verdict"] != "pass"
    ]
