"""The requests of a certification, whole, as the run sent them.

A recording has no more than a digest of a long request, since the suite makes the same again. So it does here: the
recording is judged once more, and what the suite asks of it is what it asked of the server.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from conformance.certification.manifest import RECORDING, REPORT
from conformance.judging.selection import list_profile_rows
from conformance.judging.session import Session
from conformance.spec import packed_files
from conformance.transport import recording
from conformance.transport import settings as settings_of
from conformance.transport.exchange import Call, Exchange
from conformance.transport.replay import ReplayTarget
from conformance.transport.settings import Settings
from conformance.wire.grpc_request import GRPC_METHOD
from conformance.wire.request import Message

LONGEST_REPORT = 1 << 30  # bytes


class _Heard(ReplayTarget):
    """A recording that keeps what it is asked, in order."""

    def __init__(self, settings: Settings, calls: Mapping[tuple[str, int], Call]) -> None:
        super().__init__(settings, calls)
        self.messages: list[Message] = []

    def _run_call(self, call: Call, exchange: Callable[[], Sequence[Exchange]]) -> Sequence[Exchange]:
        found = super()._run_call(call, exchange)
        self.messages += call.messages[: len(found)]
        return found


def messages(certified: Path) -> list[Message]:
    """Return the requests over HTTP, but for the few that state a length or a framing of their own.

    These go out over a bare socket; the client under measurement takes care of the framing itself.
    """
    kept = recording.load(certified / RECORDING)
    report = json.loads(packed_files.read_file_bytes(certified / REPORT, LONGEST_REPORT))
    target = _Heard(settings_of.make_settings(kept.url), kept.calls)
    with Session(target) as session:
        session.discover(report["options"]["extensions"])
        for case in list_profile_rows("certify", transports=target.settings.transports):
            session.judge(case)
    return [one for one in target.messages if one.method != GRPC_METHOD and not _is_framed(one)]


def _is_framed(message: Message) -> bool:
    return any(message.header(name) is not None for name in ("Content-Length", "Transfer-Encoding"))
