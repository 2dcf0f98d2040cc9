"""Writes and reads recordings of watched clients, in the HTTP Archive format 1.2.

The members are those of `transport.har`. In addition, `log` has `_watched`, `_strict` and `_stopped`. Each entry has
`_client`, the name of the client, and `_received`, the properties of the request for which HAR has no member. Each
entry is written once its request is answered. The closing brackets are written at the end of the watch, so that the
recording of an interrupted watch is not valid HAR.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from conformance.clients.recording.records import RecordedExchange, read_recorded_answer, to_exchange
from conformance.spec import files
from conformance.spec.version import __version__
from conformance.transport import har, recording, settings
from conformance.transport.exchange import Call, Exchange
from conformance.transport.har import NAME
from conformance.transport.har_bodies import BodyReader, BodyWriter, Excerpt
from conformance.transport.journal import XZ_PRESET
from conformance.wire.client_request import ClientRequest
from conformance.wire.request import Message

_SCOPE: Final = "watched"


@dataclass(frozen=True, slots=True)
class Archive:
    """A parsed recording of clients.

    Attributes:
        grpc: the address given to gRPC clients, or empty.
        is_strict: whether violations of advisory requirements counted as failures.
        stopped: why the watch ended early; empty if it did not.
        requests: the requests in order, each with the name of its client.
    """

    url: str
    grpc: str
    is_strict: bool
    stopped: str
    requests: tuple[tuple[str, RecordedExchange], ...]


class ArchiveWriter:
    """Writes a recording of watched clients into a folder, and creates the folder if it is missing.

    `grpc`: the address given to gRPC clients, or empty.
    `is_strict`: whether violations of advisory requirements count as failures.

    Raises OSError: the recording cannot be written.
    """

    def __init__(self, folder: Path, url: str, grpc: str, *, is_strict: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._settings = settings.make_settings(url, grpc=grpc or None)
        self._file = lzma.open(folder / NAME, "wt", preset=XZ_PRESET, encoding="ascii")  # noqa: SIM115  # until `close`
        self._bodies = BodyWriter()
        creator = {"name": "oip-conformance", "version": __version__}
        log = {"version": "1.2", "creator": creator, "_target": url, "_grpc": grpc, "_watched": True}
        self._file.write(har.format_log_line({**log, "_strict": is_strict}))
        self._separator = ""

    def write(self, recorded: RecordedExchange, client: str) -> None:
        """Append a request and its answer."""
        received = recorded.received
        message = Message(received.path, received.headers, received.body, received.method)
        exchange = to_exchange(recorded, self._settings.find_base_url(message), message)
        (entry,) = har.make_entries(
            Call(_SCOPE, recorded.number, (message,), (exchange,)), self._settings, self._bodies
        )
        received_fields = {**describe_received(received), "whole": recorded.is_whole}
        own = {"startedDateTime": recorded.started, "_client": client, "_received": received_fields}
        self._file.write(f"{self._separator}{json.dumps({**entry, **own})}")
        self._separator = ",\n"

    def close(self, stopped: str = "") -> None:
        """Complete the recording; `stopped` is why the watch ended early, or empty."""
        self._file.write(f'\n], "_stopped": {json.dumps(stopped)}}}}}\n')
        self._file.close()


def describe_received(received: ClientRequest) -> dict[str, Any]:
    """Return the properties of a request that have no HAR member."""
    return {
        "path": received.path,
        "version": received.version,
        "chunked": received.is_chunked,
        "trouble": received.trouble,
    }


def parse_received(exchange: Exchange, fields: Mapping[str, Any]) -> ClientRequest:
    """Rebuild a request from a parsed entry; `fields` is the result of `describe_received`."""
    message = exchange.message
    return ClientRequest(
        message.method,
        str(fields["path"]),
        message.headers,
        message.body,
        str(fields["version"]),
        fields["chunked"] is True,
        str(fields["trouble"]),
    )


def is_client_recording(path: Path) -> bool:
    """Whether the header of a file says that the file is a recording of watched clients."""
    if not path.is_file():  # opening a named pipe would block
        return False
    try:
        log, _ = recording.read_archive(path)
    except files.UnreadableError:
        return False
    return log.get("_watched") is True


def load(path: Path) -> Archive:
    """Read a recording of clients. Raises HarError: the file cannot be read, or is not a recording of clients."""
    with recording.convert_errors(path, "clients"):
        log, entries = recording.read_archive(path)
        bodies = BodyReader()
        requests = sorted((_read_entry(entry, bodies) for entry in entries), key=lambda pair: pair[1].number)
        return Archive(
            str(log["_target"]), str(log["_grpc"]), log["_strict"] is True, str(log["_stopped"]), tuple(requests)
        )


def _read_entry(entry: Mapping[str, Any], bodies: BodyReader) -> tuple[str, RecordedExchange]:
    exchange, received_fields = har.parse_exchange(entry, bodies), entry["_received"]
    if isinstance(exchange.body, Excerpt):
        exchange = replace(exchange, body=b"")
    is_whole = received_fields["whole"] is True and not isinstance(exchange.message.body, Excerpt)
    received = parse_received(exchange, received_fields)
    received = received if is_whole else replace(received, body=b"")
    number, started = int(entry["_call"]), str(entry["startedDateTime"])
    recorded = RecordedExchange(number, received, is_whole, read_recorded_answer(exchange), exchange.elapsed, started)
    return str(entry["_client"]), recorded
