"""Recordings of a run in the HTTP Archive format 1.2: every exchange, bodies in base64, without secrets.

Every process of a run leaves its calls in a file of its own, a line each; `merge` makes one archive of them, in the
order of the suite. What HAR has no member for begins with an underscore: where a message belongs in the run (`_scope`,
`_call`, `_place`), how it was sent (`_note`), what came of a body that was held back (`_go_ahead`), and what went wrong
on the way (`_failure` in words, `_failure_kind` for programs, `_lost`, `_died`). A gRPC call is an entry as well: its
bodies are the serialized messages, the status is the one of HTTP that stands for its code, and `_grpc` has the code and
the message; where gRPC was judged `log` has a `_grpc`, too, with the address.

Source: HAR 1.2 Spec, 4.2 "log" and the sections that follow it.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from errno import EIO
from pathlib import Path
from typing import Any

from conformance import __version__
from conformance.terms import files
from conformance.terms.ledger import Party
from conformance.transport import credentials
from conformance.transport.call import Call
from conformance.transport.exchange import Exchange, FailureKind, GoAhead, TransportFailure
from conformance.transport.settings import Settings
from conformance.wire.grpc_request import GRPC_METHOD
from conformance.wire.request import Message

NAME, PART = "run.har", "run.har.part"
HIDDEN = "..."
# What an earlier run has left in a folder.
OF_ANOTHER_RUN = (NAME, f"{PART}*")


class HarError(ValueError):
    """A file is no recording of a run; the message is one line."""


class JournalError(OSError):
    """A call cannot be written down, or what was is not whole."""


class Journal:
    """Writes calls into a file of a folder, a line each; every process has a file of its own."""

    def __init__(self, folder: Path, process: str, settings: Settings) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{PART}{process}"
        self._path.unlink(missing_ok=True)
        self._settings = settings

    def __call__(self, call: Call) -> None:
        """Write a call down, as ASCII: the text of an answer may have an end of line of Unicode's, or half a letter."""
        lines = [json.dumps(entry) + "\n" for entry in entries(call, self._settings)]
        try:
            with self._path.open("a", encoding="ascii") as file:
                file.writelines(lines)
        except OSError as error:
            raise JournalError(error.errno, error.strerror) from error


# --- writing ---------------------------------------------------------------------------------------------------------


def entries(call: Call, settings: Settings) -> Iterator[dict[str, Any]]:
    """Yield an entry for each exchange of a call; one for a call that found no server."""
    url = settings.where(call.messages[0]) + call.messages[0].path
    for place, exchange in enumerate(call.exchanges or [Exchange(0, call.messages[0], url)]):
        started = datetime.now(UTC) - timedelta(seconds=exchange.elapsed)
        time = round(exchange.elapsed * 1000, 3)
        yield {
            "startedDateTime": started.isoformat(timespec="milliseconds"),
            "time": time,
            "request": _request(exchange, settings),
            "response": _response(exchange, settings.secrets),
            "cache": {},
            "timings": {"send": 0, "wait": time, "receive": 0},
            "_scope": call.scope,
            "_call": call.index,
            "_place": place,
            **_given(_note=exchange.note, _lost=call.lost, _go_ahead=exchange.go_ahead),
            **({"_died": True} if call.has_died else {}),
            **_failed(exchange),
            **(
                {"_grpc": {"code": exchange.code, "details": _hidden(exchange, settings)}} if _is_call(exchange) else {}
            ),
        }


def _is_call(exchange: Exchange) -> bool:
    return exchange.message.method == GRPC_METHOD


def _hidden(exchange: Exchange, settings: Settings) -> str:
    return credentials.hide(exchange.details, settings.secrets)


def _failed(exchange: Exchange) -> dict[str, Any]:
    if exchange.failure is None:
        return {}
    return {"_failure": exchange.failure.text, "_failure_kind": str(exchange.failure.kind)}


def _failure(entry: Mapping[str, Any]) -> TransportFailure | None:
    """Return what went wrong; earlier recordings have no kind."""
    text = entry.get("_failure")
    return TransportFailure(FailureKind(entry.get("_failure_kind", FailureKind.BROKEN)), str(text)) if text else None


def _given(**members: str | None) -> dict[str, str]:
    return {name: value for name, value in members.items() if value}


def _request(exchange: Exchange, settings: Settings) -> dict[str, Any]:
    message = exchange.message
    hidden = {name.lower() for name, _ in settings.headers if name.lower() != "host"}
    body = {"mimeType": message.header("Content-Type") or "", **_coded(message.body, "_encoding")}
    return {
        "method": "POST" if message.method == GRPC_METHOD else message.method,
        "url": exchange.url,
        "httpVersion": "HTTP/2" if _is_call(exchange) else "HTTP/1.1",
        "cookies": [],
        "headers": [*_headers(message.headers, ()), *_headers(settings.headers, hidden)],
        "queryString": [],
        "headersSize": -1,
        "bodySize": len(message.body),
        **({"postData": body} if message.body else {}),
    }


def _response(exchange: Exchange, hidden: Sequence[str]) -> dict[str, Any]:
    headers = tuple((name, credentials.hide(value, hidden)) for name, value in exchange.headers)
    kind = next((value for name, value in headers if name.lower() == "content-type"), "")
    body = credentials.hide_bytes(exchange.body, hidden)
    return {
        "status": exchange.status or 0,
        "statusText": exchange.code,
        "httpVersion": "HTTP/2" if _is_call(exchange) else exchange.version,
        "cookies": [],
        "headers": _headers(headers, {"set-cookie"}),
        "content": {"size": len(body), "mimeType": kind, **_coded(body, "encoding")},
        "redirectURL": "",
        "headersSize": -1,
        "bodySize": len(body),
    }


def _headers(headers: Sequence[tuple[str, str]], hidden: Collection[str]) -> list[dict[str, str]]:
    return [{"name": name, "value": HIDDEN if name.lower() in hidden else value} for name, value in headers]


def _coded(body: bytes, encoding: str) -> dict[str, str]:
    return {"text": b64encode(body).decode(), encoding: "base64"}


def merge(folder: Path, url: str, order: Mapping[str, int], grpc: str = "", party: Party = Party.SERVER) -> None:
    """Make one archive of the files of all journals in a folder, and take them away.

    Args:
        folder: of the evidence.
        url: of the target.
        order: scope -> its place in the run; what is not there comes first.
        grpc: where gRPC was judged, as a URL; empty where it was not.
        party: who was judged; a recording of a client says so.

    Raises:
        OSError: it cannot be written; the parts are left as they are.
    """
    parts = sorted(folder.glob(f"{PART}*"))
    lines = [line for part in parts for line in part.read_text(encoding="ascii").splitlines()]
    log: dict[str, Any] = {
        "version": "1.2",
        "creator": {"name": "oip-conformance", "version": __version__},
        "_target": url,
        **({"_grpc": grpc} if grpc else {}),
        **({"_party": str(party)} if party is not Party.SERVER else {}),
    }
    try:
        sorted_lines = ",\n".join(sorted(lines, key=lambda line: _place(line, order)))
    except ValueError as error:  # the disk was full then
        raise JournalError(EIO, "a part of it is cut short") from error
    head = json.dumps({"log": log}).removesuffix("}}")
    with (folder / NAME).open("w", encoding="ascii") as file:
        file.writelines((head, ', "entries": [\n', sorted_lines, "\n]}}\n"))
    for part in parts:
        part.unlink()


def _place(line: str, order: Mapping[str, int]) -> tuple[int, int, int]:
    """Return where an entry belongs in the run."""
    entry = json.loads(line)
    return order.get(entry["_scope"], -1), entry["_call"], entry["_place"]


# --- reading ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Recording:
    """An archive that was read.

    Attributes:
        url: of the target.
        calls: by scope and index; of several recordings of one call, by several processes, the first counts.
        times: of the first exchange and of the last.
        grpc: where gRPC was judged, as a URL; empty where it was not.
    """

    url: str
    calls: Mapping[tuple[str, int], Call]
    times: tuple[datetime, datetime]
    grpc: str = ""


def load(path: Path) -> Recording:
    """Read an archive.

    Raises:
        HarError: it cannot be read, or is no recording of a run that judged a server.
    """
    try:
        log = files.json_of(files.read_bytes(path, files.WRITTEN_BY_A_RUN))["log"]
        if log.get("_party", Party.SERVER) != Party.SERVER:
            raise HarError(f"{path} is a recording of a client, and no server can be judged by it")
        times = sorted(datetime.fromisoformat(entry["startedDateTime"]) for entry in log["entries"])
        return Recording(str(log["_target"]), _calls(log["entries"]), (times[0], times[-1]), str(log.get("_grpc", "")))
    except HarError:
        raise
    except files.NotOpenedError as error:
        raise HarError(f"{path}: {error}") from error
    except files.UnreadableError as error:
        raise HarError(f"{path} is no recording of this suite: {error}") from error
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise HarError(f"{path} is no recording of this suite: {type(error).__name__}: {error}") from error


def _calls(found: Sequence[Mapping[str, Any]]) -> dict[tuple[str, int], Call]:
    grouped: dict[tuple[str, int], dict[int, Mapping[str, Any]]] = {}
    for entry in found:
        grouped.setdefault((entry["_scope"], entry["_call"]), {}).setdefault(entry["_place"], entry)
    return {
        (scope, index): _call(scope, index, [places[place] for place in sorted(places)])
        for (scope, index), places in grouped.items()
    }


def _call(scope: str, index: int, found: Sequence[Mapping[str, Any]]) -> Call:
    exchanges = tuple(map(exchange_of, found))
    lost = found[0].get("_lost")
    has_died = found[0].get("_died") is True
    return Call(scope, index, tuple(one.message for one in exchanges), () if lost else exchanges, lost, has_died)


def exchange_of(entry: Mapping[str, Any]) -> Exchange:
    """Return the exchange that an entry is.

    Raises:
        ValueError, LookupError, TypeError: it is none.
    """
    sent, came = entry["request"], entry["response"]
    url = str(sent["url"])
    body = b64decode(sent["postData"]["text"], validate=True) if "postData" in sent else b""
    ended = entry.get("_grpc", {})
    return Exchange(
        0,
        Message(url, _pairs(sent["headers"]), body, GRPC_METHOD if "_grpc" in entry else sent["method"]),
        url,
        int(came["status"]) or None,
        _pairs(came["headers"]),
        b64decode(came["content"]["text"], validate=True),
        _failure(entry),
        float(entry["time"]) / 1000,
        entry.get("_note", ""),
        version="HTTP/1.1" if "_grpc" in entry else str(came["httpVersion"]),
        go_ahead=GoAhead(entry["_go_ahead"]) if "_go_ahead" in entry else None,
        code=str(ended.get("code", "")),
        details=str(ended.get("details", "")),
    )


def _pairs(headers: Sequence[Mapping[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((header["name"], header["value"]) for header in headers)
