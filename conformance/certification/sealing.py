"""What `certify` makes of a report and a recording: a folder that is small, and signed."""

from __future__ import annotations

import lzma
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.certification import manifest, note, signature
from conformance.certification.manifest import NOTE, PAGES, RECORDING, REPORT, Manifest
from conformance.report import formats

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

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
    (folder / manifest.NAME).write_text(replace(made, files=digests).text(), encoding="utf-8")
    manifest.read(folder)
    signature.sign(folder, key)
    if third_key is not None:
        signature.sign(folder, third_key, signature.COUNTERSIGNATURE)


def _pack(folder: Path, report: Mapping[str, Any], recording: Path) -> None:
    """Write what is packed: the report, and the recording once more, smaller."""
    with lzma.open(folder / REPORT, "wt", filters=XZ_FILTERS, encoding="ascii") as packed:
        packed.write(formats.FORMATS[".json"](report))
    with lzma.open(recording) as source, lzma.open(folder / RECORDING, "wb", filters=XZ_FILTERS) as target:
        shutil.copyfileobj(source, target, 1 << 20)
