"""Replays a recording in place of a target: each request receives its recorded answer.

Under the profiles `certify` and `quick` the requests depend only on the suite's version and options. So the recording
contains each request. If a request is missing or differs, the recorded run had another version or other options, and
the row is in error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from conformance.transport.exchange import Call, Exchange
from conformance.transport.har_bodies import Excerpt
from conformance.transport.settings import Settings
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLostError
from conformance.wire.request import Message


class NotRecordedError(Exception):
    """The recording does not contain the request; the message is one line."""


class PartlyRecordedError(NotRecordedError):
    """The recording contains only a part of the answer; the message is one line."""


class ReplayTarget(Target):
    """A target that answers from the calls of a recording.

    `used`: scope and index of each call that was requested.
    """

    def __init__(self, settings: Settings, calls: Mapping[tuple[str, int], Call]) -> None:
        super().__init__(settings)
        self._recorded = calls
        self.used: set[tuple[str, int]] = set()

    @property
    def has_hung(self) -> bool:
        """Whether the target had hung before this scope in the recorded run."""
        first = self._recorded.get((self._scope, 0))
        return first is not None and first.has_hung

    def _run_call(self, call: Call, exchange: Callable[[], Sequence[Exchange]]) -> Sequence[Exchange]:
        """Return the recorded exchanges of a call.

        Raises:
            NotRecordedError: the call is missing, or its request differs.
            PartlyRecordedError: an answer was recorded only in part.
            TargetLostError: the target was lost in the recorded run.
        """
        del exchange
        found = self._recorded.get((call.scope, call.index))
        self.used.add((call.scope, call.index))
        if found is None:
            raise NotRecordedError(f"the recording has no call {call.index} of {call.scope}")
        if found.lost:
            self.lost, self.has_died = found.lost, found.has_died
            raise TargetLostError(found.lost, has_died=found.has_died)
        for sent, recorded in zip(call.messages, found.messages, strict=False):
            if difference := self._find_difference(sent, recorded):
                raise NotRecordedError(f"call {call.index} of {call.scope} was recorded with another {difference}")
        for one in found.exchanges:
            if isinstance(one.body, Excerpt):
                raise PartlyRecordedError(
                    f"the recording has only {len(one.body)} of {one.body.length} bytes of an answer in"
                    f" call {call.index} of {call.scope}, so this answer cannot be judged again"
                )
        return [replace(one, message=sent) for sent, one in zip(call.messages, found.exchanges, strict=False)]

    def _find_difference(self, sent: Message, recorded: Message) -> str | None:
        """Return "path", "header" or "body" if a message differs there from the recorded message, or None.

        The user's headers are not compared.
        """
        if (sent.method, self.settings.find_base_url(sent) + sent.path) != (recorded.method, recorded.path):
            return "path"
        if sent.headers != recorded.headers[: len(sent.headers)]:
            return "header"
        body = recorded.body
        is_same = body.is_excerpt_of(sent.body) if isinstance(body, Excerpt) else body == sent.body
        return None if is_same else "body"

    def pause(self, seconds: float) -> None:
        """Do nothing: a recording is never busy."""

    def may_repeat(self, scope: str) -> bool:
        """Return whether the row was repeated in the recorded run."""
        return (scope, 0) in self._recorded

    def close(self) -> None:
        """Do nothing: a replay has no connections."""
