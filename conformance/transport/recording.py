"""The recording of a run, read again: its calls, by which a target can be replaced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from conformance.spec import files
from conformance.spec.ledger import Party
from conformance.transport import har_file
from conformance.transport.call import Call
from conformance.transport.har import HarError, parse_exchange
from conformance.transport.har_bodies import BodyReader

Calls = dict[tuple[str, int], Call]


@dataclass(frozen=True, slots=True)
class Recording:
    """An archive that was read.

    Attributes:
        url: of the target.
        calls: by scope and index; of several recordings of one call, by several processes, the first counts.
        times: of the first exchange and of the last.
        grpc: where gRPC was judged, as a URL; empty where it was not.
        seed: by which rows name clients; None where they do not.
        options: by which the run sent what is recorded; empty where an earlier suite did not say.
    """

    url: str
    calls: Mapping[tuple[str, int], Call]
    times: tuple[datetime, datetime]
    grpc: str = ""
    seed: int | None = None
    options: tuple[str, ...] = ()


def load(path: Path) -> Recording:
    """Read an archive.

    Raises:
        HarError: it cannot be read, or is no recording of a run that judged a server.
    """
    try:
        log, entries = har_file.read(path)
        if log.get("_party", Party.SERVER) != Party.SERVER:
            raise HarError(f"{path} is a recording of a client, and no server can be judged by it")
        url = str(log["_target"])
        calls, times = _calls(entries)
        seed = int(log["_seed"]) if "_seed" in log else None
        options = tuple(map(str, log.get("_options", ())))
        return Recording(url, calls, times, str(log.get("_grpc", "")), seed, options)
    except HarError:
        raise
    except files.NotOpenedError as error:
        raise HarError(f"{path}: {error}") from error
    except files.UnreadableError as error:
        raise HarError(f"{path} is no recording of this suite: {error}") from error
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise HarError(f"{path} is no recording of this suite: {type(error).__name__}: {error}") from error


def _calls(entries: Iterable[Mapping[str, Any]]) -> tuple[Calls, tuple[datetime, datetime]]:
    """Return the calls, and when the first and the last exchange took place."""
    bodies = BodyReader()
    grouped: dict[tuple[str, int], dict[int, Call]] = {}
    times = set()
    for entry in entries:
        times.add(datetime.fromisoformat(entry["startedDateTime"]))
        found = _of_one(entry, bodies)
        grouped.setdefault((found.scope, found.index), {}).setdefault(entry["_place"], found)
    return {where: _joined(places) for where, places in grouped.items()}, (min(times), max(times))


def _of_one(entry: Mapping[str, Any], bodies: BodyReader) -> Call:
    """Return a call as if it had been one message."""
    exchange = parse_exchange(entry, bodies)
    lost, has_died = entry.get("_lost"), entry.get("_died") is True
    return Call(entry["_scope"], entry["_call"], (exchange.message,), () if lost else (exchange,), lost, has_died)


def _joined(places: Mapping[int, Call]) -> Call:
    found = [places[place] for place in sorted(places)]
    first = found[0]
    messages = tuple(message for one in found for message in one.messages)
    exchanges = () if first.lost else tuple(exchange for one in found for exchange in one.exchanges)
    return Call(first.scope, first.index, messages, exchanges, first.lost, first.has_died)
