"""The evidence of one failed row, as files: what was sent, what came, and two programs that send it again.

CHECK-ROW/
  request.bin response.bin     the bodies; of a very long answer head and tail, and its length and digest
  request.txt response.txt     request line or status, and headers
  bytes.txt                    where the first wrong byte is, annotated
  repro.sh repro.py            curl, and httpx; a header that is secret is taken from the environment. Over gRPC grpcio
  course/                      where one request does not show it: what was sent before it on its connection, and what
                               was in flight with it; the programs send all of it, in its manner
  check.json                   which check and row, for `oip-conformance replay`
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.judging import reproducers
from conformance.judging.message_rendering import format_message, summarize_answer
from conformance.judging.reproducers import map_secret_variables
from conformance.judging.reproduction import Reproduction, is_single_request
from conformance.spec.result import Failure
from conformance.spec.text import escape_text
from conformance.transport.credentials import hide, hide_bytes
from conformance.transport.exchange import Exchange, Reply
from conformance.transport.har_bodies import JUDGED_LIMIT, Excerpt, shorten
from conformance.transport.settings import Settings
from conformance.wire.grpc_request import parse_request

MAX_SAVED_FILES = 50
MAX_SAVED_BYTES = 64 * 1024 * 1024  # of all files together


def build_folder_name(check: str, row: str) -> str:
    """Return the name of a row's folder."""
    return re.sub(r"[^\w.\-]+", "_", f"{check}-{row}" if row else check)


def write(folder: Path, about: Mapping[str, Any], failure: Failure, steps: Reproduction, settings: Settings) -> None:
    """Write the evidence of one row.

    Args:
        folder: of the row; made if need be.
        about: what `replay` has to know.
        failure: what is not met.
        steps: that lead to the exchange which shows it, the first of the last step.
        settings: of the target, for what must not be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    exchange = steps[-1][0]
    message, secrets = exchange.message, settings.secrets
    (folder / "request.bin").write_bytes(message.body)
    write_body(folder, "response", hide_bytes(exchange.body, secrets))
    texts = {
        "request.txt": _request_head(exchange, settings),
        "response.txt": hide(_response_head(exchange), secrets),
        "bytes.txt": "\n".join(failure.bytes),
        **reproducers.build_programs(about, failure, steps, settings),
        "check.json": hide(json.dumps(about, indent=1), secrets),
    }
    if not is_single_request(steps):
        reproducers.write(folder, steps, settings)
    write_texts(folder, texts)
    (folder / "repro.sh").chmod(0o755)


def _request_head(exchange: Exchange, settings: Settings) -> str:
    message = exchange.message
    shown = [
        *message.headers,
        *[(name, "..." if name in map_secret_variables(settings) else v) for name, v in settings.headers],
    ]
    lines = [f"{message.method} {exchange.url}", *[f"{name}: {value}" for name, value in shown]]
    if Reply(exchange).is_over_grpc:
        lines.append(format_message(parse_request(message), len(message.body), lines=True))
    return "\n".join([*lines, *([f"({exchange.note})"] if exchange.note else [])])


def _response_head(exchange: Exchange) -> str:
    status = Reply(exchange).status_line if exchange.status else "no answer"
    if exchange.details:
        status += f": {escape_text(exchange.details, 1000)}"
    if exchange.code and exchange.body:
        status += f"\n{summarize_answer(exchange)}"
    lines = [status, *[f"{escape_text(name)}: {escape_text(value)}" for name, value in exchange.headers]]
    return "\n".join([*lines, *([f"({escape_text(str(exchange.failure))})"] if exchange.failure else [])])


def write_texts(folder: Path, texts: Mapping[str, str]) -> None:
    """Write files that each end in a line's end.

    Raises:
        OSError: they cannot be written.
    """
    for name, text in texts.items():
        (folder / name).write_text(text.rstrip("\n") + "\n", encoding="utf-8", errors="backslashreplace")


def write_body(folder: Path, name: str, body: bytes) -> None:
    """Write a body as `NAME.bin`, or what is kept of it as `NAME.head.bin`, `NAME.tail.bin` and `NAME.json`.

    Raises:
        OSError: it cannot be written.
    """
    kept = shorten(body, JUDGED_LIMIT)
    if not isinstance(kept, Excerpt):
        (folder / f"{name}.bin").write_bytes(body)
        return
    (folder / f"{name}.head.bin").write_bytes(kept[: kept.head])
    (folder / f"{name}.tail.bin").write_bytes(kept[kept.head :])
    about = {"length": kept.length, "sha256": kept.digest}
    (folder / f"{name}.json").write_text(json.dumps(about) + "\n", encoding="ascii")


@dataclass(slots=True)
class SavedBodies:
    """The request bodies of one process that are too long for a command, so that a failure's command can send them.

    They are files in a folder of their own among the user's temporary files. Nothing is written before the first
    body is kept.
    """

    _folder: Path | None = None
    _files: dict[str, Path] = field(default_factory=dict)
    _room: int = MAX_SAVED_BYTES

    def keep(self, body: bytes) -> str | None:
        """Return the file that holds a body; None where there is no room for it."""
        name = hashlib.sha256(body).hexdigest()[:16]
        if name in self._files:
            return str(self._files[name])
        if len(self._files) >= MAX_SAVED_FILES or len(body) > self._room:
            return None
        try:
            self._folder = self._folder or Path(tempfile.mkdtemp(prefix="oip-conformance-"))
            path = self._folder / f"{name}.bin"
            path.write_bytes(body)
        except OSError:  # a full disk is no reason to judge otherwise
            return None
        self._files[name] = path
        self._room -= len(body)
        return str(path)
