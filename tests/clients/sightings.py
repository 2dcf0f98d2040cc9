"""Rows of the suite, run against the honest client of this process while it is altered: which, and what they see."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Self
from unittest.mock import patch
from zlib import crc32

from conformance.checks.client import wrong_answers
from conformance.clients.adapter import AdapterError, AdapterHangsError
from conformance.clients.answers.script import Script
from conformance.clients.inference import Inference, Introduction, Result, parse_result
from conformance.clients.peer import http_peer
from conformance.clients.peer.peer import Peer
from conformance.clients.peer.scenario import Scenario
from conformance.clients.rules.judging import judge_request
from conformance.judging.client_session import ClientJudge
from conformance.judging.selection import CLIENTS, list_profile_rows
from conformance.spec.check import Case
from conformance.spec.result import CheckResult
from tests.clients.alterations import Alteration, apply
from tests.clients.honest.lines import Adapter, introduction
from tests.support.samples import read_seen_by
from tests.support.sightings import MET, UnmetRow

# Seconds that the client has for itself beside those of its inferences.
MARGIN = 1.0


@dataclass(frozen=True, slots=True)
class Sighting:
    """What rows saw of one client.

    Attributes:
        rows: how many were run.
        watched: the requirements that its requests alone miss, which is what a recording peer sees.
        touched: whether an altered step was ever taken.
    """

    name: str
    rows: int
    misses: tuple[UnmetRow, ...]
    watched: tuple[str, ...]
    touched: bool
    seconds: float

    def select(self, *outcomes: str) -> list[UnmetRow]:
        """Return the rows with these outcomes."""
        return [miss for miss in self.misses if miss.outcome in outcomes]

    @property
    def named(self) -> set[str]:
        """The requirements that are not met, or advised."""
        return {miss.requirement for miss in self.select("fail", "advisory")}


class ClientInProcess:
    """The honest client of this process as an adapter: what it is asked and what it says is what its lines hold."""

    def __init__(self) -> None:
        self._adapter = Adapter()
        self._left: list[tuple[Adapter, threading.Thread]] = []
        said = introduction()
        self.introduction = Introduction(said["name"], said["version"], said["language"], tuple(said["transports"]))

    def infer(
        self, transport: str, address: str, inferences: Sequence[Inference], *, at_once: bool, timeout: float
    ) -> list[Result]:
        """Have the client make inferences; see `conformance.clients.adapter.Adapter`."""
        command = {
            "seq": 1,
            "command": "infer",
            "transport": transport,
            "address": address,
            "timeout_s": timeout,
            "at_once": at_once,
            "inferences": [one.to_dict() for one in inferences],
        }
        began = time.monotonic()
        said = self._answered(command, timeout * (1 if at_once else len(inferences)) + MARGIN)
        elapsed = time.monotonic() - began
        return [parse_result(one, elapsed) for one in said["results"]]

    def _answered(self, command: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Return the answer to a command; one that hangs is left to its thread, and the client begun anew."""
        adapter, answers, errors = self._adapter, list[dict[str, Any]](), list[Exception]()

        def answer() -> None:
            try:
                answers.append(adapter.answered(command))
            except Exception as error:
                errors.append(error)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        thread.join(seconds)
        if answers:
            return answers[0]
        self._left.append((adapter, thread))
        self._adapter = Adapter()
        raise AdapterError(f"the client broke: {errors[0]!r}") if errors else AdapterHangsError("no answer in time")

    def close(self) -> None:
        """Close its connections, also those of clients that hung, once their peer has closed."""
        for adapter, thread in self._left:
            thread.join(MARGIN)
            adapter.close()
        self._adapter.close()


class RecordingPeer(Peer):
    """A peer that keeps what it has heard."""

    def __init__(self) -> None:
        super().__init__()
        self.scenes: list[Scenario] = []

    def start_scenario(self, inferences: Sequence[Inference], script: Script) -> Scenario:
        """Answer these inferences by a script from now on."""
        self.scenes.append(super().start_scenario(inferences, script))
        return self.scenes[-1]

    def watched(self) -> set[str]:
        """Return the requirements that what was heard misses by the rules for requests alone, and forget it."""
        heard = [one.received for scene in self.scenes for _, one in scene.list_requests()]
        self.scenes.clear()
        return {miss.requirement for received in heard for miss in judge_request(received).violations}


# The honest client looks for the end of a connection when it takes it, so the suite need not wait for that.
SHORT_NOTICE_S = 0.02


@dataclass(slots=True)
class SharedPeer:
    """A peer for any number of clients: a context manager."""

    peer: RecordingPeer = field(default_factory=RecordingPeer)
    patches: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        """Open the peer, which waits shortly for a client to notice that a connection has ended."""
        self.patches.enter_context(patch.object(http_peer, "MAX_CLIENT_CLOSE_S", SHORT_NOTICE_S))
        self.patches.enter_context(patch.object(wrong_answers, "EXTRA_CLOSING_WAIT_S", SHORT_NOTICE_S))
        self.peer.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the peer, and with it the connections of clients that hang."""
        self.peer.__exit__(None, None, None)
        self.patches.close()

    def see(
        self,
        altered: Alteration | None,
        rows: Iterable[Case],
        *,
        until: Callable[[set[str]], bool] | None = None,
        judged: Callable[[CheckResult], object] = lambda _: None,
    ) -> Sighting:
        """Run rows against a client.

        Args:
            altered: how the client is altered; None for the honest one.
            rows: to be run, all of them where there is no `until`.
            until: told what is named so far, after each row; says whether that is enough.
            judged: told the result of each row.
        """
        began, taken, misses, watched = time.monotonic(), list[int](), list[UnmetRow](), set[str]()
        client, count = ClientInProcess(), 0
        judge = ClientJudge(client, client.introduction, self.peer)
        with apply(*([altered] if altered else []), taken=lambda: taken.append(1)):
            for case in rows:
                count += 1
                result = judge(case)
                judged(result)
                watched |= self.peer.watched()
                if result.outcome not in MET:
                    named = result.failure.requirement if result.failure else case.requirements[0]
                    misses.append(UnmetRow(case.check.id, case.row.id, str(result.outcome), named, result.message))
                if until and until({miss.requirement for miss in misses if miss.outcome in ("fail", "advisory")}):
                    break
            client.close()
        name = altered.name if altered else "honest"
        seconds = round(time.monotonic() - began, 2)
        return Sighting(name, count, tuple(misses), tuple(sorted(watched)), bool(taken), seconds)


@cache
def collect_rows(transports: tuple[str, ...]) -> Sequence[Case]:
    return tuple(list_profile_rows("certify", subjects=CLIENTS, transports=transports))


# --- which rows -------------------------------------------------------------------------------------------------------


# Where `python -m tests.clients.kill_matrix_page` writes which rows saw each fault.
SEEN_BY = Path(__file__).with_name("seen_by.json")
read_seen_rows = cache(partial(read_seen_by, SEEN_BY))
# One in so many of the other rows is run, too: other ones for each fault.
ONE_IN = 500
# One in so many of the rows that an honest variation is most like to be accused by; `tox -e matrix-clients` runs all.
MANY = 60
# What is sent is made in these modules of the client, and all that rows about answers see of it is that it is sent.
SIDES = {"CLIENT-SENDS-": {"request", "grpc_request"}}


def sample_rows(fault: Alteration, rows: Sequence[Case]) -> list[Case]:
    """Return the rows that saw a fault before, and a few others; of the walk where nothing else saw it."""
    seen = read_seen_rows().get(fault.name, [])
    known = [key for key in seen if not key[0].endswith("reads-every-combination")] or seen
    return [case for case in rows if case.ids in known or _chance(fault, *case.ids) % ONE_IN == 0]


def _chance(fault: Alteration, check: str, row: str) -> int:
    return crc32(f"{fault.name} {check} {row}".encode())


def select_apt(variation: Alteration, rows: Sequence[Case], part: int = 0) -> list[Case]:
    """Return a part of the rows that a variation could be accused by: of its own side more than of the other side."""
    modules = {step.partition(".")[0] for step in variation.steps}
    side = next((side for side, of in SIDES.items() if modules <= of), "CLIENT-")
    return [
        case
        for case in rows
        if _chance(variation, *case.ids) % (MANY if case.requirements[0].startswith(side) else ONE_IN) == part
    ]


def select_answering(rows: Sequence[Case], requirements: Collection[str]) -> list[Case]:
    return [case for case in rows if set(case.requirements) & set(requirements)]
