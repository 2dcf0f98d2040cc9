"""One run of the suite as hooks see it, whoever is judged. There is one in a process.

A worker of pytest-xdist has a run of its own; it is given by its controller what the controller has found out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest

from conformance.discovery.discovery_result import DiscoveryResult, Progress, ignore_progress
from conformance.judging.conclusion import Conclusion
from conformance.judging.selection import Subjects
from conformance.plugin.collection import SELECTION_KEY, RunSelection
from conformance.plugin.common_options import CommonOptions
from conformance.report.output_files import OutputWriter, claim_folder
from conformance.spec.check import Check, Row
from conformance.spec.ledger import Party
from conformance.spec.result import CheckResult
from conformance.transport import journal


class BaseRun(ABC):
    """The state of one run.

    Attributes:
        party: who is judged.
        options: what the user asks.
        extensions: those that the user names; empty where none are.
        never: patterns of rows that are kept back.
        seed: of Hypothesis, where it explores; else that by which rows name clients, where they do.
        results: in the order in which they came.
        conclusion: None until the run is finished, or there is nothing to judge.
        stopped: why pytest ended the run before its end, in its own words; else empty.
        was_cut_short: an option such as `-x` ended it, rather than a person.
        left: whether everything that the run leaves behind was written so far.
    """

    party: ClassVar[Party]
    options: CommonOptions
    extensions: Sequence[str] = ()
    never: Sequence[str] = ()
    seed: int | None = None

    def __init__(self, config: pytest.Config) -> None:
        self.results: list[CheckResult] = []
        self.conclusion: Conclusion | None = None
        self.stopped = ""
        self.was_cut_short = False
        self.left = OutputWriter()
        self.started = now()
        self._config = config

    def claim_evidence(self) -> None:
        """Make the folder for the evidence.

        Raises:
            pytest.UsageError: it cannot be used.
        """
        folder = self.options.evidence
        if folder is not None and (fault := claim_folder(folder, journal.STALE_PATTERNS)):
            raise pytest.UsageError(f"--conformance-evidence {folder}: {fault}")

    @property
    @abstractmethod
    def has_started(self) -> bool:
        """Whether who is judged was reached, or tried to be; what follows here is known from then on."""

    @property
    @abstractmethod
    def subjects(self) -> Subjects:
        """What the run is about."""

    @property
    @abstractmethod
    def transports(self) -> Sequence[str]:
        """Those that are judged."""

    @property
    @abstractmethod
    def url(self) -> str:
        """Where the target is, or where a client is told to go, without credentials."""

    @property
    def name(self) -> str:
        """How the verdict calls who is judged."""
        return self.url

    @property
    @abstractmethod
    def grpc_url(self) -> str:
        """The same over gRPC; empty where that is not judged."""

    @property
    @abstractmethod
    def survey(self) -> DiscoveryResult:
        """What is known of the target."""

    @abstractmethod
    def start(self, progress: Progress = ignore_progress) -> None:
        """Reach the target and survey it. `conclusion` is set where that is the end."""

    @abstractmethod
    def for_worker(self) -> dict[str, Any]:
        """Return what a worker has to know."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything that the run has started."""

    # --- what is shown of it ---

    @abstractmethod
    def header(self) -> list[str]:
        """Return the lines above the run: who is judged, on what, and how."""

    @abstractmethod
    def not_judged(self, conclusion: Conclusion) -> Iterator[str]:
        """Yield what could not be judged, and why."""

    @abstractmethod
    def rerun(self) -> str:
        """Return the command that runs the suite again, without what selects checks."""

    @abstractmethod
    def asked(self) -> dict[str, Any]:
        """Return the options that shaped the verdict, as the report has them."""

    def about(self) -> dict[str, Any]:
        """Return what the report says of the target beside its survey."""
        return {}

    def options_of_requests(self) -> Sequence[str]:
        """Return the options by which requests are chosen, as a command line has them."""
        return ()

    # --- for those above ---

    def _select(self, judge: Callable[[Check, Row], CheckResult]) -> None:
        """Have pytest collect what is judged, and judge it under the baseline where there is one."""
        options = self.options
        applied = judge if options.baseline is None else options.baseline.applying(judge)
        self._config.stash[SELECTION_KEY] = RunSelection(
            options.profile, options.dangerous, self.subjects, tuple(self.transports), applied
        )


def find_process_id(config: pytest.Config) -> str:
    """Return what identifies the process among those of a run."""
    return str(getattr(config, "workerinput", {}).get("workerid", ""))


def now() -> str:
    """Return the time as reports have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
