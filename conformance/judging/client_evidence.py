"""The evidence of what a client does not meet, as files.

CHECK-ROW/ of a client with an adapter, CHECK-CLIENT/ of a watched one:
  request.bin answer.bin   the bodies of the exchange that shows it; of a watched client the answer is `response`
  request.txt answer.txt   request line or status, and headers
  bytes.txt                where the first wrong byte is, annotated
With an adapter, too:
  asked.jsonl          the lines for the adapter, hello first: `python adapter.py < asked.jsonl` asks for the same again
  said.jsonl           what the client gave, a line for each that was asked
  check.json           which check and row, for `oip-conformance replay`
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from conformance.clients import adapter_lines
from conformance.clients.adapter import AdapterCall
from conformance.clients.recording.records import RecordedExchange, to_exchange
from conformance.judging.evidence import build_folder_name, write_body, write_texts
from conformance.spec.check import Check, Row
from conformance.spec.ledger import Party
from conformance.spec.result import Failure
from conformance.transport.exchange import Reply


def write_row(
    folder: Path, check: Check, row: Row, failure: Failure, reply: Reply | None, asked: Sequence[AdapterCall]
) -> None:
    """Write the evidence of one row of a client with an adapter.

    Args:
        folder: of the run; the row's own is made in it.
        check: that the client does not meet on the row.
        row: see there.
        failure: what is not met.
        reply: the exchange that shows it, or None.
        asked: what was asked of the adapter in this row.
    """
    own = folder / build_folder_name(check.id, row.id)
    own.mkdir(parents=True, exist_ok=True)
    about = {"party": str(Party.CLIENT), "check": check.id, "row": row.id, "requirement": failure.requirement}
    texts = {"check.json": json.dumps(about, indent=1)}
    lines, said = [adapter_lines.make_hello(1)], []
    for place, one in enumerate(asked, 2):
        asks = one.transport, one.address, one.inferences
        lines.append(adapter_lines.make_infer(place, *asks, at_once=one.at_once, timeout=one.timeout))
        said += [adapter_lines.make_results_line(place, one.results)] if one.results else []
    (own / "asked.jsonl").write_bytes(b"".join(lines))
    (own / "said.jsonl").write_bytes(b"".join(said))
    if reply is not None:
        (own / "request.bin").write_bytes(reply.exchange.message.body)
        write_body(own, "answer", reply.body)
        if failure.evidence:
            texts["request.txt"] = "\n".join(failure.evidence["request"]["head"])
            texts["answer.txt"] = "\n".join(failure.evidence["answer"]["head"])
        texts |= {"bytes.txt": "\n".join(failure.bytes)} if failure.bytes else {}
    write_texts(own, texts)


def write_request(folder: Path, check: str, client: str, recorded: RecordedExchange, failure: Failure) -> None:
    """Write the first request of a watched client that misses a requirement.

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
    exchange, received = to_exchange(recorded, ""), recorded.received
    (own / "request.bin").write_bytes(received.body)
    (own / "response.bin").write_bytes(exchange.body)
    note = f"\n({exchange.note})" if exchange.note else ""
    texts = {
        "request.txt": _head(f"{received.method} {received.path} {received.version}", received.headers) + note,
        "response.txt": _head(Reply(exchange).outcome(), exchange.headers),
        "bytes.txt": "\n".join(failure.bytes),
    }
    write_texts(own, texts)


def _head(first: str, headers: Sequence[tuple[str, str]]) -> str:
    return "\n".join([first, *(f"{name}: {value}" for name, value in headers)])
