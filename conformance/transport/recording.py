"""Reads the recording of a run; `replay` answers requests from its calls.

A recording of this suite has a first line, a line for each entry, and a last line, so that only one entry at a time is
in memory. An uncompressed archive that another tool wrote may have other lines; such an archive is read at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

from conformance.spec import files, packed_files
from conformance.spec.files import UnreadableError
from conformance.spec.ledger import Party
from conformance.transport.exchange import Call
from conformance.transport.har import NAMES, HarError, parse_exchange
from conformance.transport.har_bodies import BodyReader

_END = b"]"


def find_recording(folder: Path) -> Path:
    """Return the path of the recording in a folder; the default path if there is no recording."""
    return next((folder / name for name in NAMES if (folder / name).is_file()), folder / NAMES[0])


def read_archive(path: Path) -> tuple[dict[str, Any], Iterator[Mapping[str, Any]]]:
    """Return the `log` members of an archive, and an iterator over its entries.

    Members that follow the entries are added to the returned `log` members after the last entry.

    Raises UnreadableError: immediately or during iteration, if the file cannot be read or is not an archive.
    """
    lines = packed_files.read_lines(path)
    first = next(lines, b"")
    if first.startswith(packed_files.XZ_MAGIC):  # before the next test, since packed data may have any bytes
        raise UnreadableError("is packed twice")
    if first.rstrip().endswith(b"["):
        log = _parse_log(first + b"]}}")
        return log, _read_entries(lines, log)
    log = _parse_log(b"".join(chain((first,), lines)))
    return log, iter(log["entries"])


def _parse_log(text: bytes) -> dict[str, Any]:
    document = files.parse_json(text)
    log = files.convert_errors(lambda: document["log"])
    if not isinstance(log, dict) or not isinstance(log.get("entries"), list):
        raise UnreadableError("has no entries")
    return log


def _read_entries(lines: Iterator[bytes], log: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        if line.startswith(_END):
            break
        if entry := line.rstrip().removesuffix(b","):  # an archive without entries has an empty line
            yield files.parse_json(entry)
    else:
        raise UnreadableError("is cut short")
    log |= _parse_log(b'{"log": {"entries": [' + line)
    if next(lines, b""):
        raise UnreadableError("has data after the end of the archive")


Calls = dict[tuple[str, int], Call]


@dataclass(frozen=True, slots=True)
class Recording:
    """The recording of a run that judged a server.

    Attributes:
        calls: the calls by scope and index; if several processes recorded the same call, the first counts.
        times: the times of the first and the last exchange.
        grpc: the gRPC address as a URL; empty if gRPC was not judged.
        seed: the seed of the client names: see `client_names`; None if the run has no seed.
        options: the options of the run that affect its requests; empty if an earlier version of the suite recorded it.
    """

    url: str
    calls: Mapping[tuple[str, int], Call]
    times: tuple[datetime, datetime]
    grpc: str = ""
    seed: int | None = None
    options: tuple[str, ...] = ()


def load(path: Path) -> Recording:
    """Read the recording of a run that judged a server.

    Raises HarError: the file cannot be read, or is not such a recording.
    """
    with convert_errors(path, "this suite"):
        log, entries = read_archive(path)
        if log.get("_party", Party.SERVER) != Party.SERVER:
            raise HarError(f"{path} is a recording of a client; it cannot be used to judge a server")
        url = str(log["_target"])
        calls, times = _group_calls(entries)
        seed = int(log["_seed"]) if "_seed" in log else None
        options = tuple(map(str, log.get("_options", ())))
        return Recording(url, calls, times, str(log.get("_grpc", "")), seed, options)


@contextmanager
def convert_errors(path: Path, subject: str, *others: type[Exception]) -> Iterator[None]:
    """Convert errors of reading a recording of `subject` to `HarError`, `others` among them."""
    kinds: tuple[type[Exception], ...] = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, *others)
    try:
        yield
    except HarError:
        raise
    except files.NotOpenedError as error:
        raise HarError(f"{path}: {error}") from error
    except files.UnreadableError as error:
        raise HarError(f"{path} is not a recording of {subject}: {error}") from error
    except kinds as error:
        raise HarError(f"{path} is not a recording of {subject}: {type(error).__name__}: {error}") from error


def _group_calls(entries: Iterable[Mapping[str, Any]]) -> tuple[Calls, tuple[datetime, datetime]]:
    """Return the calls, and the times of the first and the last exchange."""
    bodies = BodyReader()
    grouped: dict[tuple[str, int], dict[int, Call]] = {}
    times = set()
    for entry in entries:
        times.add(datetime.fromisoformat(entry["startedDateTime"]))
        found = _read_entry(entry, bodies)
        grouped.setdefault((found.scope, found.index), {}).setdefault(entry["_place"], found)
    return {where: _join_calls(places) for where, places in grouped.items()}, (min(times), max(times))


def _read_entry(entry: Mapping[str, Any], bodies: BodyReader) -> Call:
    """Convert one entry to a call with one message."""
    exchange = parse_exchange(entry, bodies)
    lost, has_died, has_hung = entry.get("_lost"), entry.get("_died") is True, entry.get("_hung") is True
    exchanges = () if lost else (exchange,)
    return Call(entry["_scope"], entry["_call"], (exchange.message,), exchanges, lost, has_died, has_hung)


def _join_calls(calls: Mapping[int, Call]) -> Call:
    """Join calls with one message each to one call; `calls` maps the position of the message to its call."""
    found = [calls[position] for position in sorted(calls)]
    first = found[0]
    messages = tuple(message for one in found for message in one.messages)
    exchanges = () if first.lost else tuple(exchange for one in found for exchange in one.exchanges)
    return Call(first.scope, first.index, messages, exchanges, first.lost, first.has_died, first.has_hung)
