"""Manifests made by hand: the shortest, and one in which every member says something."""

from __future__ import annotations

from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from conformance.certification import sealing
from conformance.certification.manifest import NOTE, PAGES, RECORDING, REPORT, Manifest

DIGEST = "0" * 64
FILES = dict.fromkeys((REPORT, RECORDING, *PAGES, NOTE), DIGEST)
VENDOR_KEY, LAB_KEY = (Ed25519PrivateKey.from_private_bytes(bytes([number] * 32)) for number in (1, 2))


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
