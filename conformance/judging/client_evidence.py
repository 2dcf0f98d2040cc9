"""Evidence files for the failures of a client.

CHECK-ROW/ for a client with an adapter, CHECK-CLIENT/ for a watched client:
  request.bin answer.bin   the bodies of the failing exchange; for a watched client the answer is named `response`
  request.txt answer.txt   request line or status, and headers
  bytes.txt                annotated bytes around the first wrong byte
Further files for a client with an adapter:
  asked.jsonl          the lines sent to the adapter; `python adapter.py < asked.jsonl` repeats them
  said.jsonl           the results that the client returned, one line per request line
  check.json           the check and the row, for `oip-conformance replay`
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from conformance.clients import adapter_lines
from conformance.clients.adapter import AdapterCall
from conformance.clients.recording.records import RecordedExchange, to_exchange
from conformance.judging.evidence import build_folder_name, write_body, write_texts
from conformance.spec.check import Case
from conformance.spec.ledger import Party
from conformance.spec.result import Failure
from conformance.transport.exchange import Reply
from conformance.transport.journal import convert_write_errors


@convert_write_errors()
def write_row(folder: Path, case: Case, failure: Failure, reply: Reply | None, calls: Sequence[AdapterCall]) -> None:
    """Write the evidence files for one failed row of a client with an adapter.

    Args:
        folder: the evidence folder of the run; a subfolder for the row is created in it.
        case: the row that failed.
        failure: the failure.
        reply: the exchange that shows the failure, or None.
        calls: the calls that the suite made to the adapter in this row.
    """
    own = folder / build_folder_name(*case.ids)
    own.mkdir(parents=True, exist_ok=True)
    about = {"party": str(Party.CLIENT), "check": case.check.id, "row": case.row.id, "requirement": failure.requirement}
    texts = {"check.json": json.dumps(about, indent=1)}
    lines, said = [adapter_lines.make_hello(1)], []
    for place, one in enumerate(calls, 2):
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
    """Write the evidence files for the first request of a watched client that violates a requirement.

    Args:
        folder: the evidence folder of the run; a subfolder for the request is created in it.
        check: the check of the requirement.
        client: the name of the client.
        recorded: the request and its answer.
        failure: the failure as reports show it.

    Raises:
        OSError: a file cannot be written.
    """
    own = folder / build_folder_name(check, client)
    own.mkdir(parents=True, exist_ok=True)
    exchange, received = to_exchange(recorded, ""), recorded.received
    (own / "request.bin").write_bytes(received.body)
    (own / "response.bin").write_bytes(exchange.body)
    note = f"\n({exchange.note})" if exchange.note else ""
    texts = {
        "request.txt": _format_message_head(f"{received.method} {received.path} {received.version}", received.headers)
        + note,
        "response.txt": _format_message_head(Reply(exchange).outcome(), exchange.headers),
        "bytes.txt": "\n".join(failure.bytes),
    }
    write_texts(own, texts)


def _format_message_head(first_line: str, headers: Sequence[tuple[str, str]]) -> str:
    return "\n".join([first_line, *(f"{name}: {value}" for name, value in headers)])
