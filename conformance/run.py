"""One run of the suite: starts it, keeps its results, and concludes it. One per process, workers included."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from random import SystemRandom
from typing import Any

import hypothesis
import pytest

from conformance import checks, options
from conformance.check import all_rows
from conformance.collect import FOLDER, JUDGE, collected_rows
from conformance.judge import Judge
from conformance.outcome import TargetLost
from conformance.report import json_report, terminal
from conformance.report.result import CheckResult
from conformance.report.verdict import Verdict, conclude
from conformance.target import survey as surveys
from conformance.target.reference import ReferenceServer
from conformance.target.settings import SettingsError
from conformance.target.survey import Survey
from conformance.target.target import Target

EXPLORE_EXAMPLES = 50


class Run:
    """The state of one run.

    Attributes:
        results: in the order in which they came.
        verdict: None until the run is finished.
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
        self.file = options.target_config(config)
        self.results: list[CheckResult] = []
        self.verdict: Verdict | None = None
        self.started = _now()
        self._told = told or {}
        self.seed = self._seed()
        self._server: ReferenceServer | None = None
        self._url: str = self._told.get("url", url)
        if self._url != options.REFERENCE:
            options.make_settings(config, self._url)
        self._quieten()

    # --- start ---

    def start(self) -> None:
        """Reach the target and survey it; a worker is told by its controller. `verdict` is set if that is the end."""
        if self._url == options.REFERENCE:
            self._server = ReferenceServer()
            self._url = self._server.url
        self.target = Target(options.make_settings(self.config, self._url))
        self._shown_url = self.target.settings.url  # without credentials
        self.survey = Survey(**self._told["survey"]) if self._told else self._take_survey()
        self.target.roles = self.survey.roles
        self.target.placements = self.file.roles or {}
        self.config.stash[JUDGE] = Judge(
            self.target,
            self.survey,
            self.config.getoption("conformance_strict"),
            options.evidence_folder(self.config),
        )

    def _take_survey(self) -> Survey:
        try:
            survey = surveys.take(self.target, options.extensions(self.config), self.file.roles)
        except (TargetLost, SettingsError) as error:
            self.verdict = Verdict("incomplete", [str(error)])
            return Survey()
        url, reason = self._shown_url, ""
        if not survey.roles and survey.silence:
            reason = f"{url}/v2 answers nothing of use ({survey.silence}): look at the path of the URL, and whether"
            reason += " a gateway wants a --target-header"
        elif not survey.roles:
            reason = f"{url} serves none of the suite's model roles: `oip-conformance roles` says what to deploy"
        elif not survey.offered:
            reason = f"{url} offers none of the extensions: it lists none, and requests that use them are not answered"
        if reason:
            self.verdict = Verdict("incomplete", [reason])
        return survey

    def for_worker(self) -> dict[str, Any]:
        """Return what a worker has to know."""
        return {"url": self._url, "survey": self.survey.to_dict(), "seed": self.seed}

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
            self._write_reports(complete=False)
            return self.verdict.exit_status
        if not hasattr(self, "survey") or self.config.option.collectonly:
            return exitstatus
        places = _places()
        self.results.sort(key=lambda result: places[result.id, result.row])
        run = {(result.id, result.row) for result in self.results}
        whole = collected_rows(self.profile, dangerous=self.config.option.conformance_dangerous)
        missing = [f"{c.id}[{r.id}]" for c, r in whole if (c.id, r.id) not in run]
        self.verdict = conclude(self.results, missing, self._lost())
        self._write_reports(complete=not missing)
        narrowed = bool(missing) and not self._lost()
        own_files = self.config.args != [str(FOLDER)]
        if narrowed or exitstatus not in (0, 1) or own_files:
            return exitstatus
        return self.verdict.exit_status

    def _lost(self) -> str | None:
        """Return why the target is gone; workers say it in their results."""
        gone = "the target is gone: "
        return next((r.message.removeprefix(gone) for r in self.results if r.message.startswith(gone)), None)

    def _write_reports(self, *, complete: bool) -> None:
        if not self.reports or self.verdict is None:
            return
        report = json_report.build(
            self.results,
            self.survey,
            self.verdict,
            url=self._shown_url,
            options=self._options(),
            seed=self.seed,
            started=self.started,
            finished=_now(),
            complete=complete,
        )
        for path in self.reports:
            try:
                json_report.write(report, path)
            except OSError as error:
                sys.stderr.write(f"cannot write the report {path}: {error.strerror}\n")

    def _options(self) -> dict[str, Any]:
        """Return what shaped the verdict; names of headers, never their values."""
        return {
            "profile": self.profile,
            "dangerous": self.config.option.conformance_dangerous,
            "strict": self.config.getoption("conformance_strict"),
            "extensions": options.extensions(self.config),
            "timeout_s": self.target.settings.timeout,
            "headers": [name for name, _ in self.target.settings.headers],
        }

    # --- what the user sees ---

    def header(self) -> list[str]:
        """Return the lines above the run."""
        return [] if self.verdict else terminal.header(self._shown_url, self.survey, self.profile, self.seed)

    def print_summary(self, reporter: Any) -> None:
        """Show the summary and everything that was not met."""
        if not self.results:
            return
        rerun = f"pytest --target-url={options.REFERENCE if self._server else self._shown_url}"
        sections = (
            ("summary", terminal.summary(self.results, self.survey)),
            ("failures", terminal.failures(self.results, rerun)),
            ("advice", terminal.advice(self.results)),
            ("observations", terminal.observations(self.results)),
            ("not judged", terminal.not_judged(self.results, self.survey)),
        )
        for title, section in sections:
            lines = list(section)
            if lines:
                reporter.write_sep("=", title)
                reporter.write_line("\n".join(lines))

    def print_verdict(self) -> None:
        """Show the verdict, as the last line."""
        reporter: Any = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or self.verdict is None:
            return
        line = terminal.verdict_line(self.verdict, self._shown_url, self.results)
        reporter.write_line(line, **{terminal.COLORS[self.verdict.verdict]: True, "bold": True})

    def close(self) -> None:
        """Let go of target and bundled server."""
        if hasattr(self, "target"):
            self.target.close()
        if self._server is not None:
            self._server.stop()
            self._server = None


def _places() -> dict[tuple[str, str], int]:
    """Return the place of each row in the suite, so that workers' results come in one order."""
    return {(check.id, row.id): index for index, (check, row) in enumerate(all_rows(checks.load()))}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
