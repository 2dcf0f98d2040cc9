"""Evidence files of one failed row: the request, the response, and two programs that send the request again.

CHECK-ROW/
  request.bin response.bin     the bodies; for a very long answer its head, tail, length and digest
  request.txt response.txt     request line or status, and headers
  bytes.txt                    annotated bytes around the first wrong byte
  repro.sh repro.py            use curl and httpx, or grpcio over gRPC; secret headers come from the environment
  course/                      the requests that reproduce the failure together, if one alone does not: also earlier
                               and concurrent ones; the programs send all of them as the suite did
  check.json                   the check and the row, for `oip-conformance replay`
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
from conformance.transport.journal import convert_write_errors
from conformance.transport.settings import Settings
from conformance.wire.grpc_request import parse_request

PATTERNS_FILE = "patterns.json"  # beside the folders of rows; absent if the run found no pattern
MAX_SAVED_FILES = 50
MAX_SAVED_BYTES = 64 * 1024 * 1024  # total of all files


def build_folder_name(check: str, row: str) -> str:
    """Return the name of the evidence folder of a row."""
    return re.sub(r"[^\w.\-]+", "_", f"{check}-{row}" if row else check)


@convert_write_errors()
def write(folder: Path, about: Mapping[str, Any], failure: Failure, steps: Reproduction, settings: Settings) -> None:
    """Write the evidence files of one failed row of a server.

    Args:
        folder: the folder of the row; created if it does not exist.
        about: the data that `replay` needs.
        failure: the failure.
        steps: the requests that reproduce the failure; the first exchange of the last step shows the failure.
        settings: the settings of the target, with the secrets that must not be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    exchange = steps[-1][0]
    message, secrets = exchange.message, settings.secrets
    (folder / "request.bin").write_bytes(message.body)
    write_body(folder, "response", hide_bytes(exchange.body, secrets))
    texts = {
        "request.txt": _format_request_head(exchange, settings),
        "response.txt": hide(_format_response_head(exchange), secrets),
        "bytes.txt": "\n".join(failure.bytes),
        **reproducers.build_programs(about, failure, steps, settings),
        "check.json": hide(json.dumps(about, indent=1), secrets),
    }
    if not is_single_request(steps):
        reproducers.write(folder, steps, settings)
    write_texts(folder, texts)
    (folder / "repro.sh").chmod(0o755)


def _format_request_head(exchange: Exchange, settings: Settings) -> str:
    message = exchange.message
    shown = [
        *message.headers,
        *[(name, "..." if name in map_secret_variables(settings) else v) for name, v in settings.headers],
    ]
    lines = [f"{message.method} {exchange.url}", *[f"{name}: {value}" for name, value in shown]]
    if Reply(exchange).is_over_grpc:
        lines.append(format_message(parse_request(message), len(message.body), lines=True))
    return "\n".join([*lines, *([f"({exchange.note})"] if exchange.note else [])])


def _format_response_head(exchange: Exchange) -> str:
    status = Reply(exchange).status_line if exchange.status else "no answer"
    if exchange.details:
        status += f": {escape_text(exchange.details, 1000)}"
    if exchange.code and exchange.body:
        status += f"\n{summarize_answer(exchange)}"
    lines = [status, *[f"{escape_text(name)}: {escape_text(value)}" for name, value in exchange.headers]]
    return "\n".join([*lines, *([f"({escape_text(str(exchange.failure))})"] if exchange.failure else [])])


def write_texts(folder: Path, texts: Mapping[str, str]) -> None:
    """Write text files, each with a newline at its end.

    Raises:
        OSError: a file cannot be written.
    """
    for name, text in texts.items():
        (folder / name).write_text(text.rstrip("\n") + "\n", encoding="utf-8", errors="backslashreplace")


def write_body(folder: Path, name: str, body: bytes) -> None:
    """Write a body as `NAME.bin`; write a long body as `NAME.head.bin`, `NAME.tail.bin` and `NAME.json`.

    Raises:
        OSError: a file cannot be written.
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
    """Files with the request bodies that are too long for the command line that repeats the request.

    The files are in a temporary folder, which is created when the first body is saved.
    """

    _folder: Path | None = None
    _files: dict[str, Path] = field(default_factory=dict)
    _room: int = MAX_SAVED_BYTES

    def save(self, body: bytes) -> str | None:
        """Save a body and return the path of its file, or None if the limits are reached or writing fails."""
        name = hashlib.sha256(body).hexdigest()[:16]
        if name in self._files:
            return str(self._files[name])
        if len(self._files) >= MAX_SAVED_FILES or len(body) > self._room:
            return None
        try:
            self._folder = self._folder or Path(tempfile.mkdtemp(prefix="oip-conformance-"))
            path = self._folder / f"{name}.bin"
            path.write_bytes(body)
        except OSError:  # a full disk must not change the outcome
            return None
        self._files[name] = path
        self._room -= len(body)
        return str(path)
