"""Builds the small, signed folder of a certification from a report and a recording.

The manifest is signed with Ed25519; its digests extend the signature to the whole folder.

Every folder is signed, so that any change of its manifest is detected: with a lasting key, or with a key that was made
for this folder and discarded. Keys are PEM files, as `openssl genpkey -algorithm ed25519` writes them.
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
from conformance.spec.report import Report

if TYPE_CHECKING:  # loaded where keys are used
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SIGNATURE, COUNTERSIGNATURE = "manifest.sig", "manifest.countersig"
# A folder has to fit into a pull request. A full run over both transports takes 4.4 MB.
MAX_FOLDER_BYTES: Final = 5_000_000
# xz: the window holds a whole area of the suite, whose requests repeat each other, and the search for matches is
# bounded. On a run of 83 MB this takes half the time of the default search, for the same size.
XZ_FILTERS: Final = (
    {"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 16 << 20, "nice_len": 32, "mf": lzma.MF_HC4, "depth": 8},
)


def seal(
    folder: Path,
    made: Manifest,
    report: Report,
    recording: Path,
    key: Ed25519PrivateKey,
    third_key: Ed25519PrivateKey | None = None,
) -> None:
    """Write the files of a certification into an empty folder, and sign it.

    `folder`: the empty folder.
    `made`: its manifest; the digests of the files are added.
    `third_key`: countersigning key, or None.

    Raises:
        OSError: a file cannot be read or written.
        CertificationError: the manifest does not match its schema.
    """
    _write_compressed(folder, report, recording)
    for page in PAGES:
        formats.write(report, folder / page)
    (folder / NOTE).write_text(note.render(made, report), encoding="utf-8")
    digests = {name: manifest.compute_digest(folder / name) for name in (REPORT, RECORDING, *PAGES, NOTE)}
    (folder / NAME).write_text(replace(made, files=digests).to_json(), encoding="utf-8")
    manifest.read(folder)
    sign(folder, key)
    if third_key is not None:
        sign(folder, third_key, COUNTERSIGNATURE)


def _write_compressed(folder: Path, report: Report, recording: Path) -> None:
    """Write the compressed report, and recompress the recording to a smaller file."""
    with lzma.open(folder / REPORT, "wt", filters=XZ_FILTERS, encoding="ascii") as packed:
        packed.write(formats.FORMATS[".json"](report))
    with lzma.open(recording) as source, lzma.open(folder / RECORDING, "wb", filters=XZ_FILTERS) as target:
        shutil.copyfileobj(source, target, 1 << 20)


# --- keys and signatures ----------------------------------------------------------------------------------------------


def read_private_key(key_file: Path, option: str = "--sign") -> Ed25519PrivateKey:
    """Return the private key in a file that an option names.

    Raises:
        CertificationError: the key cannot be used.
        MissingExtraError: the extra `signing` is not installed.
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
    """Return a new private key, to sign one folder. Raises MissingExtraError: the extra `signing` is not installed."""
    extras.expect_installed("signing", "a certification")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.generate()


def describe_key(key: Ed25519PrivateKey, *, lasting: bool) -> dict[str, Any]:
    """Return the manifest entry of a key."""
    der = _encode_der(key.public_key())
    return {"id": sha256(der).hexdigest(), "public_key": b64encode(der).decode(), "lasting": lasting}


def sign(folder: Path, key: Ed25519PrivateKey, name: str = SIGNATURE) -> None:
    """Sign the manifest of a folder; write the signature to the file `name`."""
    signature = key.sign((folder / NAME).read_bytes())
    (folder / name).write_text(b64encode(signature).decode() + "\n", encoding="ascii")


def read_key_id(key_file: Path, option: str = "--key") -> str:
    """Return the id of the public key in a file that an option names.

    Raises:
        CertificationError: the key cannot be used.
        MissingExtraError: the extra `signing` is not installed.
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
    return sha256(_encode_der(key)).hexdigest()


def find_signature_fault(folder: Path, key: Mapping[str, Any], name: str = SIGNATURE) -> str | None:
    """Return why a file is not a valid signature of a folder by a key; None if the signature is valid.

    Raises MissingExtraError: the extra `signing` is not installed.
    """
    extras.expect_installed("signing", "a certification")
    from cryptography.exceptions import InvalidSignature

    try:
        signature, signed = files.read_bytes(folder / name), files.read_bytes(folder / NAME)
        _load_public_key(key).verify(b64decode(signature.strip(), validate=True), signed)
    except files.NotOpenedError:
        return f"the folder is not signed: {name} is missing"
    except files.UnreadableError as error:
        return f"{name} {error}"
    except (InvalidSignature, ValueError):
        return f"{name} does not match the manifest and its key: the manifest was changed, or somebody else signed it"
    return None


def _load_public_key(key: Mapping[str, Any]) -> Ed25519PublicKey:
    """Return the public key in a manifest's entry.

    Raises ValueError: the entry describes no key, or the id is not that of the key.
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


def _encode_der(key: Ed25519PublicKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
