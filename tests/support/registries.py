"""Registries and manifests made by hand: folders are sealed as `certify` seals them, around small reports.

Their recordings show nothing, so that who reads them has to believe them: the fixture `believed` of
`tests/registry`.
"""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from conformance.certification import sealing
from conformance.certification.manifest import NOTE, PAGES, RECORDING, REPORT, Manifest
from conformance.spec.report import Report
from tests.support.made_reports import CONFORMANT

DIGEST = "0" * 64
FILES = dict.fromkeys((REPORT, RECORDING, *PAGES, NOTE), DIGEST)
VENDOR_KEY, LAB_KEY = (Ed25519PrivateKey.from_private_bytes(bytes([number] * 32)) for number in (1, 2))
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


def make_manifest(**changes: Any) -> Manifest:
    """Return the manifest of a product of which the vendor says nothing that nobody demands."""
    members: dict[str, Any] = {
        "vendor": "V", "product": "P", "product_version": "1", "contact": "c@d", "profile": "full",
        "suite": {"version": "0.1.0", "digest": DIGEST, "ledger": "0" * 16},
        "started": "2026-01-02T03:04:05+00:00", "finished": "2026-01-02T03:05:05+00:00", "expires": "2027-01-02",
        "key": sealing.describe_key(VENDOR_KEY, lasting=False), "files": FILES,
    }  # fmt: skip
    return Manifest(**members | changes)


def make_full_manifest(**changes: Any) -> Manifest:
    """Return one with every member."""
    members: dict[str, Any] = {
        "product_url": "https://example.com/p", "licence": "Apache-2.0", "container": f"example/p:1@sha256:{DIGEST}",
        "version_command": "p --version", "alias_of": {"name": "q", "version": "2", "reason": "P is built on q"},
        "key": sealing.describe_key(VENDOR_KEY, lasting=True),
        "third_party": {"name": "L", "contact": "l@m", "key": sealing.describe_key(LAB_KEY, lasting=True)},
        "placements": {"multi": {"model": "m", "version": "3", "inputs": {"IN_BOOL": "b"}, "outputs": {}}},
        "models": {"iris": {"inputs": {"X": {"datatype": "BYTES", "shape": [1], "data": ["a"]}}}},
    }  # fmt: skip
    return make_manifest(**members | changes)


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


def make_certification(path: Path, report: Report = CONFORMANT, **changes: Any) -> Path:
    """Make a certification; return its folder. What differs in `changes` has another recording, too."""
    made: Manifest = make_full_manifest(**changes)
    path.mkdir(parents=True)
    recording = path.parent / f"{path.name}.xz"
    recording.write_bytes(lzma.compress(repr(sorted(changes.items())).encode()))
    sealing.seal(path, made, report, recording, VENDOR_KEY, LAB_KEY if made.third_party else None)
    recording.unlink()
    return path
