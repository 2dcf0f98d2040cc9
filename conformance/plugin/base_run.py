"""The base class of a run of the suite, for servers and clients. Each process has one run.

A pytest-xdist worker has a separate run, which receives the discovery result from its controller.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest

from conformance.discovery.discovery_result import DiscoveryResult, Progress, ignore_progress
from conformance.judging.conclusion import Conclusion
from conformance.judging.run_options import RunOptions
from conformance.judging.selection import Subjects
from conformance.judging.session import DISCOVERY_SCOPE
from conformance.plugin.collection import SELECTION_KEY, RunSelection
from conformance.report.output_files import OutputWriter, claim_folder
from conformance.spec.check import Case
from conformance.spec.ledger import Party
from conformance.spec.report import Options, TargetDetails
from conformance.spec.result import CheckResult
from conformance.transport import journal


class BaseRun(ABC):
    """The state of one run of the suite.

    Attributes:
        party: whether a server or a client is judged.
        extensions: the extensions that the user requests; empty if none.
        never: patterns of rows that must not run, from `never` in the target file.
        seed: with the profile `explore` the seed of Hypothesis; otherwise the seed that chooses client names, or None.
        results: the results of rows, in order of arrival.
        conclusion: the conclusion of the run; None until the run has finished, or has found nothing to judge.
        stopped: pytest's reason for stopping the run early; empty if it was not stopped.
        was_cut_short: whether an option such as `-x` stopped the run, rather than a person.
        output: writes the output files, and records which of them cannot be written.
        is_recorded: whether the recording, if any, has every call.
    """

    party: ClassVar[Party]
    options: RunOptions
    extensions: Sequence[str] = ()
    never: Sequence[str] = ()
    seed: int | None = None

    def __init__(self, config: pytest.Config) -> None:
        self.results: list[CheckResult] = []
        self.conclusion: Conclusion | None = None
        self.stopped = ""
        self.was_cut_short, self.is_recorded = False, True
        self.output = OutputWriter()
        self.started = format_now()
        self._config = config

    def create_evidence_folder(self) -> None:
        """Create the folder for the evidence, if the user requested evidence.

        The recording of a run that judged nothing is replaced.

        Raises pytest.UsageError: the folder cannot be used.
        """
        folder = self.options.evidence
        if folder is None:
            return
        journal.remove_without_rows(folder, (DISCOVERY_SCOPE,))
        if fault := claim_folder(folder, journal.STALE_PATTERNS):
            raise pytest.UsageError(f"--conformance-evidence {folder}: {fault}")

    @property
    def recording(self) -> str:
        """The recording, as messages name it."""
        return f"the recording in {self.options.evidence}"

    @property
    def shows_failures(self) -> bool:
        """Whether the summary shows failures: not with `--tb=no`."""
        return getattr(self._config.option, "conformance_tb", "auto") != "no"

    @property
    @abstractmethod
    def has_started(self) -> bool:
        """Whether the run has contacted the target, or tried to; only then the properties below are available."""

    @property
    @abstractmethod
    def subjects(self) -> Subjects:
        """The subjects of the run."""

    @property
    @abstractmethod
    def transports(self) -> Sequence[str]:
        """The judged transports."""

    @property
    @abstractmethod
    def url(self) -> str:
        """The URL of the server, or the URL to which a client sends its requests, without credentials."""

    @property
    def name(self) -> str:
        """The name of the server or client in the verdict."""
        return self.url

    @property
    @abstractmethod
    def grpc_url(self) -> str:
        """The gRPC address of the server, or the gRPC address that a client calls; empty if gRPC is not judged."""

    @property
    @abstractmethod
    def discovery_result(self) -> DiscoveryResult:
        """The discovery result of the target."""

    @abstractmethod
    def start(self, progress: Progress = ignore_progress) -> None:
        """Contact the target and run discovery; set `conclusion` if nothing can be judged."""

    @abstractmethod
    def build_worker_input(self) -> dict[str, Any]:
        """Return the data that a pytest-xdist worker needs."""

    @abstractmethod
    def close(self) -> None:
        """Stop and close everything that the run has started."""

    # --- output ---

    @abstractmethod
    def list_header_lines(self) -> list[str]:
        """Return the header lines of the run."""

    @abstractmethod
    def explain_unjudged(self, conclusion: Conclusion) -> Iterator[str]:
        """Yield lines that explain why rows could not be judged."""

    @abstractmethod
    def build_rerun_command(self) -> str:
        """Return the command that runs the suite again, without options that select checks."""

    def list_report_options(self) -> Options:
        """Return the options that the report shows, because they affect the verdict."""
        return self.options.to_report()

    def describe_target(self) -> TargetDetails:
        """Return further members of the report's object `target`, which the discovery result does not contain."""
        return {}

    def describe_client(self) -> dict[str, Any] | None:
        """Return the introduction of the judged client, for the recording; None for a server."""
        return None

    def list_request_options(self) -> Sequence[str]:
        """Return the command-line options that determine which requests are sent."""
        return ()

    # --- for subclasses ---

    def _store_selection(self, judge: Callable[[Case], CheckResult]) -> None:
        """Store the selection of rows and their judge for `collection`; the judge applies the baseline, if any."""
        options = self.options
        applied = judge if options.baseline is None else options.baseline.wrap_judge(judge)
        self._config.stash[SELECTION_KEY] = RunSelection(
            options.profile, options.dangerous, self.subjects, tuple(self.transports), self.discovery_result, applied
        )


def find_process_id(config: pytest.Config) -> str:
    """Return the pytest-xdist id of this process; empty without workers and in the controller."""
    return str(getattr(config, "workerinput", {}).get("workerid", ""))


def format_now() -> str:
    """Return the current time in the format of reports: UTC in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")
