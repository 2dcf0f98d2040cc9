"""Rows name the extensions that they use: a server that offers none of them is not sent their requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from conformance.judging.selection import Subjects, list_profile_rows
from conformance.judging.session import Session
from conformance.spec.outcome import Outcome
from conformance.transport.settings import Settings
from conformance.transport.target import Target
from conformance.wire.request import INFERENCE_HEADER, Message
from tests.support import unusual_models

MEMBERS: Mapping[str, Sequence[bytes]] = {
    "binary_tensor_data": (b'"binary_data"', b'"binary_data_size"', b'"binary_data_output"'),
    "classification": (b'"classification"',),
}


class TappedTarget(Target):
    """A target that keeps what is sent in any scope."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.sent: list[Message] = []

    @contextmanager
    def scope(self, name: str, **options: Any) -> Iterator[None]:
        with super().scope(name, **options):
            try:
                yield
            finally:
                self.sent += [exchange.message for exchange in self.exchanges]


def find_extensions(message: Message) -> set[str]:
    """Return the extensions that a request uses."""
    headers = {value for name, value in message.headers if name.lower() == INFERENCE_HEADER.lower()}
    found = {"raw" if headers == {"0"} else "binary_tensor_data"} if headers else set()
    return found | {name for name, members in MEMBERS.items() if any(member in message.body for member in members)}


@pytest.mark.parametrize(
    ("offered", "model"),
    [("protocol", None), ("protocol", "multi"), ("binary_tensor_data", None), ("classification", "scores")],
)
def test_no_row_uses_an_extension_that_is_not_offered(offered: str, model: str | None) -> None:
    subjects = Subjects((model,), with_roles=False) if model else Subjects()
    rows = [case for case in list_profile_rows("quick", subjects=subjects) if case[0].area != "walk"]
    with unusual_models.serve() as url, Session(target := TappedTarget(Settings(url))) as session:
        session.discover([offered], subjects)
        used, outcomes = {}, set()
        for case in rows:
            target.sent.clear()
            result = session.judge(case)
            outcomes.add(result.outcome)
            unoffered = set().union(*map(find_extensions, target.sent)) - set(session.discovery_result.offered)
            if unoffered and result.outcome is not Outcome.NOT_APPLICABLE:
                used[result.label] = unoffered
    assert used == {}
    assert outcomes <= {Outcome.PASS, Outcome.OBSERVED, Outcome.NOT_APPLICABLE}
