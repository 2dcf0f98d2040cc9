"""What `certify` makes of a report and a recording: a folder that is small, and signed.

An Ed25519 signature is of the manifest, and by its digests of the whole folder: who holds the key made it.

Every folder is signed, so that no byte of its manifest changes unseen: with a key that somebody keeps, or with one that
was made for the folder and thrown away. Keys are PEM files, as `openssl genpkey -algorithm ed25519` writes them.
"""

from __future__ import annotations

import lzma
import shutil
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.certification import manifest, note
from conformance.certification.manifest import NAME, NOTE, PAGES, RECORDING, REPORT, CertificationError, Manifest
from conformance.report import formats
from conformance.spec import extras, files

if TYPE_CHECKING:  # loaded where keys are used
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SIGNATURE, COUNTERSIGNATURE = "manifest.sig", "manifest.countersig"
# Bytes of a folder: it has to fit into a pull request. A run of everything over both transports makes 4.4 MB.
MAX_FOLDER_BYTES: Final = 5_000_000
# Of xz: a window that holds a whole area of the suite, and matches that are not sought for ever. A run packs in a third
# of the time, into a sixth more, for every run has to; a certification is packed once and kept.
XZ_FILTERS: Final = ({"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 16 << 20, "nice_len": 32},)


def seal(
    folder: Path,
    made: Manifest,
    report: Mapping[str, Any],
    recording: Path,
    key: Ed25519PrivateKey,
    third_key: Ed25519PrivateKey | None = None,
) -> None:
    """Fill an empty folder.

    Args:
        folder: which.
        made: its manifest; the digests of the files are put in.
        report: of the run.
        recording: of the run, packed.
        key: of the signature.
        third_key: of the countersignature, where there is one.

    Raises:
        OSError: something cannot be read or written.
        CertificationError: the manifest does not fit its schema.
    """
    _pack(folder, report, recording)
    for page in PAGES:
        formats.write(report, folder / page)
    (folder / NOTE).write_text(note.render(made, report), encoding="utf-8")
    digests = {name: manifest.digest(folder / name) for name in (REPORT, RECORDING, *PAGES, NOTE)}
    (folder / NAME).write_text(replace(made, files=digests).text(), encoding="utf-8")
    manifest.read(folder)
    sign(folder, key)
    if third_key is not None:
        sign(folder, third_key, COUNTERSIGNATURE)


def _pack(folder: Path, report: Mapping[str, Any], recording: Path) -> None:
    """Write what is packed: the report, and the recording once more, smaller."""
    with lzma.open(folder / REPORT, "wt", filters=XZ_FILTERS, encoding="ascii") as packed:
        packed.write(formats.FORMATS[".json"](report))
    with lzma.open(recording) as source, lzma.open(folder / RECORDING, "wb", filters=XZ_FILTERS) as target:
        shutil.copyfileobj(source, target, 1 << 20)


# --- keys and signatures ----------------------------------------------------------------------------------------------


def read_private_key(key_file: Path, option: str = "--sign") -> Ed25519PrivateKey:
    """Return the key in a file that an option names.

    Raises:
        CertificationError: the key cannot be used.
        MissingExtraError: no signature can be made here.
    """
    extras.expect_installed("signing", option)
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(files.read_bytes(key_file), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise CertificationError(f"{option} {key_file}: no private key in PEM without a password ({error})") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise CertificationError(f"{option} {key_file}: no Ed25519 key; `openssl genpkey -algorithm ed25519` makes one")
    return key


def make_throwaway_key() -> Ed25519PrivateKey:
    """Return a new key.

    Raises:
        MissingExtraError: none can be made here.
    """
    extras.expect_installed("signing", "a certification")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.generate()


def describe_key(key: Ed25519PrivateKey, *, lasting: bool) -> dict[str, Any]:
    """Return what a manifest says of a key."""
    der = _der(key.public_key())
    return {"id": sha256(der).hexdigest(), "public_key": b64encode(der).decode(), "lasting": lasting}


def sign(folder: Path, key: Ed25519PrivateKey, name: str = SIGNATURE) -> None:
    """Sign the manifest of a folder, into a file of this name."""
    signature = key.sign((folder / NAME).read_bytes())
    (folder / name).write_text(b64encode(signature).decode() + "\n", encoding="ascii")


def read_key_id(key_file: Path, option: str = "--key") -> str:
    """Return the id of the public key in a file that an option names.

    Raises:
        CertificationError: the key cannot be used.
        MissingExtraError: no signature can be verified here.
    """
    extras.expect_installed("signing", option)
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(files.read_bytes(key_file))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise CertificationError(f"{option} {key_file}: no public key in PEM ({error})") from error
    if not isinstance(key, Ed25519PublicKey):
        raise CertificationError(f"{option} {key_file}: no Ed25519 key")
    return sha256(_der(key)).hexdigest()


def find_signature_fault(folder: Path, key: Mapping[str, Any], name: str = SIGNATURE) -> str | None:
    """Return why a file is not the signature of a folder by a key, or None where it is.

    Args:
        folder: a certification.
        key: what its manifest says of the key.
        name: of the file with the signature.

    Raises:
        MissingExtraError: no signature can be verified here.
    """
    extras.expect_installed("signing", "a certification")
    from cryptography.exceptions import InvalidSignature

    try:
        signature, signed = files.read_bytes(folder / name), files.read_bytes(folder / NAME)
        _public_key(key).verify(b64decode(signature.strip(), validate=True), signed)
    except files.NotOpenedError:
        return f"it is not signed: {name} is missing"
    except files.UnreadableError as error:
        return f"{name} {error}"
    except (InvalidSignature, ValueError):
        return (
            f"{name} is no signature of this manifest by its key: the manifest was changed, or signed by somebody else"
        )
    return None


def _public_key(key: Mapping[str, Any]) -> Ed25519PublicKey:
    """Return the key that a manifest describes.

    Raises:
        ValueError: it describes none, or gives it the id of another.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    der = b64decode(key["public_key"], validate=True)
    if sha256(der).hexdigest() != key["id"]:
        raise ValueError("the key has another id")
    try:
        found = load_der_public_key(der)
    except UnsupportedAlgorithm as error:
        raise ValueError(str(error)) from error
    if not isinstance(found, Ed25519PublicKey):
        raise ValueError("no Ed25519 key")
    return found


def _der(key: Ed25519PublicKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
