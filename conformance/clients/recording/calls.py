"""Writes and reads the calls of an adapter in the recording of a run, an HTTP Archive.

Each request of the client is one entry. The members are those of `transport.har`: `_scope` is the row, `_call` the
index of the adapter's call in that row, and `_place` the index of the request in that call. `_received` has the members
that `archive` describes, and the index of the inference. The first entry of a call has `_said`: the adapter's answer,
and the seconds until that answer. A call without requests has one entry, without `_received`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from conformance.clients import adapter_lines
from conformance.clients.adapter import AdapterCall
from conformance.clients.inference import Introduction, Result
from conformance.clients.line_process import AdapterError, AdapterHangsError, AdapterLostError
from conformance.clients.recording.archive import describe_received, parse_received
from conformance.spec.ledger import Party
from conformance.transport import har, recording
from conformance.transport.exchange import Call, Exchange
from conformance.transport.har import HarError
from conformance.transport.har_bodies import BodyReader
from conformance.wire.client_request import ClientRequest
from conformance.wire.request import Message

NO_REQUEST: Final = Message("", (), b"", "")
_ERRORS: Final[Mapping[str, type[AdapterError]]] = {
    "broke": AdapterError,
    "hangs": AdapterHangsError,
    "lost": AdapterLostError,
}


def build_entries(scope: str, index: int, call: AdapterCall) -> tuple[Call, list[dict[str, Any]]]:
    """Convert an adapter's call for the recording: return the recorded call, and the extra members of each entry."""
    exchanges = tuple(request.to_exchange(number) for number, (_, request) in enumerate(call.requests))
    own: list[dict[str, Any]] = [
        {"_received": {**describe_received(request.received), "inference": inference}}
        for inference, request in call.requests
    ]
    messages = tuple(exchange.message for exchange in exchanges) or (NO_REQUEST,)
    first, *others = own or [{}]
    return Call(scope, index, messages, exchanges), [{**first, "_said": _describe_answer(call)}, *others]


def _describe_answer(call: AdapterCall) -> dict[str, Any]:
    together = {} if call.is_concurrent is None else {"together": call.is_concurrent}
    if call.results is None:
        error = call.error or AdapterError("the adapter was stopped")
        kind = next(name for name, one in _ERRORS.items() if type(error) is one)
        return {"error": {"kind": kind, "message": str(error), "stderr": list(error.stderr)}, **together}
    elapsed = max(result.elapsed for result in call.results)
    line = json.loads(adapter_lines.make_results_line(1, call.results))
    return {"results": line["results"], "elapsed": elapsed, **together}


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A recorded request of the client, and the recorded answer.

    `inference`: the index of the inference that the request belongs to.
    """

    inference: int
    received: ClientRequest
    exchange: Exchange


@dataclass(slots=True)
class RecordedCall:
    """A recorded call of the adapter.

    Attributes:
        results: a result for each inference; None if the adapter failed.
        error: why the adapter failed, or None.
        is_concurrent: see `AdapterCall`.
    """

    results: tuple[Result, ...] | None = None
    error: AdapterError | None = None
    is_concurrent: bool | None = None
    requests: list[RecordedRequest] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ClientRecording:
    """A parsed recording of a client.

    Attributes:
        url: the first URL given to the client.
        grpc: the first address given to the client for gRPC; empty if gRPC was not judged.
        times: the times of the first and the last entry.
        calls: (row, index of the call in that row) -> the call.
    """

    url: str
    grpc: str
    client: Introduction
    times: tuple[datetime, datetime]
    calls: Mapping[tuple[str, int], RecordedCall]


def load(path: Path) -> ClientRecording:
    """Read the recording of a run that judged a client.

    Raises HarError: the file cannot be read, or is not the recording of a client.
    """
    with recording.convert_errors(path, "this suite", AdapterError):
        log, entries = recording.read_archive(path)
        if log.get("_party") != Party.CLIENT:
            raise HarError(f"{path} is not a recording of a client")
        bodies, calls, times = BodyReader(), dict[tuple[str, int], RecordedCall](), set[datetime]()
        for entry in entries:
            times.add(datetime.fromisoformat(entry["startedDateTime"]))
            _add_entry(calls, entry, har.parse_exchange(entry, bodies))
        client = Introduction.from_dict(log["_client"])
        return ClientRecording(str(log["_target"]), str(log.get("_grpc", "")), client, (min(times), max(times)), calls)


def _add_entry(calls: dict[tuple[str, int], RecordedCall], entry: Mapping[str, Any], exchange: Exchange) -> None:
    """Add an entry to its call. The entries of a call are in the order of requests; the first one has `_said`."""
    key = entry["_scope"], entry["_call"]
    if ("_said" in entry) != (key not in calls):
        raise ValueError(f"call {key[1]} of {key[0]} is recorded twice, or its first entry is missing")
    if "_said" in entry:
        calls[key] = _parse_recorded_call(entry["_said"])
    if "_received" in entry:
        fields = entry["_received"]
        calls[key].requests.append(
            RecordedRequest(int(fields["inference"]), parse_received(exchange, fields), exchange)
        )


def _parse_recorded_call(answer: Mapping[str, Any]) -> RecordedCall:
    is_concurrent = answer.get("together")
    if "error" in answer:
        error = answer["error"]
        broke = _ERRORS[error["kind"]](str(error["message"]), list(map(str, error["stderr"])))
        return RecordedCall(error=broke, is_concurrent=is_concurrent)
    results, elapsed = answer["results"], float(answer["elapsed"])
    line = json.dumps({"seq": 1, "results": results}).encode("ascii")
    return RecordedCall(tuple(adapter_lines.parse_results(line, 1, len(results), elapsed)), is_concurrent=is_concurrent)
