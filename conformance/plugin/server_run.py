"""A run that judges a server: its options, and its session with the target."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from conformance.discovery.discovery_result import DiscoveryResult, Progress, ignore_progress
from conformance.discovery.limit_checks import ContradictedLimitError
from conformance.judging.conclusion import Conclusion
from conformance.judging.evidence import SavedBodies
from conformance.judging.run_options import ServerOptions, read_server_options
from conformance.judging.run_start import start_run
from conformance.judging.scheduling import can_fork, choose_connections, estimate_seconds
from conformance.judging.selection import Subjects
from conformance.judging.session import Session
from conformance.plugin.base_run import BaseRun, find_process_id
from conformance.plugin.exploration import choose_seed
from conformance.report import terminal
from conformance.spec.check import Case
from conformance.spec.extensions import GRPC, HTTP
from conformance.spec.ledger import Party
from conformance.spec.options import format_arguments
from conformance.spec.report import Options, TargetDetails
from conformance.spec.text import escape_text, format_count
from conformance.transport import client_names
from conformance.transport.credentials import find_unmaskable_headers
from conformance.transport.grpc_packages import INSTALL_GRPC, has_grpc
from conformance.transport.journal import Journal
from conformance.transport.reference import REFERENCE, ReferenceServer
from conformance.transport.replay import NotRecordedError, ReplayTarget
from conformance.transport.restart import MAX_RUNS
from conformance.transport.settings import Settings
from conformance.transport.target import Target

if TYPE_CHECKING:
    from conformance.judging.process_pool import ProcessPool


class ServerRun(BaseRun):
    """The state of one run that judges a server.

    Attributes:
        addresses: URL and gRPC address of the target, including credentials; final once the run has started.
        session: the session with the target; None until the run has started.
        waited_by_workers_s: the seconds that the pytest-xdist workers that have ended waited for answers in vain.
    """

    party: ClassVar[Party] = Party.SERVER
    options: ServerOptions

    def __init__(self, config: pytest.Config, from_controller: Mapping[str, Any] | None = None) -> None:
        """Read the options.

        `from_controller`: addresses, discovery result and seed of the controller, if this process is a worker.

        Raises UserError: an option cannot be used.
        """
        super().__init__(config)
        self._from_controller = from_controller or {}
        self.options = read_server_options(config.option, config.getini, self._from_controller)
        if self.explores:
            self.seed = choose_seed(config, self._from_controller.get("seed"))
        self.target = self.options.target
        self.extensions, self.never = self.target.extensions, self.target.never
        self.addresses = (self.target.url or "", self.target.grpc)
        self.session: Session | None = None
        self.connections = 1
        self.waited_by_workers_s = 0.0
        self._server: ReferenceServer | None = None
        self.pool: ProcessPool | None = None

    @property
    def has_started(self) -> bool:
        """Whether the run has contacted the target, or tried to."""
        return self.session is not None

    @property
    def explores(self) -> bool:
        """Whether Hypothesis generates requests, with its own seed."""
        return self.options.profile == "explore"

    @property
    def subjects(self) -> Subjects:
        """The model roles and deployed models."""
        return self.options.subjects

    @property
    def transports(self) -> Sequence[str]:
        """The transports for which there is an address."""
        return self._settings.transports

    @property
    def url(self) -> str:
        """The URL of the target."""
        return self._settings.url

    @property
    def grpc_url(self) -> str:
        """The gRPC address of the target; empty if there is none."""
        return self._settings.grpc.url if self._settings.grpc else ""

    @property
    def discovery_result(self) -> DiscoveryResult:
        """The discovery result of the target."""
        return self._started_session.discovery_result

    @property
    def _settings(self) -> Settings:
        return self._started_session.target.settings

    @property
    def _started_session(self) -> Session:
        """The session of a run that has started.

        Raises RuntimeError: the run has not started.
        """
        if self.session is None:
            raise RuntimeError("the run has not started")
        return self.session

    # --- start ---

    def start(self, progress: Progress = ignore_progress) -> None:
        """Contact the target and run discovery; set `conclusion` if nothing can be judged."""
        options = self.options
        self.addresses = self._find_addresses()
        settings = self.target.build_settings(*self.addresses)
        if not self.explores:
            self.seed = (
                client_names.choose_seed(options.profile, settings, options.seed)
                if options.recording is None
                else options.recording.seed
            )
        target = Target(settings) if options.recording is None else ReplayTarget(settings, options.recording.calls)
        if options.evidence is not None:
            target.journal = Journal(options.evidence, find_process_id(self._config), settings)
        taken = self._from_controller.get("survey")
        self.session = Session(
            target,
            DiscoveryResult(**taken) if taken else None,
            placements=self.target.roles,
            limits=self.target.limits,
            strict=options.strict,
            evidence=options.evidence,
            is_one_of_several=bool(self._from_controller),
            bodies=SavedBodies() if options.recording is None else None,
            seed=self._client_name_seed,
        )
        target.answered = set() if taken is None else set(settings.transports)  # it answered the controller
        if taken is None:
            try:
                subjects, self.conclusion = start_run(
                    self.session, self.extensions, options.subjects, self.target.models, progress
                )
            except ContradictedLimitError as error:
                raise pytest.UsageError(f"--target-config {options.config_file}: {error}") from None
            except NotRecordedError as error:
                raise pytest.UsageError(f"--target-replay: {error}; {self._describe_recording_options()}") from None
            self.options = replace(options, subjects=subjects)
        self.connections = self._choose_connections(target)
        if self.connections > 1 and self.conclusion is None:
            from conformance.judging.process_pool import ProcessPool  # lazy: keeps the start of other runs fast

            self.pool = ProcessPool(self.session, self.connections)
        self._store_selection(self.session.judge if self.pool is None else self.pool.judge)

    def list_request_options(self) -> Sequence[str]:
        """Return the command-line options that determine which requests are sent, with file names without folders."""
        options, file = self.options, self.options.config_file
        return format_arguments(
            {
                "--conformance-profile": options.profile,
                "--target-config": Path(file).name,
                "--target-model": options.subjects.models,
                "--target-extension": (*self.extensions, *options.subjects.packs),
                "--conformance-dangerous": options.dangerous,
                "--conformance-robustness": options.subjects.robustness,
            }
        )

    def _describe_recording_options(self) -> str:
        """Return advice if a recording lacks a request of this run: the options with which the recording was made."""
        made_with = self.options.recording.options if self.options.recording else ()
        return (
            f"it was made with {escape_text(shlex.join(made_with), 400)}"
            if made_with
            else "use the options with which it was made"
        )

    @property
    def _client_name_seed(self) -> int | None:
        """The seed that chooses client names; None if the seed of the run is for Hypothesis."""
        return None if self.explores else self.seed

    def _choose_connections(self, target: Target) -> int:
        """Return the number of connections: the user's choice, or as many as suit the latency and the target.

        One where this process may not fork: in a pytest-xdist worker, for example. A recording, which has no latency,
        and Hypothesis, which keeps examples in one process, always use one.
        """
        has_workers = bool(self._from_controller) or self._config.getoption("numprocesses", None)
        if self.options.recording is not None or self.explores or has_workers or not can_fork():
            return 1
        if self.options.connections:
            return self.options.connections
        target.measure_latency()
        wanted = choose_connections(target.latency)
        return target.count_overlapping(wanted) if wanted > 1 else 1

    def expect_rows(self, rows: Sequence[Case]) -> None:
        """Set the rows that will be judged, in order."""
        if self.pool is not None:
            self.pool.expect_rows(rows)

    def describe_duration(self, rows: Sequence[Case]) -> Iterator[str]:
        """Yield about how long the rows take, if that is long; nothing in a process that did not measure the target."""
        latency = self._started_session.target.latency
        if latency is not None and self.options.recording is None:
            yield from terminal.format_duration(
                estimate_seconds(rows, latency, self.connections), latency, self.connections
            )

    def describe_target(self) -> TargetDetails:
        """Return further members of the report's object `target`.

        The members say whether the target never answered, which row concurrency disturbed, and how long the run waited.
        """
        found: TargetDetails = {}
        if not self._started_session.target.answered:
            found["unreachable"] = True
        if self.pool and self.pool.disturbed_row:
            found["suffers_from_concurrency"] = self.pool.disturbed_row
        if self.waited_s:
            found["waited_s"] = round(self.waited_s, 1)
        return found

    @property
    def waited_s(self) -> float:
        """The seconds that this process and workers waited for answers that never arrived completely."""
        return self._started_session.target.waited_s + self.waited_by_workers_s

    def _find_addresses(self) -> tuple[str, str | None]:
        """Return URL and gRPC address of the target; start the bundled server if the user requests it."""
        url, grpc = self.addresses
        if not self.options.is_bundled:
            return url, grpc
        self._server = ReferenceServer(packs=self.subjects.packs, grpc=grpc == REFERENCE or has_grpc())
        return self._server.url if url else "", self._server.grpc if grpc in (None, REFERENCE) else grpc

    def build_worker_input(self) -> dict[str, Any]:
        """Return the data that a pytest-xdist worker needs."""
        url, grpc = self.addresses
        return {
            "url": url,
            "grpc": grpc,
            "survey": self.discovery_result.to_dict(),
            "models": self.options.subjects.models,
            "seed": self.seed,
        }

    # --- output ---

    def list_header_lines(self) -> list[str]:
        """Return the header lines of the run."""
        options = self.options
        lines = terminal.format_header(
            self.url,
            self.discovery_result,
            options.profile,
            self.seed,
            self._describe_grpc(),
            connections=self.connections,
        )
        return [*lines, *terminal.describe_visible_headers(find_unmaskable_headers(self._settings.headers))]

    def _describe_grpc(self) -> str:
        """Return the text about gRPC for the header; empty if the header needs none."""
        if self.grpc_url:
            return self.grpc_url if HTTP in self.transports else ""
        return f"not judged: {INSTALL_GRPC}" if self._server is not None else ""

    def explain_unjudged(self, conclusion: Conclusion) -> Iterator[str]:
        """Yield lines that explain why rows could not be judged, and which models to deploy."""
        yield from terminal.format_unjudged(conclusion, self.discovery_result)
        if fatal_row := self._started_session.find_fatal_row():
            yield from terminal.format_ways_on(fatal_row)
        if runs := self._settings.restart.runs:
            yield f"The restart command ran {format_count(runs, 'time')}, of at most {MAX_RUNS} in a run."
        if output := self._settings.restart.output:
            yield "The restart command failed; the end of its output:"
            yield from (f"      {escape_text(line, 400)}" for line in output.splitlines())
        if self._settings.rate_limit.is_too_high:
            yield from terminal.suggest_rate(conclusion)
        yield from terminal.describe_waits(conclusion.results, self.waited_s)
        if self.pool is not None and self.pool.disturbed_row:
            yield from terminal.describe_changed_answer(self.pool.disturbed_row, self.connections)

    def build_rerun_command(self) -> str:
        """Return the command that runs the suite against this target, without options that select checks."""
        arguments = format_arguments(
            {
                **self._find_address_options(),
                # As the user wrote them, `all` for example; those of the file are in the file.
                "--target-model": [name for name in self.target.models if name not in self.options.file.models],
                "--target-extension": [
                    name
                    for name in (*self.extensions, *self.subjects.packs)
                    if name not in self.options.file.extensions
                ],
                "--conformance-dangerous": self.options.dangerous,
                "--conformance-robustness": self.subjects.robustness,
                "--conformance-seed": self.options.seed,
            }
        )
        return shlex.join(["pytest", *arguments])

    def _find_address_options(self) -> dict[str, str]:
        """Return the options that name the target: its file, and addresses that are not in the file."""
        target, file = self.target, self.options.file
        if self.options.is_bundled:
            return {"--target-url" if target.url else "--target-grpc": REFERENCE}
        found = {"--target-config": self.options.config_file}
        if HTTP in self.transports and target.url != file.url:
            found["--target-url"] = self.url
        if GRPC in self.transports and target.grpc != file.grpc:
            found["--target-grpc"] = self.grpc_url.removeprefix("grpc://")
        return found

    def list_report_options(self) -> Options:
        """Return the options that the report shows, because they affect the verdict."""
        return self.options.to_report([name for name, _ in self._settings.headers], self.connections)

    # --- end ---

    def close(self) -> None:
        """Close the sessions with the target, and stop the bundled server."""
        if self.session is not None:
            self.session.close()
        if self._server is not None:
            self._server.stop()
            self._server = None
