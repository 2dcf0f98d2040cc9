"""Judges one check on one row against a server."""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from conformance.checks.support.refusals import Refusal
from conformance.discovery.control_oracle import find_differing_outputs
from conformance.discovery.deployed_model import Change, DeployedModel
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.expect.attribution import attribute_broken_request, to_grpc_requirement
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_declining_status, find_refusal_without_error, has_error_object
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, is_met
from conformance.judging import evidence
from conformance.judging.busy_retries import BusyRetries, RowError
from conformance.judging.crashes import ALIVE, ALIVE_LEGAL, CrashTracker, sends_legal_requests
from conformance.judging.evidence import SavedBodies
from conformance.judging.failure import describe, describe_earlier_answer
from conformance.judging.raw_interpretation import RawInterpretation
from conformance.judging.repeat_command import build_repeat_command, has_long_body
from conformance.judging.reproduction import build_reproduction
from conformance.judging.request_features import collect_answered_features, collect_failed_features
from conformance.judging.row_judge import (
    RowJudge,
    RowOutcome,
    conclude_exception,
    conclude_met,
    conclude_unmet,
    grade_unmet,
    is_wrong_request_answered,
    name_requirement,
    no_verdict,
)
from conformance.judging.row_models import RowModels, conclude_not_applicable
from conformance.judging.server_limits import ServerLimits
from conformance.judging.short_waits import ShortWaits, WaitError
from conformance.spec import ledger
from conformance.spec.check import Case
from conformance.spec.outcome import Outcome, Reason, ReasonKind
from conformance.spec.result import Failure
from conformance.spec.text import escape_text
from conformance.transport import client_names
from conformance.transport.client_names import ClientName
from conformance.transport.credentials import hide
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
# Requirements about the effect of earlier requests, on any connection.
_SPELLING = "OIP-WRITTEN"
STATE_REQUIREMENTS = ("OIP-ISOLATION", "OIP-ISOLATION/grpc")
# The requirement that answers do not depend on the client name in a request.
_CLIENT_NAME = "OIP-CLIENT-NAME"
ISOLATION = "OIP-ISOLATION"
# Repetitions of a failed row: True sends it under the other client name, and it must pass; False sends it under its own
# client name, and it must fail. A server that fails at random behaves like this in one of 256 rows at most.
_TRIALS_UNDER_OTHER_NAME = (True, True, False, False, True, False, True, False)


class Judge(RowJudge):
    """Judges the rows of a server that decide the verdict; `RobustnessJudge` judges the robustness rows.

    Attributes:
        models: the models of the target, with its discovery result.
        crashes: tracks whether the target has crashed.
    """

    def __init__(
        self,
        target: Target,
        survey: DiscoveryResult,
        *,
        strict: bool = False,
        evidence: Path | None = None,
        is_one_of_several: bool = False,
        bodies: SavedBodies | None = None,
        seed: int | None = None,
        is_ahead: bool = False,
    ) -> None:
        """Create a judge.

        Args:
            target: the server.
            survey: the discovery result of the server.
            strict: whether an unmet SHOULD fails.
            evidence: the folder for the request and answer of failed rows, or None.
            is_one_of_several: see `CrashTracker.is_one_of_several`.
            bodies: saves request bodies that are too long for a repeat command, if no evidence is written; or None.
            seed: decides which client name (User-Agent) each row sends; None sends the suite's own name in all rows.
            is_ahead: whether this judge runs rows ahead of their turn; the judge of the main session then runs the rows
                again that do not pass (see `ConcurrentScheduler`).
        """
        self.target = target
        self.models = RowModels(target, survey)
        self.crashes = CrashTracker(target, is_one_of_several)
        self.bodies = bodies
        self.seed = seed
        self._strict = strict
        self._evidence = evidence
        self._limits = ServerLimits(target)
        self._raw_interpretation = RawInterpretation(target)
        self._short_waits = ShortWaits(target, is_ahead=is_ahead)
        self._busy = BusyRetries(target, is_ahead=is_ahead)

    def _judge(self, case: Case) -> tuple[RowOutcome, int]:
        name = case.key
        return self._busy.judge_until_not_busy(name, lambda scope: self._judge_in_scope(case, scope))

    def _judge_in_scope(self, case: Case, scope: str) -> tuple[RowOutcome, int]:
        allows_short_wait = self._short_waits.allows_short_wait(case)
        if allows_short_wait and not self._short_waits.find_short_wait():
            with suppress(HungError):
                return self._judge_with_whole_timeout(case, scope, raises_when_hung=True)
        short_wait = self._short_waits.find_short_wait() if allows_short_wait else None
        if short_wait is not None and (judged := self._judge_once(case, scope, short_wait=short_wait)):
            return judged
        return self._judge_with_whole_timeout(case, scope)

    def _judge_with_whole_timeout(
        self, case: Case, scope: str, *, raises_when_hung: bool = False
    ) -> tuple[RowOutcome, int]:
        """Return the outcome and the number of exchanges; `raises_when_hung` is an option of `Target.scope`."""
        judged = self._judge_once(case, scope, raises_when_hung=raises_when_hung)
        assert judged is not None  # noqa: S101 - only a row with short waits is repeated
        return judged

    def _judge_once(
        self, case: Case, scope: str, *, short_wait: float | None = None, raises_when_hung: bool = False
    ) -> tuple[RowOutcome, int] | None:
        """Return the outcome and the number of exchanges; None if the row must be repeated with the whole timeout."""
        client = self._choose_client_names(case)[0]
        with self.target.scope(scope, client=client, short_wait=short_wait, raises_when_hung=raises_when_hung):
            try:
                found = self.models.find_missing_prerequisite(case) or self._fail_for_refusal_without_error(
                    case, self._run_check(case)
                )
            except HungError:
                self.target.discard_calls()
                raise
            if short_wait is not None and self._short_waits.must_repeat(found):
                self.target.discard_calls()
                return None
            self._short_waits.record_outcome(found)
            found = self._fail_for_auxiliary_request(case, found)
            self.crashes.record_row(case, has_failed=self._has_failed(found))
            exchanges = len(self.target.exchanges)
            sent = found.sent or collect_answered_features(
                self.target.exchanges if found.outcome is Outcome.PASS else ()
            )
        secrets = self.target.settings.secrets
        hidden = replace(
            found,
            message=hide(found.message, secrets),
            observation=hide(found.observation, secrets),
            reason=found.reason and Reason(found.reason.kind, hide(found.reason.subject, secrets)),
            sent=sent,
        )
        return hidden, exchanges

    def _has_failed(self, found: RowOutcome) -> bool:
        is_open = found.reason is not None and found.reason.kind in (ReasonKind.SHORT_WAIT, ReasonKind.SLOW)
        return found.outcome is Outcome.FAIL or is_open

    # --- the check ---

    def _run_check(self, case: Case) -> RowOutcome:
        try:
            return self._fail_for_crash(case, self._run_and_conclude(case))
        except TargetLostError as lost:
            return self._conclude_lost(case, lost)

    def _run_and_conclude(self, case: Case) -> RowOutcome:
        try:
            return self._run_body(case)
        except (UnmetError, BlockedError, NotApplicableError) as error:
            return self._conclude_error(case, self._busy.raise_if_busy(error))
        except NotRecordedError as missing:
            kind = ReasonKind.NOT_KEPT if isinstance(missing, PartlyRecordedError) else ReasonKind.NOT_RECORDED
            return no_verdict(Outcome.ERROR, kind, escape_text(str(missing)))
        except WaitError as inconclusive:
            return inconclusive.conclude()
        except (HungError, TargetLostError):
            raise
        except Exception as error:
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

    def _conclude_error(self, case: Case, error: RowError) -> RowOutcome:
        if isinstance(error, NotApplicableError):
            return conclude_exception(error)
        unmet = error.cause if isinstance(error, BlockedError) else error
        change = self.models.find_change(case, unmet.tensor if unmet else None)
        if change is Change.OTHER_VALUES:
            return conclude_not_applicable(ReasonKind.NOT_FOR_THIS_TARGET, f"{case.row.model} is not deterministic")
        if change is Change.OTHER_REQUEST and (mixed := self._attribute_to_isolation(unmet)):
            return self._conclude_unmet(case, mixed)
        if isinstance(error, BlockedError):
            return self._conclude_blocked(case, error)
        if is_wrong_request_answered(case, error) and not self._is_plain_request_right(case):
            reason = "the answer to a plain request is wrong as well"
            return self._conclude_blocked(case, BlockedError(reason, error))
        self._attribute_to_client_name(case, error)
        return self._conclude_unmet(case, error)

    def _attribute_to_isolation(self, unmet: UnmetError | None) -> UnmetError | None:
        """Return the violation, if the values of an answer are wrong on a server that mixes requests; else None."""
        reply = unmet.reply if unmet else None
        if unmet is None or reply is None or not reply.succeeded:
            return None
        again = self.target.send(reply.exchange.message, fresh=True)
        if unmet.tensor is None and not (again.succeeded and find_differing_outputs(reply, again)):
            return None
        unmet.requirement = to_grpc_requirement(ISOLATION) if reply.is_over_grpc else ISOLATION
        unmet.actual += "; repeated control requests also get outputs of other requests"
        return unmet

    def _conclude_blocked(self, case: Case, blocked: BlockedError) -> RowOutcome:
        cause = blocked.cause or UnmetError("an answer that lets the row be judged", escape_text(str(blocked)))
        if self._attribute_to_client_name(case, cause, is_blocked=True):
            return self._conclude_unmet(case, cause)
        # A blocked row does not apply if its cause is a request beyond a limit of the target.
        return self._find_exemption(case, blocked.cause) or conclude_exception(blocked)

    def _is_plain_request_right(self, case: Case) -> bool:
        """Return whether the server answers a plain request right; True if nothing is known about that."""
        model = self.models.build_model(case)
        peer = GrpcTarget(self.target) if case.check.is_over_grpc else self.target
        if model is None:
            return True
        try:
            reply = peer.send(peer.message(peer.build_good_requests(model)[0]), fresh=True)
            return is_met(lambda: expect(reply).tensors(model.find_outputs(model.sample())))
        except (BlockedError, NotApplicableError, TargetLostError, NotRecordedError):
            return True

    # --- the client name that a row sends ---

    def _choose_client_names(self, case: Case) -> tuple[ClientName, ClientName]:
        """Return the client name that a row sends, and the alternative; see `client_names.choose_names`."""
        return client_names.choose_names(self.seed, case.key, self.models.survey.refused_clients)

    def _attribute_to_client_name(self, case: Case, unmet: UnmetError, *, is_blocked: bool = False) -> bool:
        """Attribute an error to the client name if the row passes with another name; return whether it was attributed.

        Only an unmet MUST is attributed: a server may follow a SHOULD for one client only. A row with an unanswered
        request is not repeated, because it may hang again. Other rows are repeated several times: each repetition must
        pass with the other name, and fail with the row's own name. The order of the names excludes servers that fail
        every second or third request, or at random.
        """
        is_must = is_blocked or ledger.get_requirement(self._name_requirement(case, unmet)).level == "MUST"
        is_open = any(one.status is None for one in self.target.exchanges)
        if self.seed is None or is_open or not is_must:
            return False
        own, other = self._choose_client_names(case)
        for place, is_other in enumerate(_TRIALS_UNDER_OTHER_NAME):
            client = other if is_other else own
            with self.target.scope(f"{case.key}, again {place}", client=client):
                if self._repeat_row(case) is not is_other:
                    return False
        is_call = unmet.reply.is_over_grpc if unmet.reply else case.check.is_over_grpc
        ours, theirs = (client.grpc if is_call else client.http for client in (own, other))
        unmet.expected = f"the same outcome as with the User-Agent {theirs}: {unmet.expected}"
        unmet.actual = f"with the User-Agent {ours}: {unmet.actual}"
        unmet.requirement = _CLIENT_NAME
        return True

    def _repeat_row(self, case: Case) -> bool | None:
        """Send a row again and return whether it passes; None if the repetition is inconclusive."""
        try:
            self._run_body(case)
        except (UnmetError, BlockedError):
            return False
        except Exception:  # the outcome of the first run stands
            return None
        return True

    # --- broken requests and crashes ---

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
        )
        return self._conclude_unmet(case, unmet)

    def _fail_for_crash(self, case: Case, found: RowOutcome) -> RowOutcome:
        """Return the outcome of a row, or a failure if a request of the row got no answer because it ends the server.

        Raises:
            TargetLostError: the server has ended, and does not come back.
        """
        name, is_legal = case.key, sends_legal_requests(case)
        try:
            unmet = self.crashes.find_repeatable_crash(name, is_legal=is_legal)
        except TargetLostError as lost:
            if lost.has_died and self.crashes.suspected is None:
                raise
            return found
        return self._conclude_crash(case, unmet) if unmet else found

    def _conclude_crash(self, case: Case, unmet: UnmetError) -> RowOutcome:
        """Return the outcome of a row that crashed the server; no limit of a server excuses a crash."""
        requirement = name_requirement(case, unmet)
        return conclude_unmet(self._describe_failure(case, unmet, requirement), Outcome.FAIL)

    def _fail_for_refusal_without_error(self, case: Case, found: RowOutcome) -> RowOutcome:
        """Return the outcome of a row, or a failure if an endpoint refused a request of the row without error object.

        The area `errors` judges the refusals that rows expect, and servers that never send an error object. A limit of
        the server excuses the refusal itself, but not its form.
        """
        is_judged = any(isinstance(value, Refusal) for value in case.row.values)
        if case.check.is_over_grpc or is_judged or found.outcome not in _OUTCOMES_WITH_REFUSALS:
            return found
        unmet = find_refusal_without_error([Reply(one) for one in self.target.exchanges])
        with suppress(TargetLostError, NotRecordedError):
            if unmet is not None and has_error_object(self.target):
                failed = self._conclude_failure(case, unmet, name_requirement(case, unmet))
                return found if failed.outcome is found.outcome else failed
        return found

    def _conclude_lost(self, case: Case, lost: TargetLostError) -> RowOutcome:
        """Return the outcome of a row in which the target was lost: failed if it crashed the server, else an error."""
        unmet = self._find_crash_violation(lost, is_legal=sends_legal_requests(case))
        if unmet is not None:
            entry = ledger.get_requirement(unmet.requirement or case.requirements[0])
            if entry.level != "MUST":  # a crash always violates a MUST
                unmet.requirement = ALIVE if entry.concern is ledger.Concern.REFUSAL else ALIVE_LEGAL
            return self._conclude_unmet(case, unmet)
        why = escape_text(self.crashes.explain_loss(lost))
        return no_verdict(Outcome.ERROR, ReasonKind.TARGET_LOST, f"the target is gone: {why}", why)

    def _find_crash_violation(self, lost: TargetLostError, *, is_legal: bool) -> UnmetError | None:
        """Return the violation of a row in which the target was lost; None if the row does not fail for the loss."""
        return self.crashes.find_violation(lost, is_legal=is_legal)

    # --- unmet requirements ---

    def _find_exemption(self, case: Case, unmet: UnmetError | None) -> RowOutcome | None:
        """Return the outcome `not_applicable` if the documents allow the failure, else None.

        The request may exceed a limit of the target, or raw contents may have a byte order that cannot be compared.
        A limit that the target reports as its own error is allowed, and advised against.
        """
        self._limits.is_spelling_refused = False
        if unmet is None or unmet.reply is None or unmet.requirement == _CLIENT_NAME:
            return None
        model, named = self.models.build_model(case), unmet.requirement or case.requirements[0]
        if reading := self._raw_interpretation.find_exemption(unmet, named, model):
            return conclude_not_applicable(ReasonKind.NOT_FOR_THIS_TARGET, reading)
        if excess := self._limits.find_declared_excess(unmet.reply, model):
            return conclude_not_applicable(ReasonKind.DECLARED_LIMIT, excess, "max_batch")
        limit = self._limits.find_limit(unmet.reply, model)
        if not limit:
            return None
        try:
            expect_declining_status(unmet.reply)
        except UnmetError as advised:
            requirement = name_requirement(case, advised)
            failure = self._describe_failure(case, advised, requirement)
            return conclude_unmet(failure, self._grade_unmet_requirement(requirement))
        return conclude_not_applicable(ReasonKind.TOO_LARGE, limit)

    def _conclude_unmet(self, case: Case, unmet: UnmetError) -> RowOutcome:
        if limit := self._find_exemption(case, unmet):
            return limit
        requirement = self._name_requirement(case, unmet)
        unmet.actual += describe_earlier_answer(unmet, self.target.exchanges)
        return self._conclude_failure(case, unmet, requirement)

    def _conclude_failure(self, case: Case, unmet: UnmetError, requirement: str) -> RowOutcome:
        found = conclude_unmet(
            self._describe_failure(case, unmet, requirement), self._grade_unmet_requirement(requirement)
        )
        return replace(found, sent=collect_failed_features(unmet, requirement))

    def _name_requirement(self, case: Case, unmet: UnmetError) -> str:
        """Return the id of the requirement that the report names as unmet."""
        if self._limits.is_spelling_refused:
            return _SPELLING
        return self._raw_interpretation.adjust_requirement(name_requirement(case, unmet))

    def _grade_unmet_requirement(self, requirement: str) -> Outcome:
        return grade_unmet(requirement, strict=self._strict)

    def _describe_failure(self, case: Case, unmet: UnmetError, requirement: str) -> Failure:
        """Return the description of a failure, and write the evidence of the row if the user requested evidence."""
        settings, reply = self.target.settings, unmet.reply
        if reply is None:
            return describe(unmet, requirement, settings)
        is_about_state = self._evidence is not None and requirement in STATE_REQUIREMENTS
        steps = build_reproduction(
            reply.exchange, self.target.exchanges, since=unmet.since, is_about_state=is_about_state
        )
        if self._evidence is None:
            repeat = build_repeat_command(steps, settings, self._save_body(reply.exchange.message))
            return describe(unmet, requirement, settings, repeat)
        folder = self._evidence / evidence.build_folder_name(case.check.id, case.row.id)
        repeat = build_repeat_command(steps, settings, str(folder / "request.bin"))
        if not (repeat or reply.exchange.as_octets):
            repeat = f"sh {shlex.quote(str(folder / 'repro.sh'))}"
        failure = describe(unmet, requirement, settings, repeat)
        placements = {role: placement.to_dict() for role, placement in self.target.placements.items()}
        about = {
            "check": case.check.id,
            "row": case.row.id,
            "url": settings.url,
            **({"grpc": settings.grpc.url} if settings.grpc else {}),
            "placements": placements,
            "survey": self.models.survey.to_dict(),
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

    Each robustness row tests by itself whether the server is healthy before and after its requests. The judge writes
    no evidence, because the programs in the evidence cannot send half a request.
    """

    def __init__(self, main_judge: Judge) -> None:
        """Create a judge that shares the models and the crash tracker of `main_judge`, which judges the other rows."""
        super().__init__(main_judge.target, main_judge.models.survey, bodies=main_judge.bodies)
        self.models = main_judge.models
        self.crashes = main_judge.crashes

    def _has_failed(self, found: RowOutcome) -> bool:
        return found.failure is not None

    def _fail_for_auxiliary_request(self, _case: Case, found: RowOutcome) -> RowOutcome:
        self.target.broken = []
        return found

    def _fail_for_crash(self, _case: Case, found: RowOutcome) -> RowOutcome:
        return found

    def _fail_for_refusal_without_error(self, _case: Case, found: RowOutcome) -> RowOutcome:
        return found

    def _find_crash_violation(self, *_: object, **__: object) -> None:
        """Return None: a crash caused by a hostile request says nothing about other requirements."""

    def _find_exemption(self, *_: object) -> None:
        """Return None: a hostile request may be too large for any server, so limits are not considered."""

    def _name_requirement(self, case: Case, *_: object) -> str:
        return case.requirements[0]

    def _grade_unmet_requirement(self, *_: object) -> Outcome:
        return Outcome.ADVISORY
