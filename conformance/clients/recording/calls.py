"""The calls of an adapter in the recording of a run: an entry of the HTTP Archive for each request of the client.

The members are those of `transport.har`: `_scope` names the row, `_call` counts the adapter's calls in that row, and
`_place` the requests of a call. `_received` is as in `archive`, with the index of the inference. The first entry of a
call has `_said`: the answer of the adapter, with the seconds that it took. A call without requests has one entry,
without `_received`.
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
from conformance.spec import files
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


def make_entries(scope: str, index: int, asked: AdapterCall) -> tuple[Call, list[dict[str, Any]]]:
    """Return a call of the adapter as a recorded call, and the further members of its entries."""
    exchanges = tuple(request.exchange(number) for number, (_, request) in enumerate(asked.requests))
    own: list[dict[str, Any]] = [
        {"_received": {**describe_received(request.received), "inference": place}} for place, request in asked.requests
    ]
    messages = tuple(exchange.message for exchange in exchanges) or (NO_REQUEST,)
    first, *others = own or [{}]
    return Call(scope, index, messages, exchanges), [{**first, "_said": _describe_answer(asked)}, *others]


def _describe_answer(asked: AdapterCall) -> dict[str, Any]:
    together = {} if asked.is_together is None else {"together": asked.is_together}
    if asked.results is None:
        error = asked.error or AdapterError("the adapter was stopped")
        kind = next(name for name, one in _ERRORS.items() if type(error) is one)
        return {"error": {"kind": kind, "message": str(error), "stderr": list(error.stderr)}, **together}
    elapsed = max(result.elapsed for result in asked.results)
    line = json.loads(adapter_lines.make_results_line(1, asked.results))
    return {"results": line["results"], "elapsed": elapsed, **together}


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request of a call.

    Attributes:
        inference: the index of its inference.
        exchange: the request and its answer, as recorded.
    """

    inference: int
    received: ClientRequest
    exchange: Exchange


@dataclass(slots=True)
class RecordedCall:
    """A call of the adapter.

    Attributes:
        results: a result for each inference; None if the adapter broke; `error` is then the reason.
        is_together: see `AdapterCall`.
    """

    results: tuple[Result, ...] | None = None
    error: AdapterError | None = None
    is_together: bool | None = None
    requests: list[RecordedRequest] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ClientRecording:
    """A parsed recording of a client.

    Attributes:
        url: the first URL given to the client; `grpc`: the same for gRPC, or empty if that was not judged.
        times: of the first and the last entry.
        calls: by row and index.
    """

    url: str
    grpc: str
    client: Introduction
    times: tuple[datetime, datetime]
    calls: Mapping[tuple[str, int], RecordedCall]


def load(path: Path) -> ClientRecording:
    """Read a recording.

    Raises:
        HarError: it cannot be read, or is not the recording of a run that judged a client.
    """
    try:
        log, entries = recording.read_archive(path)
        if log.get("_party") != Party.CLIENT:
            raise HarError(f"{path} is no recording of a client")
        bodies, calls, times = BodyReader(), dict[tuple[str, int], RecordedCall](), set[datetime]()
        for entry in entries:
            times.add(datetime.fromisoformat(entry["startedDateTime"]))
            _add_entry(calls, entry, har.parse_exchange(entry, bodies))
        client = Introduction.from_dict(log["_client"])
        return ClientRecording(str(log["_target"]), str(log.get("_grpc", "")), client, (min(times), max(times)), calls)
    except HarError:
        raise
    except files.NotOpenedError as error:
        raise HarError(f"{path}: {error}") from error
    except files.UnreadableError as error:
        raise HarError(f"{path} is no recording of this suite: {error}") from error
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, AdapterError) as error:
        raise HarError(f"{path} is no recording of this suite: {type(error).__name__}: {error}") from error


def _add_entry(calls: dict[tuple[str, int], RecordedCall], entry: Mapping[str, Any], exchange: Exchange) -> None:
    """Add an entry to its call; entries of a call are in the order of its requests."""
    key = entry["_scope"], entry["_call"]
    if ("_said" in entry) != (key not in calls):
        raise ValueError(f"call {key[1]} of {key[0]} is recorded twice, or not from its beginning")
    if "_said" in entry:
        calls[key] = _parse_answer(entry["_said"])
    if "_received" in entry:
        fields = entry["_received"]
        calls[key].requests.append(
            RecordedRequest(int(fields["inference"]), parse_received(exchange, fields), exchange)
        )


def _parse_answer(said: Mapping[str, Any]) -> RecordedCall:
    is_together = said.get("together")
    if "error" in said:
        error = said["error"]
        broke = _ERRORS[error["kind"]](str(error["message"]), list(map(str, error["stderr"])))
        return RecordedCall(error=broke, is_together=is_together)
    results, elapsed = said["results"], float(said["elapsed"])
    line = json.dumps({"seq": 1, "results": results}).encode("ascii")
    return RecordedCall(tuple(adapter_lines.parse_results(line, 1, len(results), elapsed)), is_together=is_together)
