"""One run of the suite: what was asked, the session with the target, and what came of the rows. One per process.

A worker of pytest-xdist has a run of its own; it is given addresses, survey and seed by its controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from conformance.judging.beginning import begin
from conformance.judging.conclusion import Conclusion
from conformance.judging.kept_bodies import KeptBodies
from conformance.judging.session import Session
from conformance.plugin import run_options
from conformance.plugin.collection import SELECTED, Selected
from conformance.plugin.exploring import choose_seed
from conformance.plugin.options import REFERENCE
from conformance.survey.progress import Progress, silent
from conformance.survey.survey import Survey
from conformance.terms.result import CheckResult
from conformance.transport import har
from conformance.transport.grpc_packages import has_grpc
from conformance.transport.reference import ReferenceServer
from conformance.transport.replay import Replayed
from conformance.transport.settings import Settings
from conformance.transport.target import Target


class Run:
    """The state of one run.

    Attributes:
        options: what the user asks.
        addresses: URL and gRPC address of the target, once the bundled server is started; with credentials.
        session: with the target; None until the run has started.
        results: in the order in which they came.
        conclusion: None until the run is finished, or there is nothing to judge.
        stopped: why pytest ended the run before its end, in its own words; else empty.
        was_cut_short: an option such as `-x` ended it, rather than a person.
    """

    def __init__(self, config: pytest.Config, from_controller: Mapping[str, Any] | None = None) -> None:
        """Read the options.

        Args:
            config: of pytest.
            from_controller: what the controller gave this process, where it is a worker.

        Raises:
            pytest.UsageError: one cannot be used.
        """
        self._from_controller = from_controller or {}
        self.options = run_options.read(config, self._from_controller)
        explores = self.options.profile == "explore"
        self.seed = choose_seed(config, self._from_controller.get("seed")) if explores else None
        self.addresses = (self.options.url, self.options.grpc)
        self.session: Session | None = None
        self.results: list[CheckResult] = []
        self.conclusion: Conclusion | None = None
        self.stopped = ""
        self.was_cut_short = False
        self.started = now()
        self._config = config
        self._server: ReferenceServer | None = None

    @property
    def settings(self) -> Settings:
        """How the target is reached; the run has to have started."""
        return self.started_session.target.settings

    @property
    def started_session(self) -> Session:
        """The session of a run that has started.

        Raises:
            RuntimeError: it has not.
        """
        if self.session is None:
            raise RuntimeError("the run has not started")
        return self.session

    @property
    def is_of_bundled_server(self) -> bool:
        """Whether the bundled server was started to be judged."""
        return self._server is not None

    # --- start ---

    def start(self, progress: Progress = silent) -> None:
        """Reach the target and survey it. `conclusion` is set where that is the end."""
        options = self.options
        self.addresses = self._find_addresses()
        settings = options.settings(*self.addresses)
        target = Target(settings) if options.recording is None else Replayed(settings, options.recording.calls)
        if options.evidence is not None:
            target.journal = har.Journal(options.evidence, _process(self._config), settings)
        taken = self._from_controller.get("survey")
        self.session = Session(
            target,
            Survey(**taken) if taken else None,
            placements=options.file.roles,
            strict=options.strict,
            evidence=options.evidence,
            is_one_of_several=bool(self._from_controller),
            bodies=KeptBodies() if options.recording is None else None,
        )
        target.has_answered = taken is not None  # the controller had its answers
        if taken is None:
            given = options.file.models
            subjects, self.conclusion = begin(self.session, options.extensions, options.subjects, given, progress)
            self.options = replace(options, subjects=subjects)
        judge = self.session.judge if options.baseline is None else options.baseline.applying(self.session.judge)
        self._config.stash[SELECTED] = Selected(
            options.profile, options.dangerous, self.options.subjects, settings.transports, judge
        )

    def _find_addresses(self) -> tuple[str, str | None]:
        """Return URL and gRPC address of the target; the bundled server is started where it is asked for."""
        url, grpc = self.options.url, self.options.grpc
        if not self.options.is_bundled:
            return url, grpc
        self._server = ReferenceServer(grpc=grpc == REFERENCE or has_grpc())
        return self._server.url if url else "", self._server.grpc if grpc in (None, REFERENCE) else grpc

    def for_worker(self) -> dict[str, Any]:
        """Return what a worker has to know."""
        url, grpc = self.addresses
        survey = self.started_session.survey.to_dict()
        return {"url": url, "grpc": grpc, "survey": survey, "models": self.options.subjects.models, "seed": self.seed}

    # --- end ---

    def close(self) -> None:
        """Let go of target and bundled server."""
        if self.session is not None:
            self.session.close()
        if self._server is not None:
            self._server.stop()
            self._server = None


def _process(config: pytest.Config) -> str:
    """Return what identifies the process among those of a run."""
    return str(getattr(config, "workerinput", {}).get("workerid", ""))


def now() -> str:
    """Return the time as reports have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
