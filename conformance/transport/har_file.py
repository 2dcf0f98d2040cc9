"""The file of an archive, entry by entry: a line for what is said of all, a line for each entry, a line for the end.

So is every recording of this suite, and a reader holds one entry at a time. An unpacked archive may be in another form,
as other tools leave it; such a one is read whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from conformance.spec import files, packed_files
from conformance.spec.files import UnreadableError
from conformance.transport.har import NAMES

_END = b"]"


def find(folder: Path) -> Path:
    """Return the recording in a folder; where there is none, the one that would be there."""
    return next((folder / name for name in NAMES if (folder / name).is_file()), folder / NAMES[0])


def read(path: Path) -> tuple[dict[str, Any], Iterator[Mapping[str, Any]]]:
    """Return what an archive says of itself, and its entries; what stands behind these is said once they are read.

    Raises:
        UnreadableError: now, or at one of the entries: the file cannot be read, or is no archive.
    """
    lines = packed_files.read_lines(path)
    first = next(lines, b"")
    if first.rstrip().endswith(b"["):
        log = _log(first + b"]}}")
        return log, _entries(lines, log)
    if first.startswith(packed_files.XZ_MAGIC):
        raise UnreadableError("is packed twice")
    log = _log(b"".join(chain((first,), lines)))
    return log, iter(log["entries"])


def _log(text: bytes) -> dict[str, Any]:
    document = files.parse_json(text)
    log = files.convert_errors(lambda: document["log"])
    if not isinstance(log, dict) or not isinstance(log.get("entries"), list):
        raise UnreadableError("has no entries")
    return log


def _entries(lines: Iterator[bytes], log: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        if line.startswith(_END):
            break
        if entry := line.rstrip().removesuffix(b","):  # where there is none, its line is empty
            yield files.parse_json(entry)
    else:
        raise UnreadableError("is cut short")
    log |= _log(b'{"log": {"entries": [' + line)
    if next(lines, b""):
        raise UnreadableError("goes on behind its end")
