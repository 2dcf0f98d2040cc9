"""The recording of a run while it goes on: each process streams its calls into files, and the end makes one of them.

A process has two files: a line for each entry, behind its place in the run and a tabulator; and one after the other
the bodies that the lines name by their places in the file.
Memory holds neither: `merge` sorts places, and copies entry by entry in the order of the suite.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from errno import EIO
from pathlib import Path
from typing import IO, Any, Final

from conformance import __version__
from conformance.spec.ledger import Party
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
# The members of an entry that say where it belongs.
PLACE_MEMBERS = ("_scope", "_call", "_place")
# What an earlier run has left in a folder.
STALE_PATTERNS = (*har.NAMES, f"{har.NAME}.partial", f"{PART_NAME}*", f"{BODIES_NAME}*")
# Of xz: a window of 1 MiB, which holds a request beside its answer, at a fourth of the time of xz's own default.
XZ_PRESET: Final = 1
# Characters that are packed at a time, while what comes next is put together.
PIECE_CHARS: Final = 1 << 20


class JournalError(OSError):
    """A call cannot be written down, or what was is not whole."""


class Journal:
    """Writes calls into files of a folder; every process has its own.

    Args:
        folder: of the evidence; made if need be.
        process: what identifies it among those of the run.
        settings: of the target, for what must not be written.
        requests: how much is kept of those that are sent.
    """

    def __init__(self, folder: Path, process: str, settings: Settings, requests: BodyLimit = REPEATABLE_LIMIT) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{PART_NAME}{process}"
        self._bodies = _StoredBodies(folder / f"{BODIES_NAME}{process}", requests)
        for path in (self._path, self._bodies.path):
            path.unlink(missing_ok=True)
        self._settings = settings

    def __call__(self, call: Call) -> None:
        """Write a call down, as ASCII: the text of an answer may have an end of line of Unicode's, or half a letter.

        Raises:
            JournalError: it cannot be written.
        """
        lines = [
            f"{json.dumps([entry[name] for name in PLACE_MEMBERS])}\t{json.dumps(entry)}\n"
            for entry in har.make_entries(call, self._settings, self._bodies)
        ]
        try:
            # The lines first: where there is no room for a body, the line that names it says so.
            with self._path.open("a", encoding="ascii") as file:
                file.writelines(lines)
            self._bodies.flush()
        except OSError as error:
            raise JournalError(error.errno, error.strerror) from error


@dataclass(slots=True)
class _StoredBodies:
    """The bodies of one process, each once: as members of an entry where in the file they are."""

    path: Path
    requests: BodyLimit
    _places: dict[str, dict[str, Any]] = field(default_factory=dict)
    _new: list[bytes] = field(default_factory=list)
    _end: int = 0

    def members(self, body: bytes, encoding: str) -> dict[str, Any]:
        """Return where a body is, from `flush` on."""
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
        """Write what is new."""
        if self._new:
            new, self._new = self._new, []
            with self.path.open("ab") as file:
                file.writelines(new)


def merge(
    folder: Path,
    url: str,
    order: Mapping[str, int],
    grpc: str = "",
    party: Party = Party.SERVER,
    seed: int | None = None,
    options: Sequence[str] = (),
) -> None:
    """Make one archive of the files of all journals in a folder, and take them away.

    Args:
        folder: of the evidence.
        url: of the target.
        order: scope -> its place in the run; what is not there comes first.
        grpc: where gRPC was judged, as a URL; empty where it was not.
        party: who was judged; a recording of a client says so.
        seed: by which rows name clients; None where they do not.
        options: of the command line, by which a run sends what is recorded.

    Raises:
        OSError: it cannot be written; the parts are left as they are, and nothing else.
    """
    parts = [_Part(path) for path in sorted(folder.glob(f"{PART_NAME}*"))]
    log: dict[str, Any] = {
        "version": "1.2",
        "creator": {"name": "oip-conformance", "version": __version__},
        "_target": url,
        **({"_grpc": grpc} if grpc else {}),
        **({"_party": str(party)} if party is not Party.SERVER else {}),
        **({} if seed is None else {"_seed": seed}),
        **({"_options": list(options)} if options else {}),
    }
    partial = folder / f"{har.NAME}.partial"
    try:
        with lzma.open(partial, "wb", preset=XZ_PRESET) as file:
            _pack(har.format_document(log, _in_order(parts, order)), file)
        partial.replace(folder / har.NAME)
    except (ValueError, LookupError, TypeError) as error:  # the disk was full then
        partial.unlink(missing_ok=True)
        raise JournalError(EIO, "a part of it is cut short") from error
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    for part in parts:
        part.remove()


def _pack(lines: Iterator[str], file: lzma.LZMAFile) -> None:
    """Write lines into a packed file: in a thread, since to pack them takes as long as to put them together."""
    with ThreadPoolExecutor(1) as packing:
        under_way: Future[int] | None = None
        for piece in _pieces(lines):
            if under_way:
                under_way.result()
            under_way = packing.submit(file.write, piece)
        if under_way:
            under_way.result()


def _pieces(lines: Iterator[str]) -> Iterator[bytes]:
    """Yield lines together, in pieces that are worth a thread's while."""
    piece = bytearray()
    for line in lines:
        piece += line.encode("ascii")
        if len(piece) >= PIECE_CHARS:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


def _in_order(parts: list[_Part], order: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """Yield the entries of all parts as they belong into an archive."""
    places = sorted((place, number, start) for number, part in enumerate(parts) for place, start in part.places(order))
    bodies = BodyWriter()
    files = [(part.path.open("rb"), part.bodies.open("rb")) for part in parts]
    try:
        for _, number, start in places:
            lines, stored = files[number]
            lines.seek(start)
            yield _whole(json.loads(lines.readline().partition(b"\t")[2]), stored, bodies)
    finally:
        for pair in files:
            for file in pair:
                file.close()


@dataclass(frozen=True, slots=True)
class _Part:
    """The files of one process."""

    path: Path

    @property
    def bodies(self) -> Path:
        return self.path.with_name(BODIES_NAME + self.path.name.removeprefix(PART_NAME))

    def places(self, order: Mapping[str, int]) -> Iterator[tuple[tuple[int, int, int], int]]:
        """Yield of each entry where it belongs in the run, and where its line begins."""
        start = 0
        with self.path.open("rb") as file:
            for line in file:
                scope, call, place = json.loads(line.partition(b"\t")[0])
                yield (order.get(scope, -1), call, place), start
                start += len(line)

    def remove(self) -> None:
        self.path.unlink()
        self.bodies.unlink()


def _whole(entry: dict[str, Any], stored: IO[bytes], bodies: BodyWriter) -> dict[str, Any]:
    """Return an entry with its bodies.

    Raises:
        ValueError: a body is not there.
    """
    for members, encoding in har.find_bodies(entry):
        place = members.pop("_at")
        stored.seek(place["start"])
        body = stored.read(place["size"])
        if len(body) < place["size"]:
            raise ValueError("a body is cut short")
        if "head" in place:
            body = Excerpt.of(body, place["length"], place["digest"], place["head"])
        elif compute_digest(body) != place["digest"]:  # something before it was not written whole
            raise ValueError("a body is another")
        members.update(bodies.members(body, encoding))
    return entry
