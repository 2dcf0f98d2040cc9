"""The evidence of a requirement that a watched client does not meet, as files: what it sent, and what it was answered.

CHECK-CLIENT/
  request.bin response.bin     the bodies
  request.txt response.txt     request line or status, and headers
  bytes.txt                    where the first wrong byte is, annotated
"""

from __future__ import annotations

from pathlib import Path

from conformance.clients.recording.exchanges import to_exchange
from conformance.clients.recording.records import RecordedExchange
from conformance.judging.evidence import build_folder_name
from conformance.spec.result import Failure
from conformance.transport.exchange import Reply


def write(folder: Path, check: str, client: str, recorded: RecordedExchange, failure: Failure) -> None:
    """Write the first request of a client that misses a requirement.

    Args:
        folder: of the run; the request's own is made in it.
        check: that judges the requirement.
        client: its name.
        recorded: the request and its answer.
        failure: as it is shown.

    Raises:
        OSError: it cannot be written.
    """
    own = folder / build_folder_name(check, client)
    own.mkdir(parents=True, exist_ok=True)
    exchange = to_exchange(recorded, "")
    received = recorded.received
    (own / "request.bin").write_bytes(received.body)
    (own / "response.bin").write_bytes(exchange.body)
    request = [f"{received.method} {received.path} {received.version}", *_headers(received.headers)]
    request += [f"({exchange.note})"] if exchange.note else []
    texts = {
        "request.txt": request,
        "response.txt": [Reply(exchange).outcome(), *_headers(exchange.headers)],
        "bytes.txt": failure.bytes,
    }
    for name, lines in texts.items():
        (own / name).write_text("\n".join(lines) + "\n", encoding="utf-8", errors="backslashreplace")


def _headers(headers: tuple[tuple[str, str], ...]) -> list[str]:
    return [f"{name}: {value}" for name, value in headers]
