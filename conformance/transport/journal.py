"""Writes the recording of a run: each process appends its calls to two files, which `merge` merges at the end.

The first file of a process has a line for each entry: the position of the entry in the run, a tab, and the entry. The
second file has the concatenated bodies, to which the entries refer by offset. To save memory, `merge` sorts only the
positions, and then copies one entry after the other.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from errno import EIO
from itertools import chain, islice, repeat
from pathlib import Path
from typing import IO, Any, Final

from conformance.spec.ledger import Party
from conformance.spec.version import __version__
from conformance.transport import har
from conformance.transport.exchange import Call
from conformance.transport.har_bodies import (
    JUDGED_LIMIT,
    MAX_TOTAL_BYTES,
    REPEATABLE_LIMIT,
    BodyLimit,
    BodyWriter,
    Excerpt,
    compute_digest,
    shorten,
)
from conformance.transport.settings import Settings

PART_NAME, BODIES_NAME = "run.har.part", "run.har.bodies"
# The members of an entry that hold its position in the run.
POSITION_MEMBERS = ("_scope", "_call", "_place")
# Files of an earlier run in the folder.
STALE_PATTERNS = (*har.NAMES, f"{har.NAME}.partial", f"{PART_NAME}*", f"{BODIES_NAME}*")
# The preset of xz: a window of 1 MiB, which holds a request and its answer, in little memory and a quarter of the time
# of the default.
XZ_PRESET: Final = 1
# Characters that are compressed at a time, while the next piece is assembled.
PIECE_CHARS: Final = 1 << 20


_Position = tuple[int, int, int, str]


class JournalError(OSError):
    """A call, or a file of the evidence, cannot be written, or a file of a journal is incomplete."""


@contextmanager
def convert_write_errors() -> Iterator[None]:
    """Convert an `OSError` in the block to a `JournalError`."""
    try:
        yield
    except OSError as error:
        raise JournalError(error.errno, error.strerror) from error


class Journal:
    """Writes the calls of one process to files in a folder.

    Args:
        folder: the folder of the evidence; created if missing.
        process: the name of this process, unique in the run.
        settings: the settings of the target, which contain the secrets to hide.
        requests: how many bytes of a request body are stored.
    """

    def __init__(self, folder: Path, process: str, settings: Settings, requests: BodyLimit = REPEATABLE_LIMIT) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{PART_NAME}{process}"
        self._bodies = _StoredBodies(folder / f"{BODIES_NAME}{process}", requests)
        for path in (self._path, self._bodies.path):
            path.unlink(missing_ok=True)
        self._settings, self._requests = settings, requests

    def open_for(self, process: str) -> Journal:
        """Return a journal in the same folder for another process, whose name is added to that of this process."""
        name = self._path.name.removeprefix(PART_NAME) + process
        return Journal(self._path.parent, name, self._settings, self._requests)

    def __call__(self, call: Call, more_members: Iterable[Mapping[str, Any]] = ()) -> None:
        """Write a call, in ASCII, because answers may contain Unicode line separators or lone surrogates.

        `more_members`: further members of the call's entries, in the order of the entries.

        Raises JournalError: the call cannot be written.
        """
        entries = list(har.make_entries(call, self._settings, self._bodies))
        members = [{**entry, **more} for entry, more in zip(entries, chain(more_members, repeat({})), strict=False)]
        lines = [
            f"{json.dumps([entry[name] for name in POSITION_MEMBERS])}\t{json.dumps(entry)}\n" for entry in members
        ]
        # The lines are written first: if there is no room for a body, the line that refers to it reveals that.
        with convert_write_errors(), self._path.open("a", encoding="ascii") as file:
            file.writelines(lines)
        with convert_write_errors():
            self._bodies.flush()


@dataclass(slots=True)
class _StoredBodies:
    """Writes the bodies of one process to a file, each body once; entries refer to the offsets of the bodies."""

    path: Path
    requests: BodyLimit
    _places: dict[str, dict[str, Any]] = field(default_factory=dict)
    _new: list[bytes] = field(default_factory=list)
    _end: int = 0

    def build_members(self, body: bytes, encoding: str) -> dict[str, Any]:
        """Return a reference to the body; the body is in the file after `flush`."""
        limit = JUDGED_LIMIT if encoding == har.ANSWER_ENCODING else self.requests
        body = shorten(body, limit if self._end + len(body) <= MAX_TOTAL_BYTES else REPEATABLE_LIMIT)
        digest = compute_digest(body)
        known = self._places.get(digest)
        if known is not None and (isinstance(body, Excerpt) or "head" not in known):
            return {"_at": known}
        place = {"start": self._end, "size": len(body), "digest": digest}
        if isinstance(body, Excerpt):
            place |= {"length": body.length, "head": body.head}
        self._new.append(body)
        self._end += len(body)
        self._places[digest] = place
        return {"_at": place}

    def flush(self) -> None:
        """Append the bodies that are not in the file yet."""
        if self._new:
            new, self._new = self._new, []
            with self.path.open("ab") as file:
                file.writelines(new)


def remove(folder: Path) -> None:
    """Remove a recording that lacks calls, so that a full disk has room again and the folder can be used again."""
    for path in (path for pattern in STALE_PATTERNS for path in folder.glob(pattern)):
        path.unlink()


def remove_without_rows(folder: Path, scopes: Collection[str]) -> None:
    """Remove a recording whose run sent nothing for rows, since such a run judged nothing that anybody keeps.

    Args:
        folder: the folder of the recording; there may be none.
        scopes: the scopes of exchanges that are of no row.
    """
    path = folder / har.NAME
    try:
        with lzma.open(path, "rt", encoding="utf-8") as file:
            entries = (json.loads(line.rstrip(",\n")) for line in islice(file, 1, None) if line.startswith('{"'))
            is_without_rows = all(entry["_scope"] in scopes for entry in entries)
    except (OSError, EOFError, ValueError, LookupError, TypeError, lzma.LZMAError):
        return  # no recording of ours: the user decides
    if is_without_rows:
        path.unlink()


def merge(
    folder: Path,
    url: str,
    order: Mapping[str, int],
    grpc: str = "",
    party: Party = Party.SERVER,
    seed: int | None = None,
    options: Sequence[str] = (),
    client: Mapping[str, Any] | None = None,
) -> None:
    """Merge the files of all journals in a folder into one archive, and delete them.

    `order`: scope -> the position of the scope in the run; unknown scopes come first.
    `grpc`: the gRPC address as a URL; empty if gRPC was not judged.
    `seed`: the seed of the client names: see `client_names`; None if the run has no seed.
    `options`: the options of the command line that affect the recorded requests.
    `client`: the judged client's description of itself; None for a server.

    Raises OSError: writing failed; the files of the journals remain unchanged.
    """
    parts = [_ProcessFiles(path) for path in sorted(folder.glob(f"{PART_NAME}*"))]
    log: dict[str, Any] = {
        "version": "1.2",
        "creator": {"name": "oip-conformance", "version": __version__},
        "_target": url,
        **({"_grpc": grpc} if grpc else {}),
        **({"_party": str(party)} if party is not Party.SERVER else {}),
        **({} if seed is None else {"_seed": seed}),
        **({"_options": list(options)} if options else {}),
        **({} if client is None else {"_client": dict(client)}),
    }
    partial = folder / f"{har.NAME}.partial"
    try:
        with lzma.open(partial, "wb", preset=XZ_PRESET) as file:
            _compress_lines(har.format_document(log, _merge_entries(parts, order)), file)
        partial.replace(folder / har.NAME)
    except (ValueError, LookupError, TypeError) as error:  # the disk was full when a part was written
        partial.unlink(missing_ok=True)
        raise JournalError(EIO, "the journal of a process is incomplete") from error
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    for part in parts:
        part.remove()


def _compress_lines(lines: Iterator[str], file: lzma.LZMAFile) -> None:
    """Write lines to a compressed file; a thread compresses while the next lines are assembled."""
    with ThreadPoolExecutor(1) as packing:
        pending: Future[int] | None = None
        for piece in _join_lines(lines):
            if pending:
                pending.result()
            pending = packing.submit(file.write, piece)
        if pending:
            pending.result()


def _join_lines(lines: Iterator[str]) -> Iterator[bytes]:
    """Join lines to pieces of at least `PIECE_CHARS` characters; the last piece may be shorter."""
    piece = bytearray()
    for line in lines:
        piece += line.encode("ascii")
        if len(piece) >= PIECE_CHARS:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


def _merge_entries(parts: list[_ProcessFiles], order: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """Yield the entries of all processes in the order of the run.

    Several processes may send the same requests of a scope, such as those that find out whether a model answers. The
    recording has those of one process, as in a run of one process.
    """
    positions: list[tuple[_Position, int, int]] = []
    owners: dict[str, int] = {}
    for number, part in enumerate(parts):
        for scope, position, start in part.list_positions(order):
            if owners.setdefault(scope, number) == number:
                positions.append((position, number, start))
    positions.sort()
    bodies = BodyWriter()
    files = [(part.path.open("rb"), part.bodies.open("rb")) for part in parts]
    try:
        for _, number, start in positions:
            lines, stored = files[number]
            lines.seek(start)
            yield _insert_bodies(json.loads(lines.readline().partition(b"\t")[2]), stored, bodies)
    finally:
        for pair in files:
            for file in pair:
                file.close()


@dataclass(frozen=True, slots=True)
class _ProcessFiles:
    """The two files of one process: `path` has the entries, `bodies` the bodies."""

    path: Path

    @property
    def bodies(self) -> Path:
        return self.path.with_name(BODIES_NAME + self.path.name.removeprefix(PART_NAME))

    def list_positions(self, order: Mapping[str, int]) -> Iterator[tuple[str, _Position, int]]:
        """Yield the scope of each entry, its position in the run, and the offset of its line in the file."""
        start = 0
        with self.path.open("rb") as file:
            for line in file:
                scope, call, place = json.loads(line.partition(b"\t")[0])
                yield scope, (order.get(scope, -1), call, place, scope), start
                start += len(line)

    def remove(self) -> None:
        self.path.unlink()
        self.bodies.unlink()


def _insert_bodies(entry: dict[str, Any], stored: IO[bytes], bodies: BodyWriter) -> dict[str, Any]:
    """Replace the references in an entry by the bodies, and return the entry.

    Raises ValueError: a body is missing or damaged.
    """
    for members, encoding in har.find_bodies(entry):
        place = members.pop("_at")
        stored.seek(place["start"])
        body = stored.read(place["size"])
        if len(body) < place["size"]:
            raise ValueError("a body in the journal is incomplete")
        if "head" in place:
            body = Excerpt.from_part(body, place["length"], place["digest"], place["head"])
        elif compute_digest(body) != place["digest"]:  # data before it were not written completely
            raise ValueError("a body does not match its digest")
        members.update(bodies.build_members(body, encoding))
    return entry
