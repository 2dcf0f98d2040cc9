"""One run of the suite: starts it, keeps its results, and concludes it. One per process, workers included."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import SystemRandom
from typing import Any

import hypothesis
import pytest

from conformance import baseline as baselines
from conformance import ledger, options, target_options
from conformance.baseline import Gate
from conformance.collect import DOORS, FOLDER, JUDGE, collected_rows, models_of
from conformance.judge import Judge
from conformance.outcome import TargetLost
from conformance.report import formats, github, json_report
from conformance.report.result import CheckResult
from conformance.report.verdict import Verdict, conclude
from conformance.target import har
from conformance.target import models as deployed
from conformance.target import survey as surveys
from conformance.target.reference import ReferenceServer
from conformance.target.replay import Replayed
from conformance.target.secrets import hide
from conformance.target.settings import SettingsError
from conformance.target.survey import Survey
from conformance.target.target import Target

EXPLORE_EXAMPLES = 50


class Run:
    """The state of one run.

    Attributes:
        url: of the target, empty where gRPC alone is judged; `shown_url` is without credentials.
        grpc: where gRPC is judged, as it was given, or None; `shown_grpc` is a URL, or empty.
        results: in the order in which they came.
        verdict: None until the run is finished.
        report: the JSON report; None where nobody asks for one, and until the run is finished.
        missing: the rows that should have been run and were not, by extension.
        stopped: why pytest ended the run before its end, in its own words; else empty.
    """

    def __init__(self, config: pytest.Config, url: str, told: dict[str, Any] | None = None) -> None:
        """Read the options.

        Args:
            config: of pytest.
            url: of the target, or `reference`.
            told: what the controller told this process, where it is a worker.

        Raises:
            pytest.UsageError: one cannot be used.
        """
        self.config = config
        self.profile: str = config.getoption("conformance_profile")
        self.reports = options.report_paths(config)
        self.file = target_options.target_config(config)
        self.models = models_of(config)
        self.evidence = options.evidence_folder(config)
        self.baseline = options.baseline(config)
        self.gate: Gate | None = None
        self.results: list[CheckResult] = []
        self.verdict: Verdict | None = None
        self.report: dict[str, Any] | None = None
        self.missing: dict[str, list[str]] = {}
        self.stopped = ""
        self.started = _now()
        self._told = told or {}
        self.seed = self._seed()
        self._server: ReferenceServer | None = None
        self.url: str = self._told.get("url", url)
        self.grpc: str | None = self._told.get("grpc", target_options.target_grpc(config.option, config.getini))
        self._check_address()
        self._quieten()

    # --- start ---

    def start(self) -> None:
        """Reach the target and survey it; a worker is told by its controller. `verdict` is set if that is the end."""
        if options.REFERENCE in (self.url, self.grpc):
            self._start_reference()
        settings = target_options.make_settings(self.config, self.url, self.grpc)
        self.config.stash[DOORS] = settings.doors
        self.shown_url = settings.url  # without credentials
        self.shown_grpc = settings.grpc.url if settings.grpc else ""
        recording = target_options.recording(self.config)
        self.target = Target(settings) if recording is None else Replayed(settings, recording.calls)
        if self.evidence is not None:
            self.target.journal = har.Journal(self.evidence, _process(self.config), settings)
        self.target.begin("survey")
        self.survey = Survey(**self._told["survey"]) if self._told else self._take_survey()
        self.target.roles = self.survey.roles
        self.target.placements = self.file.roles or {}
        judge = Judge(self.target, self.survey, self.config.option.conformance_strict, self.evidence)
        self.config.stash[JUDGE] = judge if self.baseline is None else self.baseline.applying(judge)

    def _check_address(self) -> None:
        """See that the addresses can be used.

        Raises:
            pytest.UsageError: one cannot.
        """
        if self.grpc:
            options.require_grpc()
            if self.models and not self.url:
                raise pytest.UsageError("--model: models are judged by relations over HTTP, give --target-url, too")
        elif self.url != options.REFERENCE and set(target_options.extensions(self.config)) & set(options.OVER_GRPC):
            raise pytest.UsageError("--extension classification_grpc: say where with --target-grpc HOST:PORT")
        if self.url != options.REFERENCE and self.grpc != options.REFERENCE:
            target_options.make_settings(self.config, self.url, self.grpc)
        elif self.url not in ("", options.REFERENCE):
            raise pytest.UsageError("--target-grpc=reference: the bundled server is not the one of --target-url")

    def _start_reference(self) -> None:
        self._server = ReferenceServer(grpc=self.grpc == options.REFERENCE or options.has_grpc())
        self.url = self._server.url if self.url else ""
        if self.grpc in (None, options.REFERENCE):
            self.grpc = self._server.grpc

    def _take_survey(self) -> Survey:
        wanted = target_options.extensions(self.config)
        try:
            if self.models:
                survey = deployed.take(self.target, self.models, wanted, self.file.models)
            else:
                survey = surveys.take(self.target, wanted, self.file.roles)
        except (TargetLost, SettingsError) as error:
            self.verdict = Verdict("incomplete", [hide(str(error), self.target.settings.secrets)])
            return Survey()
        survey = survey.without(self.target.settings.secrets)
        reason = self._nothing_to_judge(survey)
        if reason:
            self.verdict = Verdict("incomplete", [reason])
        return survey

    def _nothing_to_judge(self, survey: Survey) -> str:
        """Return why nothing can be judged; empty where something can."""
        url = self.shown_url
        troubles = [model["trouble"] for model in survey.models.values() if model["trouble"]]
        if troubles and not survey.offered:
            return "; ".join(troubles)
        if not (survey.roles or survey.models) and survey.silence:
            hint = "look at the path of the URL, and whether a gateway wants a --target-header"
            url += "/v2" if "http" in self.target.settings.doors else ""
            return f"{url} answers nothing of use ({survey.silence}): {hint}"
        if not (survey.roles or survey.models):
            return f"{url} serves none of the suite's model roles: `oip-conformance roles` says what to deploy"
        if not survey.offered and "grpc" not in self.target.settings.doors:  # where tensors travel as bytes, anyway
            return f"{url} offers none of the extensions: it lists none, and requests that use them are not answered"
        return ""

    def for_worker(self) -> dict[str, Any]:
        """Return what a worker has to know."""
        return {"url": self.url, "grpc": self.grpc, "survey": self.survey.to_dict(), "seed": self.seed}

    def _seed(self) -> int | None:
        """Choose how Hypothesis explores; the user's own profile and seed come first."""
        if self.profile != "explore":
            return None
        hypothesis.settings.register_profile(
            "oip-explore",
            max_examples=EXPLORE_EXAMPLES,
            deadline=None,
            derandomize=False,
            database=None,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        if not self.config.getoption("hypothesis_profile", None):
            hypothesis.settings.load_profile("oip-explore")
        chosen = self.config.getoption("hypothesis_seed", None)
        seed = self._told.get("seed") or (int(chosen) if chosen else SystemRandom().randrange(2**32))
        hypothesis.core.global_force_seed = seed  # type: ignore[assignment]  # what --hypothesis-seed sets
        return int(seed)

    def _quieten(self) -> None:
        """Leave failures to our own summary: pytest would show each twice, without what matters."""
        if self.config.option.reportchars in ("fE", ""):
            self.config.option.reportchars = "N"
        if self.config.option.tbstyle == "auto":
            self.config.option.tbstyle = "no"

    # --- finish ---

    def finish(self, exitstatus: int) -> int:
        """Conclude the run, write the reports, and return the exit status."""
        if self.verdict is not None:  # there was nothing to judge
            self._merge_recordings({})
            self._write_reports(complete=False)
            return self.verdict.exit_status
        if not hasattr(self, "survey") or self.config.option.collectonly:
            return exitstatus
        places = _places(self.models)
        self.results.sort(key=lambda result: places[result.id, result.row])
        self.missing = self._find_missing()
        missing = [label for labels in self.missing.values() for label in labels]
        if self.baseline is not None:
            self._update_baseline(whole=not missing)
            self.gate = self.baseline.gate(self.results, whole=not missing)
        self.verdict = conclude(self.results, missing, self._lost(), self.stopped)
        self._merge_recordings(places)
        self._write_reports(complete=not missing)
        narrowed = bool(missing) and not self._lost()
        own_files = self.config.args != [str(FOLDER)]
        if narrowed or exitstatus not in (0, 1) or own_files:
            return exitstatus
        return self.verdict.exit_status if self.gate is None else self.gate.exit_status(self.verdict)

    def _update_baseline(self, *, whole: bool) -> None:
        """Write the baseline anew where that is asked for; what fails is known from then on."""
        if self.baseline is None or not self.config.option.conformance_update_baseline:
            return
        path = Path(self.config.option.conformance_baseline)
        if not whole:
            sys.stderr.write(f"{path} is as it was: only a whole run can update it\n")
            return
        text = baselines.updated(path.read_text(encoding="utf-8") if path.exists() else "", self.results)
        self._attempt(f"the baseline {path}", partial(baselines.write, path, text))
        self.baseline = baselines.of_text(text)
        self.results = [self.baseline.applied(baselines.unapplied(result)) for result in self.results]

    def _find_missing(self) -> dict[str, list[str]]:
        """Return the rows that should have been run and were not, by extension."""
        run = {(result.id, result.row) for result in self.results}
        dangerous = self.config.option.conformance_dangerous
        missing: dict[str, list[str]] = {}
        doors = self.target.settings.doors
        for check, row in collected_rows(self.profile, dangerous=dangerous, models=self.models, doors=doors):
            if (check.id, row.id) not in run:
                extension = str(ledger.requirement(check.requirements(row)[0]).extension)
                missing.setdefault(extension, []).append(f"{check.id}[{row.id}]")
        return missing

    def _merge_recordings(self, places: Mapping[tuple[str, str], int]) -> None:
        if self.evidence is not None:
            order = {f"{check}[{row}]": place for (check, row), place in places.items()}
            har.merge(self.evidence, self.shown_url, order, self.shown_grpc)

    def _lost(self) -> str | None:
        """Return why the target is gone; workers say it in their results."""
        gone = "the target is gone: "
        return next((r.message.removeprefix(gone) for r in self.results if r.message.startswith(gone)), None)

    def _write_reports(self, *, complete: bool) -> None:
        if self.verdict is None or not (self.reports or github.is_there(os.environ)):
            return
        self.report = json_report.build(
            self.results,
            self.survey,
            self.verdict,
            url=self.shown_url,
            grpc=self.shown_grpc,
            options=self._options(),
            seed=self.seed,
            started=self.started,
            finished=_now(),
            complete=complete,
            missing=self.missing,
            gate=self.gate,
        )
        for path in self.reports:
            self._attempt(f"the report {path}", partial(formats.write, self.report, path))
        self._attempt("the summary of the step", partial(github.summarize, self.report, os.environ))

    def _attempt(self, what: str, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            sys.stderr.write(f"cannot write {what}: {error.strerror}\n")

    def _options(self) -> dict[str, Any]:
        """Return what shaped the verdict; names of headers, never their values."""
        return {
            "profile": self.profile,
            "dangerous": self.config.option.conformance_dangerous,
            "strict": self.config.getoption("conformance_strict"),
            "extensions": target_options.extensions(self.config),
            "timeout_s": self.target.settings.timeout,
            "models": self.models,
            "headers": [name for name, _ in self.target.settings.headers],
        }

    # --- end ---

    @property
    def is_of_bundled_server(self) -> bool:
        """Whether the bundled server was started to be judged."""
        return self._server is not None

    def close(self) -> None:
        """Let go of target and bundled server."""
        if hasattr(self, "target"):
            self.target.close()
        if self._server is not None:
            self._server.stop()
            self._server = None


def _places(models: Sequence[str]) -> dict[tuple[str, str], int]:
    """Return the place of each row in the suite, so that workers' results come in one order."""
    rows = collected_rows("explore", dangerous=True, models=models, doors=("http", "grpc"))
    return {(check.id, row.id): index for index, (check, row) in enumerate(rows)}


def _process(config: pytest.Config) -> str:
    """Return what tells the processes of a run apart."""
    return str(getattr(config, "workerinput", {}).get("workerid", ""))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
