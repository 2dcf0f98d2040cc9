"""Ed25519 signatures of a manifest, and by its digests of the whole folder: who holds the key made it.

Keys are PEM files, as `openssl genpkey -algorithm ed25519` writes them.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.certification.manifest import NAME, CertificationError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # loaded where keys are used

SIGNATURE = "manifest.sig"


def private_key(key_file: Path) -> Ed25519PrivateKey:
    """Return the key in a file.

    Raises:
        CertificationError: the key cannot be used.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(key_file.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise CertificationError(f"--sign {key_file}: no private key in PEM without a password ({error})") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise CertificationError(f"--sign {key_file}: no Ed25519 key; `openssl genpkey -algorithm ed25519` makes one")
    return key


def sign(folder: Path, key: Ed25519PrivateKey) -> None:
    """Sign the manifest of a folder."""
    signature = key.sign((folder / NAME).read_bytes())
    (folder / SIGNATURE).write_text(b64encode(signature).decode() + "\n", encoding="ascii")


def fault(folder: Path, key_file: Path) -> str | None:
    """Return why the signature of a folder is not one of this public key, or None.

    Raises:
        CertificationError: the key cannot be used.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(key_file.read_bytes())
    except (OSError, ValueError) as error:
        raise CertificationError(f"--key {key_file}: no public key in PEM ({error})") from error
    if not isinstance(key, Ed25519PublicKey):
        raise CertificationError(f"--key {key_file}: no Ed25519 key")
    try:
        key.verify(b64decode((folder / SIGNATURE).read_bytes().strip(), validate=True), (folder / NAME).read_bytes())
    except FileNotFoundError:
        return "it is not signed"
    except (InvalidSignature, ValueError):
        return "the signature is not of this key, or the manifest was changed"
    return None
