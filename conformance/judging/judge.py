"""Judges one check on one row against a server."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from conformance.checks.support.refusals import Refusal
from conformance.discovery.deployed_model import DeployedModel
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.expect.attribution import attribute_broken_request, to_grpc_requirement
from conformance.expect.refusals import find_refusal_without_error, has_error_object
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.judging import evidence
from conformance.judging.busy_retries import BusyRetries
from conformance.judging.client_name_trials import CLIENT_NAME, ClientNameTrials
from conformance.judging.control_checks import STATE_REQUIREMENTS, ControlChecks
from conformance.judging.crashes import CrashTracker
from conformance.judging.evidence import SavedBodies
from conformance.judging.failure import describe, describe_earlier_answer
from conformance.judging.raw_interpretation import RawInterpretation
from conformance.judging.repeat_command import build_repeat_command, has_long_body
from conformance.judging.reproduction import build_reproduction
from conformance.judging.request_features import collect_answered_features, collect_failed_features
from conformance.judging.row_judge import (
    RowError,
    RowJudge,
    RowOutcome,
    conclude_exception,
    conclude_met,
    conclude_unmet,
    grade_unmet,
    name_requirement,
    no_verdict,
)
from conformance.judging.row_models import RowModels
from conformance.judging.server_limits import ServerLimits
from conformance.judging.short_waits import ShortWaits, TooShortError, Wait, WaitError
from conformance.roles.model import Model
from conformance.spec.check import Case
from conformance.spec.ledger import Concern, get_requirement
from conformance.spec.outcome import Outcome, ReasonKind
from conformance.spec.result import Failure
from conformance.spec.text import escape_text
from conformance.transport.exchange import Reply
from conformance.transport.grpc_target import GrpcTarget
from conformance.transport.replay import NotRecordedError, PartlyRecordedError
from conformance.transport.target import Target
from conformance.transport.target_client import HungError
from conformance.transport.unreachable import TargetLostError
from conformance.wire.request import Message

# Outcomes other than failure of rows that have sent requests.
_OUTCOMES_WITH_REQUESTS = (Outcome.PASS, Outcome.ADVISORY, Outcome.OBSERVED, Outcome.BLOCKED)
# Outcomes of rows that may have tolerated a refusal without looking at its body.
_OUTCOMES_WITH_REFUSALS = (Outcome.PASS, Outcome.ADVISORY, Outcome.OBSERVED, Outcome.NOT_APPLICABLE)
# Returns an outcome, the error to report instead, or None if the policy does not explain the error. An `UnmetError`
# ends the questions; a `BlockedError` replaces the error for the policies that follow.
_Explanation = Callable[[Case, RowError], RowOutcome | RowError | None]
# Returns an outcome if the documents allow the failure, an advice to report instead, or None.
_Exemption = Callable[[Case, UnmetError, Model | None], RowOutcome | UnmetError | None]


class Judge(RowJudge):
    """Judges the rows of a server that decide the verdict; `RobustnessJudge` judges the robustness rows.

    A row is judged in three steps: run the body of its check; conclude; ask each policy in order whether it explains
    an error: a busy server and short waits repeat the row, then controls and client names may explain the error, then
    the raw interpretation and limits of the server may exempt it. A crash of the server comes last.

    Attributes:
        models: the models of the target, with its discovery result.
        crashes: tracks whether the target has crashed.
    """

    def __init__(
        self,
        target: Target,
        discovery_result: DiscoveryResult,
        *,
        strict: bool = False,
        evidence: Path | None = None,
        is_one_of_several: bool = False,
        bodies: SavedBodies | None = None,
        seed: int | None = None,
    ) -> None:
        """Create a judge.

        Args:
            target: the server.
            discovery_result: the discovery result of the server.
            strict: whether an unmet SHOULD fails.
            evidence: the folder for the request and answer of failed rows, or None.
            is_one_of_several: see `CrashTracker.is_one_of_several`.
            bodies: saves request bodies that are too long for a repeat command, if no evidence is written; or None.
            seed: decides which client name (User-Agent) each row sends; None sends the suite's own name in all rows.
        """
        self.target = target
        self.crashes = CrashTracker(target, is_one_of_several)
        self.bodies = bodies
        self.seed = seed
        self._strict = strict
        self._evidence = evidence
        self._busy = BusyRetries(target)
        self._short_waits = ShortWaits(target)
        self._raw_interpretation = RawInterpretation(target)
        self._exemptions: tuple[_Exemption, ...] = (
            self._raw_interpretation.find_exemption,
            ServerLimits(target).find_exemption,
        )
        self._set_models(RowModels(target, discovery_result))

    def _set_models(self, models: RowModels) -> None:
        """Set the models of the rows, which the explanations of errors share."""
        self.models = models
        self._client_names = ClientNameTrials(self.target, models, self.seed, self._run_body, self._name_requirement)
        self._controls = controls = ControlChecks(self.target, models)
        self._explanations: tuple[_Explanation, ...] = (
            controls.explain_by_lost_model,
            controls.explain_by_repetition,
            controls.explain_by_other_inputs,
            controls.explain_missing_answer,
            controls.explain_by_plain_request,
            self._client_names.explain,
            controls.explain_wrong_values,
        )

    def _judge(self, case: Case) -> tuple[RowOutcome, int]:
        # The last wait of a row is never repeated, and a busy server is asked only a few times.
        self._busy.begin_row(case.key)
        while True:
            with self._busy.attempt() as scope:
                for wait in self._short_waits.list_waits(case):
                    with suppress(HungError, TooShortError):
                        return self._judge_once(case, scope, wait)

    def _judge_once(self, case: Case, scope: str, wait: Wait) -> tuple[RowOutcome, int]:
        """Return the outcome and the number of exchanges.

        Raises:
            BusyError: the row must be repeated after a pause.
            HungError: the row must be repeated with the next wait.
            TooShortError: the row must be repeated with the next wait.
        """
        client = self._client_names.choose_names(case)[0]
        with self.target.scope(scope, client=client, short_wait=wait.short_s, raises_when_hung=wait.raises_when_hung):
            try:
                found = self.models.find_missing_prerequisite(case) or self._conclude_row(case)
                self._short_waits.record_outcome(found, wait)
            except (HungError, TooShortError):
                self.target.discard_calls()
                raise
            found = self._fail_for_auxiliary_request(case, found)
            self.crashes.record_row(case, has_failed=self._has_failed(found))
            return self._finish(found), len(self.target.exchanges)

    def _finish(self, found: RowOutcome) -> RowOutcome:
        """Return the outcome of a row with the features of its requests, and without secrets."""
        sent = found.sent or collect_answered_features(self.target.exchanges if found.outcome is Outcome.PASS else ())
        return replace(found.hide_secrets(self.target.settings.secrets), sent=sent)

    def _has_failed(self, found: RowOutcome) -> bool:
        is_open = found.reason is not None and found.reason.kind in (ReasonKind.SHORT_WAIT, ReasonKind.SLOW)
        return found.outcome is Outcome.FAIL or is_open

    # --- run the body ---

    def _conclude_row(self, case: Case) -> RowOutcome:
        """Return the outcome of a row that applies to the target."""
        try:
            return self._fail_for_other_violation(case, self._run_check(case))
        except TargetLostError as lost:
            return self._conclude_lost(case, lost)

    def _run_check(self, case: Case) -> RowOutcome:
        try:
            return self._run_body(case)
        except (UnmetError, BlockedError, NotApplicableError) as error:
            return self._conclude_error(case, self._busy.raise_if_busy(error))
        except NotRecordedError as missing:
            kind = ReasonKind.NOT_KEPT if isinstance(missing, PartlyRecordedError) else ReasonKind.NOT_RECORDED
            return no_verdict(Outcome.ERROR, kind, escape_text(str(missing)))
        except WaitError as inconclusive:
            return self._conclude_wait(case, inconclusive)
        except (HungError, TargetLostError):
            raise
        except (Exception, SystemExit) as error:
            return conclude_exception(error)

    def _run_body(self, case: Case) -> RowOutcome:
        if self.target.lost and not case.check.judges_discovery:
            raise TargetLostError(self.target.lost, has_died=self.target.has_died)
        model = self.models.build_model(case)
        if isinstance(model, DeployedModel) and model.control is not None:
            model.control.begin_row()
        if dead := self.models.explain_dead_transport(case):
            return no_verdict(Outcome.BLOCKED, ReasonKind.SIMPLER_IS_WRONG, dead)
        if model and (case.check.infers or case.check.is_over_grpc):
            silence = self.models.explain_unusable_model(case.check, model)  # before a refusal: see `expect_alive`
            if silence and case.check.infers:
                return no_verdict(Outcome.BLOCKED, ReasonKind.MODEL_IS_SILENT, silence, model.name)
        peer = GrpcTarget(self.target) if case.check.is_over_grpc else self.target
        with self._short_waits.raise_for_waits(case):
            return conclude_met(case, case.check.body(peer, *([model] if model else []), *case.row.values))

    # --- conclude ---

    def _conclude_wait(self, case: Case, wait: WaitError) -> RowOutcome:
        """Return the outcome of a row without a verdict, and name the cause of a short wait if a control shows it."""
        error = wait.__context__
        unmet = error.cause if isinstance(error, BlockedError) else error
        if wait.kind is not ReasonKind.SHORT_WAIT or not isinstance(unmet, UnmetError):
            return wait.conclude()
        if cause := self._controls.explain_missing_answer(case, unmet):
            wait.requirement = name_requirement(case, cause)
        return wait.conclude()

    def _conclude_error(self, case: Case, error: RowError | NotApplicableError) -> RowOutcome:
        if isinstance(error, NotApplicableError):
            return conclude_exception(error)
        for explain in self._explanations:
            explained = explain(case, error)
            if isinstance(explained, RowOutcome):
                return explained
            error = explained or error
            if isinstance(explained, UnmetError):
                break
        if isinstance(error, UnmetError):
            return self._conclude_unmet(case, error)
        # A blocked row does not apply if its cause is a request beyond a limit of the target.
        return self._find_exemption(case, error.cause) or conclude_exception(error)

    def _conclude_unmet(self, case: Case, unmet: UnmetError) -> RowOutcome:
        if exemption := self._find_exemption(case, unmet):
            return exemption
        requirement = self._name_requirement(case, unmet)
        unmet.actual += describe_earlier_answer(unmet, self.target.exchanges)
        return self._conclude_failure(case, unmet, requirement)

    def _find_exemption(self, case: Case, unmet: UnmetError | None) -> RowOutcome | None:
        """Return another outcome if the documents allow the failure, else None."""
        if unmet is None or unmet.reply is None or unmet.requirement == CLIENT_NAME:
            return None
        model = self.models.build_model(case)
        for find_exemption in self._exemptions:
            found = find_exemption(case, unmet, model)
            if isinstance(found, UnmetError):
                requirement = name_requirement(case, found)
                failure = self._describe_failure(case, found, requirement)
                return conclude_unmet(failure, self._grade_unmet_requirement(requirement))
            if found is not None:
                return found
        return None

    def _conclude_failure(self, case: Case, unmet: UnmetError, requirement: str) -> RowOutcome:
        failure = self._describe_failure(case, unmet, requirement)
        found = conclude_unmet(failure, self._grade_unmet_requirement(requirement))
        return replace(found, sent=collect_failed_features(unmet, requirement))

    def _name_requirement(self, case: Case, unmet: UnmetError) -> str:
        """Return the id of the requirement that the report names as unmet."""
        return self._raw_interpretation.adjust_requirement(name_requirement(case, unmet))

    def _grade_unmet_requirement(self, requirement: str) -> Outcome:
        return grade_unmet(requirement, strict=self._strict)

    # --- crashes and incidental violations ---

    def _fail_for_other_violation(self, case: Case, found: RowOutcome) -> RowOutcome:
        """Return the outcome of a row, or a failure for a crash or for a refusal that the check does not judge.

        Raises:
            TargetLostError: the server has ended, and does not come back.
        """
        if unmet := self.crashes.find_repeatable_crash(case):  # no limit of a server excuses a crash
            return conclude_unmet(self._describe_failure(case, unmet, name_requirement(case, unmet)), Outcome.FAIL)
        return self._fail_for_refusal_without_error(case, found)

    def _conclude_lost(self, case: Case, lost: TargetLostError) -> RowOutcome:
        """Return the outcome of a row in which the target was lost: failed if it crashed the server, else an error."""
        if unmet := self.crashes.find_violation(case, lost):
            return self._conclude_unmet(case, unmet)
        why = escape_text(self.crashes.explain_loss(lost))
        return no_verdict(Outcome.ERROR, ReasonKind.TARGET_LOST, f"the target is gone: {why}", why)

    def _fail_for_refusal_without_error(self, case: Case, found: RowOutcome) -> RowOutcome:
        """Return the outcome of a row, or a failure if an endpoint refused a request of the row without error object.

        The area `errors` judges the refusals that rows expect, and servers that never send an error object. A limit of
        the server excuses the refusal itself, but not its form. Advice about HTTP names the cause: the library that
        refuses a feature, such as trailer fields, cannot write the server's error object.
        """
        is_judged = case.requirement.is_of_pack or any(isinstance(value, Refusal) for value in case.row.values)
        if found.failure is not None:
            is_judged |= get_requirement(found.failure.requirement).concern is Concern.TRANSPORT
        if case.check.is_over_grpc or is_judged or found.outcome not in _OUTCOMES_WITH_REFUSALS:
            return found
        unmet = find_refusal_without_error([Reply(one) for one in self.target.exchanges])
        with suppress(TargetLostError, NotRecordedError):
            if unmet is not None and has_error_object(self.target):
                failed = self._conclude_failure(case, unmet, name_requirement(case, unmet))
                return found if failed.outcome is found.outcome else failed
        return found

    def _fail_for_auxiliary_request(self, case: Case, found: RowOutcome) -> RowOutcome:
        """Return the outcome of a row, or a failure if an auxiliary request during the row got no valid answer.

        The suite sends an auxiliary request to test whether the model answers, for example.
        """
        broken = [one for one in self.target.broken if not one.is_deliberate]
        if not broken or found.outcome not in _OUTCOMES_WITH_REQUESTS:
            return found
        self.target.broken = []
        first, more = broken[0], f" (and {len(broken) - 1} more)" if broken[1:] else ""
        named = attribute_broken_request(first)
        unmet = UnmetError(
            f"{first.expected}, to an auxiliary request of the suite ({first.scope})",
            f"{escape_text(first.outcome)}{more}",
            first.reply,
            requirement=to_grpc_requirement(named) if first.reply.is_over_grpc else named,
            ends_server=bool(first.lost),
        )
        return self._conclude_unmet(case, unmet)

    # --- evidence ---

    def _describe_failure(self, case: Case, unmet: UnmetError, requirement: str) -> Failure:
        """Return the description of a failure, and write the evidence of the row if the user requested evidence."""
        settings, reply = self.target.settings, unmet.reply
        if reply is None:
            return describe(unmet, requirement, settings)
        is_about_state = self._evidence is not None and requirement in STATE_REQUIREMENTS
        steps = build_reproduction(
            reply.exchange, self.target.exchanges, since=unmet.since, is_about_state=is_about_state
        )
        build_repeat = partial(build_repeat_command, steps, settings, names_client=requirement == CLIENT_NAME)
        if self._evidence is None:
            repeat = build_repeat(self._save_body(reply.exchange.message))
            return describe(unmet, requirement, settings, repeat, self.target.exchanges)
        folder = self._evidence / evidence.build_folder_name(case.check.id, case.row.id)
        repeat = build_repeat(str(folder / "request.bin"))
        if not (repeat or reply.exchange.as_octets):
            repeat = f"sh {shlex.quote(str(folder / 'repro.sh'))}"
        failure = describe(unmet, requirement, settings, repeat, self.target.exchanges)
        placements = {role: placement.to_dict() for role, placement in self.target.placements.items()}
        about = {
            "check": case.check.id,
            "row": case.row.id,
            "url": settings.url,
            **({"grpc": settings.grpc.url} if settings.grpc else {}),
            "placements": placements,
            "survey": self.models.discovery_result.to_dict(),
            **({} if self.seed is None else {"seed": self.seed}),
            "failure": {name: value for name, value in asdict(failure).items() if value is not None},
        }
        evidence.write(folder, about, failure, steps, settings)
        return failure

    def _save_body(self, message: Message) -> str | None:
        """Save the body of a request that is too long for a command; return its file, or None."""
        return self.bodies.save(message.body) if self.bodies and has_long_body(message) else None


class RobustnessJudge(Judge):
    """Judges robustness rows: every failure is advisory, and failed auxiliary requests are ignored.

    Each robustness row tests by itself whether the server is healthy before and after its requests. A hostile request
    may be too large for any server, so limits are not considered. A crash that it causes says nothing about other
    requirements. The judge writes no evidence, because the programs in the evidence cannot send half a request.
    """

    def __init__(self, main_judge: Judge) -> None:
        """Create a judge that shares the models and the crash tracker of `main_judge`, which judges the other rows."""
        super().__init__(main_judge.target, main_judge.models.discovery_result, bodies=main_judge.bodies)
        self._set_models(main_judge.models)
        self.crashes = main_judge.crashes
        self._exemptions = ()

    def _has_failed(self, found: RowOutcome) -> bool:
        return found.failure is not None

    def _fail_for_auxiliary_request(self, _case: Case, found: RowOutcome) -> RowOutcome:
        self.target.broken = []
        return found

    def _fail_for_other_violation(self, _case: Case, found: RowOutcome) -> RowOutcome:
        return found

    def _name_requirement(self, case: Case, *_: object) -> str:
        return case.requirements[0]

    def _grade_unmet_requirement(self, *_: object) -> Outcome:
        return Outcome.ADVISORY
