"""Registries made by hand: folders that are sealed as `certify` seals them, around small reports.

Their recordings show nothing, so that who reads them has to believe them: the fixture `believed` of
`tests/registry`.
"""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any

from conformance.certification import sealing
from conformance.certification.manifest import Manifest
from tests.support.made_manifests import LAB_KEY, VENDOR_KEY, make_full_manifest
from tests.support.made_reports import CONFORMANT

POLICY = """\
title = "Conformance registry"
url = "https://registry.example/site"
[[suites]]
version = "0.1.0"
[vendors.V]
keys = ["{vendor}"]
[third_parties.L]
keys = ["{lab}"]
"""


def make_registry(root: Path, policy: str = POLICY, revoked: str = "") -> Path:
    """Make the registry's own files; return its root."""
    made = make_full_manifest()
    assert made.third_party is not None
    root.mkdir(exist_ok=True)
    (root / "registry.toml").write_text(
        policy.replace("{vendor}", made.key["id"]).replace("{lab}", made.third_party["key"]["id"])
    )
    if revoked:
        (root / "revoked.toml").write_text(revoked)
    return root


def make_certification(path: Path, report: dict[str, Any] = CONFORMANT, **changes: Any) -> Path:
    """Make a certification; return its folder. What differs in `changes` has another recording, too."""
    made: Manifest = make_full_manifest(**changes)
    path.mkdir(parents=True)
    recording = path.parent / f"{path.name}.xz"
    recording.write_bytes(lzma.compress(repr(sorted(changes.items())).encode()))
    sealing.seal(path, made, report, recording, VENDOR_KEY, LAB_KEY if made.third_party else None)
    recording.unlink()
    return path
