"""The evidence of one row that a client does not meet, as files.

CHECK-ROW/
  asked.jsonl          the lines for the adapter, hello first: `python adapter.py < asked.jsonl` asks for the same again
  said.jsonl           what the client gave, a line for each that was asked
  request.bin answer.bin   the bodies of the exchange that shows it, where there is one
  request.txt answer.txt   request line or status, and headers
  bytes.txt            where the wrong byte is, annotated
  check.json           which check and row, for `oip-conformance replay`
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from conformance.clients import adapter_lines
from conformance.clients.logging_adapter import AdapterCall
from conformance.judging.body_files import write_body
from conformance.spec.check import Check, Row
from conformance.spec.ledger import Party
from conformance.spec.result import Failure
from conformance.transport.exchange import Reply


def write(
    folder: Path, check: Check, row: Row, failure: Failure, reply: Reply | None, asked: Sequence[AdapterCall]
) -> None:
    """Write the evidence of one row.

    Args:
        folder: of the row; made if need be.
        check: that the client does not meet on the row.
        row: see there.
        failure: what is not met.
        reply: the exchange that shows it, or None.
        asked: what was asked of the adapter in this row.
    """
    folder.mkdir(parents=True, exist_ok=True)
    about = {"party": str(Party.CLIENT), "check": check.id, "row": row.id, "requirement": failure.requirement}
    (folder / "check.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    (folder / "asked.jsonl").write_bytes(b"".join([adapter_lines.make_hello(1), *_commands(asked)]))
    (folder / "said.jsonl").write_bytes(
        b"".join(
            adapter_lines.make_results_line(place, one.results) for place, one in enumerate(asked, 2) if one.results
        )
    )
    if reply is None:
        return
    (folder / "request.bin").write_bytes(reply.exchange.message.body)
    write_body(folder, "answer", reply.body)
    if failure.bytes:
        (folder / "bytes.txt").write_text("\n".join(failure.bytes) + "\n", encoding="utf-8")
    if failure.evidence:
        for name, message in (("request", failure.evidence["request"]), ("answer", failure.evidence["answer"])):
            (folder / f"{name}.txt").write_text("\n".join(message["head"]) + "\n", encoding="utf-8")


def _commands(asked: Sequence[AdapterCall]) -> list[bytes]:
    return [
        adapter_lines.make_infer(
            place, one.transport, one.address, one.inferences, at_once=one.at_once, timeout=one.timeout
        )
        for place, one in enumerate(asked, 2)
    ]
