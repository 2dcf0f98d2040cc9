"""Runs one check on one row against the target and says what came of it."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass, field, replace
from pathlib import Path
from zlib import crc32

from conformance.discovery import deployed_model
from conformance.discovery.control_oracle import ControlOracle
from conformance.discovery.deployed_model import DeployedModel
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.expect.attribution import attribute_broken_request, to_grpc_requirement
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.judging import evidence
from conformance.judging.crashes import ALIVE, ALIVE_LEGAL, CrashTracker
from conformance.judging.earlier_answers import find_earlier_answer
from conformance.judging.failure import describe, is_long
from conformance.judging.raw_interpretation import RawInterpretation
from conformance.judging.reproduction import build_reproduction
from conformance.judging.request_features import collect_answered, collect_failed
from conformance.judging.row_outcome import RowOutcome, no_verdict
from conformance.judging.saved_bodies import SavedBodies
from conformance.judging.server_limits import ServerLimits
from conformance.roles.model import Model
from conformance.roles.roles import load as load_roles
from conformance.spec import ledger
from conformance.spec.check import Check, Row, format_key, format_label
from conformance.spec.extensions import GRPC, HTTP, OVER_HTTP, PROTOCOL, ROBUSTNESS
from conformance.spec.outcome import UNMET_OUTCOMES, Outcome, Reason, ReasonKind
from conformance.spec.result import CheckResult, Failure
from conformance.spec.text import escape_text
from conformance.transport import client_names
from conformance.transport.client_names import ClientName
from conformance.transport.credentials import hide
from conformance.transport.grpc_target import GrpcTarget
from conformance.transport.replay import NotKeptError, NotRecordedError
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLostError
from conformance.wire.grpc_request import make_infer_message

# What a row can come to that is no failure and has sent something.
_SENT = (Outcome.PASS, Outcome.ADVISORY, Outcome.OBSERVED, Outcome.BLOCKED)
# What is about requests that came before, on whatever connection.
_OF_STATE = ("OIP-ISOLATION", "OIP-ISOLATION/grpc")
# That it does not matter which client a request names.
_CLIENT_NAME = "OIP-CLIENT-NAME"
ADDRESS_OPTIONS = {HTTP: "--target-url", GRPC: "--target-grpc"}


@dataclass(slots=True)
class Judge:
    """Everything that judging one row takes.

    Attributes:
        strict: advice counts as failure.
        evidence: where a failed row leaves its request and answer, or None.
        is_one_of_several: see `Ends.is_one_of_several`.
        bodies: keeps what is too long for a command, where no evidence is left; None keeps nothing.
        seed: chooses the client that a row names; None leaves the suite's own name to all.
    """

    target: Target
    survey: DiscoveryResult
    strict: bool = False
    evidence: Path | None = None
    is_one_of_several: bool = False
    bodies: SavedBodies | None = None
    seed: int | None = None
    _deployed: dict[tuple[str, bool], DeployedModel] = field(default_factory=dict)
    _limits: ServerLimits = field(init=False)
    _readings: RawInterpretation = field(init=False)
    _ends: CrashTracker = field(init=False)

    def __post_init__(self) -> None:
        self._limits = ServerLimits(self.target)
        self._readings = RawInterpretation(self.target)
        self._ends = CrashTracker(self.target, self.is_one_of_several)

    def __call__(self, check: Check, row: Row) -> CheckResult:
        """Return the result of a check on one row. Raises nothing but what stops a run (`KeyboardInterrupt`)."""
        started = time.monotonic()
        with self.target.scope(format_key(check.id, row.id), client=self._clients(check, row)[0]):
            said = self._absent(check, row) or self._run(check, row)
            said = self._with_what_broke(check, row, said)
            entry = ledger.get_requirement(check.requirements(row)[0])
            is_missed = said.failure is not None and entry.is_of_robustness
            self._ends.note(format_label(check.id, row.id), has_failed=is_missed or said.outcome is Outcome.FAIL)
            exchanges = len(self.target.exchanges)
            sent = said.sent or collect_answered(self.target.exchanges if said.outcome is Outcome.PASS else ())
        secrets = self.target.settings.secrets
        return CheckResult(
            check.id,
            row.id,
            check.claim,
            str(entry.area),
            str(entry.extension),
            said.outcome,
            list(check.requirements(row)),
            hide(said.message, secrets),
            hide(said.observation, secrets),
            round(time.monotonic() - started, 6),
            exchanges,
            said.failure,
            said.reason and Reason(said.reason.kind, hide(said.reason.subject, secrets)),
            sent,
        )

    # --- before ---

    def _absent(self, check: Check, row: Row) -> RowOutcome | None:
        """Say why the row does not apply to this target, or None."""
        offered, transports = self.survey.offered, self.target.settings.transports
        broke = check.of_survey and any(not one.is_deliberate for one in self.target.broken_before)
        applies = check.is_over_grpc or broke or _withstands(check, row)
        if not (applies or {*OVER_HTTP, PROTOCOL} & set(offered)):
            return _absence(ReasonKind.NOTHING_OVER_HTTP, "none of the extensions is offered over HTTP")
        own = str(ledger.get_requirement(check.requirements(row)[0]).extension)
        missing = [name for name in (own, *row.needs) if name not in (PROTOCOL, ROBUSTNESS, *offered)]
        if own not in missing:
            for transport in check.over:
                if transport not in transports:
                    return _absence(
                        ReasonKind.TRANSPORT_NOT_GIVEN, f"{ADDRESS_OPTIONS[transport]} is not given", transport
                    )
        if missing:
            return _absence(ReasonKind.NOT_OFFERED, f"{missing[0]} is not offered", missing[0])
        return self._without_model(check, row)

    def _without_model(self, check: Check, row: Row) -> RowOutcome | None:
        """Say why there is no model to judge the row with, or None."""
        if row.model is not None:
            return self._misfit(check, row)
        role = check.find_role(row)
        if role is None:
            return None
        if role not in self.survey.roles:
            return _absence(ReasonKind.NO_MODEL, f"no model for the role {role}", role)
        if check.is_over_grpc or "binary_tensor_data" in self.survey.offered or load_roles()[role].is_json_capable:
            return None
        message = f"binary_tensor_data is not offered, and {role} has no JSON form"
        return _absence(ReasonKind.NO_JSON_FORM, message, role)

    def _misfit(self, check: Check, row: Row) -> RowOutcome | None:
        """Say what a deployed model lacks for the row, or None."""
        model, fit = self._find(check, row), check.find_fit(row)
        lack = (
            ""
            if fit is None or model.trouble
            else fit.lack(model.role.inputs, model.role.outputs, is_described=model.is_described)
        )
        return _absence(ReasonKind.NOT_FOR_THIS_MODEL, f"{model.name} lacks {lack}", model.name) if lack else None

    # --- the check ---

    def _run(self, check: Check, row: Row) -> RowOutcome:
        try:
            return self._judged(check, row)
        except UnmetError as unmet:
            if self._is_unsteady(check, row):
                return _absence(ReasonKind.NOT_FOR_THIS_TARGET, f"{row.model} is not deterministic")
            found = self._ends.limit_to_crash(unmet)
            self._note_other_name(check, row, found)
            return self._unmet(check, row, found)
        except BlockedError as blocked:
            if self._is_unsteady(check, row):
                return _absence(ReasonKind.NOT_FOR_THIS_TARGET, f"{row.model} is not deterministic")
            cause = blocked.cause or UnmetError("an answer that lets the row be judged", escape_text(str(blocked)))
            if self._note_other_name(check, row, cause, is_blocked=True):
                return self._unmet(check, row, cause)
            # What is not to be said of an answer is said of none that the target had no room for.
            return self._beyond(check, row, blocked.cause) or _blocked(
                ReasonKind.SIMPLER_IS_WRONG, escape_text(str(blocked))
            )
        except NotApplicableError as reason:
            return _absence(ReasonKind.NOT_FOR_THIS_TARGET, escape_text(str(reason)))
        except NotRecordedError as missing:
            kind = ReasonKind.NOT_KEPT if isinstance(missing, NotKeptError) else ReasonKind.NOT_RECORDED
            return _error(kind, escape_text(str(missing)))
        except TargetLostError as lost:
            return self._lost(check, row, lost)
        except Exception as error:  # a fault of the suite's own must be seen, and must not end the run
            trace = "".join(f"\n| {escape_text(line)}" for line in traceback.format_exc().splitlines())
            text = f"the suite failed: {escape_text(f'{type(error).__name__}: {error}')}{trace}"
            return _error(ReasonKind.SUITE_FAILED, text)

    def _is_unsteady(self, check: Check, row: Row) -> bool:
        """Say whether a deployed model gives other answers to the row's control requests than before."""
        model = self._find(check, row) if row.model is not None else None
        if model is None or model.control is None:
            return False
        with self.target.scope(f"{format_key(check.id, row.id)}, control"):
            return model.control.has_changed(model)

    def _judged(self, check: Check, row: Row) -> RowOutcome:
        if self.target.lost and not check.of_survey:
            raise TargetLostError(self.target.lost, has_died=self.target.has_died)
        model = self._model(check, row)
        if isinstance(model, DeployedModel) and model.control is not None:
            model.control.begin_row()
        if model and check.infers and (silence := self._silence(check, model)):
            return _blocked(ReasonKind.MODEL_IS_SILENT, silence, model.name)
        peer = GrpcTarget(self.target) if check.is_over_grpc else self.target
        observation = check.body(peer, *([model] if model else []), *row.values)
        observes = ledger.get_requirement(check.requirements(row)[0]).level == "OBSERVE"
        return RowOutcome(Outcome.OBSERVED if observes else Outcome.PASS, "", escape_text(observation or ""))

    def _model(self, check: Check, row: Row) -> Model | None:
        salt = crc32(format_key(check.id, row.id).encode()) % 256
        if row.model is not None:
            return replace(self._find(check, row), salt=salt)
        role = check.find_role(row)
        return None if role is None else self.target.model(role, salt)

    def _find(self, check: Check, row: Row) -> DeployedModel:
        """Return a model that the survey has described; its control requests are kept from one check to the next."""
        found = str(row.model), check.over == (GRPC,)
        if found not in self._deployed:
            control = ControlOracle(self.target, is_over_grpc=found[1])
            model = replace(deployed_model.from_dict(self.survey.models[found[0]]), control=control)
            self._deployed[found] = self._with_typed_calls(model) if found[1] else model
        return self._deployed[found]

    def _with_typed_calls(self, model: DeployedModel) -> DeployedModel:
        """Return a model as it is asked over gRPC: with typed contents where they work, JSON over HTTP or not."""
        typed = replace(model, json_trouble="")
        if not model.json_trouble or not typed.is_json_capable:
            return model
        with self.target.scope(f"typed call {model.name}"):
            return typed if self.target.send(make_infer_message(typed.plain()), fresh=True).succeeded else model

    def _silence(self, check: Check, model: Model) -> str:
        """Say why the model cannot be used at all; empty where it can."""
        if isinstance(model, DeployedModel) and model.trouble:
            return escape_text(model.trouble, 800)
        for transport in sorted(check.over):
            if refusal := self.target.find_plain_refusal(model, transport):
                over = " over gRPC" if transport == GRPC else ""
                return f"{model.name} answers no plain request{over}: {escape_text(refusal)}"
        return ""

    # --- the client that a row names ---

    def _clients(self, check: Check, row: Row) -> tuple[ClientName, ClientName]:
        """Return the name that a row goes out under, and the other one; see `client_names.choose`."""
        return client_names.choose_names(None if _withstands(check, row) else self.seed, format_key(check.id, row.id))

    def _note_other_name(self, check: Check, row: Row, unmet: UnmetError, *, is_blocked: bool = False) -> bool:
        """Make what is unmet a matter of the client's name where the row is met under the other one; say whether it is.

        Only a MUST is: to advise the one client and not the other is a server's right. A row without an answer is not
        sent again, and may hang again. Met twice under the other name, then unmet twice: a server that fails every
        second request, or every third, does not look so.
        """
        is_must = is_blocked or ledger.get_requirement(self._named(check, row, unmet)).level == "MUST"
        is_open = any(one.status is None for one in self.target.exchanges)
        own, other = self._clients(check, row)
        if self.seed is None or is_open or not is_must or _withstands(check, row):
            return False
        for place, (client, is_met) in enumerate(((other, True), (other, True), (own, False), (own, False))):
            with self.target.scope(f"{format_key(check.id, row.id)}, again {place}", client=client):
                if self._judge_again(check, row) is not is_met:
                    return False
        is_call = unmet.reply.is_over_grpc if unmet.reply else check.is_over_grpc
        ours, theirs = (client.grpc if is_call else client.http for client in (own, other))
        unmet.expected = f"what the same request gets as {theirs}, where it is met: {unmet.expected}"
        unmet.actual = f"as {ours}: {unmet.actual}"
        unmet.requirement = _CLIENT_NAME
        return True

    def _judge_again(self, check: Check, row: Row) -> bool | None:
        """Say whether a row is met when it is sent again; None where that says nothing."""
        try:
            self._judged(check, row)
        except (UnmetError, BlockedError):
            return False
        except Exception:  # the row has its outcome already, and needs no other reason
            return None
        return True

    # --- a target that breaks, or is gone ---

    def _with_what_broke(self, check: Check, row: Row, said: RowOutcome) -> RowOutcome:
        """Say of a row that is not failed by itself what broke beside it: whether its model answers at all, say."""
        broken = [one for one in self.target.broken if not one.is_deliberate]
        if _withstands(check, row):  # which asks itself whether the server is well, before and after
            self.target.broken = []
            return said
        if not broken or said.outcome not in _SENT:
            return said
        self.target.broken = []
        first, more = broken[0], f" (and {len(broken) - 1} more)" if broken[1:] else ""
        named = attribute_broken_request(first)
        unmet = UnmetError(
            f"{first.expected}, to a request beside this row, for {first.scope}",
            f"{escape_text(first.outcome)}{more}",
            first.reply,
            requirement=to_grpc_requirement(named) if first.reply.is_over_grpc else named,
        )
        return self._unmet(check, row, unmet)

    def _lost(self, check: Check, row: Row, lost: TargetLostError) -> RowOutcome:
        """Say of a row in which the target was lost that it fails, where it ended the server; else that it is open."""
        unmet = None if _withstands(check, row) else self._ends.blamed(lost)
        if unmet is not None:
            named = unmet.requirement or check.requirements(row)[0]
            entry = ledger.get_requirement(named)
            if entry.level != "MUST":  # to end is never a matter of advice
                unmet.requirement = ALIVE if entry.concern is ledger.Concern.REFUSAL else ALIVE_LEGAL
            return self._unmet(check, row, unmet)
        why = escape_text(self._ends.told(lost))
        return _error(ReasonKind.TARGET_LOST, f"the target is gone: {why}", why)

    # --- what is unmet ---

    def _beyond(self, check: Check, row: Row, unmet: UnmetError | None) -> RowOutcome | None:
        """Say that what is unmet is beyond a limit that the target has for itself, or None."""
        if unmet is None or unmet.reply is None or unmet.requirement == _CLIENT_NAME or _withstands(check, row):
            return None
        model, named = self._model(check, row), unmet.requirement or check.requirements(row)[0]
        if reading := self._readings.find_exemption(unmet.reply, named, model):
            return _absence(ReasonKind.NOT_FOR_THIS_TARGET, reading)
        limit = self._limits.find_limit(unmet.reply, model)
        return _absence(ReasonKind.TOO_LARGE, limit) if limit else None

    def _unmet(self, check: Check, row: Row, unmet: UnmetError) -> RowOutcome:
        if beyond := self._beyond(check, row, unmet):
            return beyond
        requirement = self._named(check, row, unmet)
        if _withstands(check, row):  # whatever is missed for it
            requirement = check.requirements(row)[0]
        unmet.actual += find_earlier_answer(unmet, self.target.exchanges)
        outcome = (
            Outcome.ADVISORY if _withstands(check, row) else UNMET_OUTCOMES[ledger.get_requirement(requirement).level]
        )
        if outcome is Outcome.ADVISORY and self.strict and not _withstands(check, row):
            outcome = Outcome.FAIL
        failure = self._failure(check, row, unmet, requirement)
        message = f"expected {failure.expected}, got {failure.actual}"
        observation = failure.actual if outcome is Outcome.OBSERVED else ""
        return RowOutcome(outcome, message, observation, failure, sent=collect_failed(unmet, requirement))

    def _named(self, check: Check, row: Row, unmet: UnmetError) -> str:
        """Return the requirement that is unmet."""
        named = to_grpc_requirement(unmet.requirement) if check.is_over_grpc else unmet.requirement
        return self._readings.named(named or check.requirements(row)[0])

    def _failure(self, check: Check, row: Row, unmet: UnmetError, requirement: str) -> Failure:
        """Describe what is unmet, and leave the evidence where that is asked for."""
        settings = self.target.settings
        if self.evidence is None or unmet.reply is None or _withstands(check, row):  # no program sends half a request
            return describe(unmet, requirement, settings, self._kept(unmet))
        folder = self.evidence / evidence.build_folder_name(check.id, row.id)
        failure = describe(unmet, requirement, settings, str(folder / "request.bin"))
        placements = {role: placement.to_dict() for role, placement in self.target.placements.items()}
        about = {
            "check": check.id,
            "row": row.id,
            "url": settings.url,
            **({"grpc": settings.grpc.url} if settings.grpc else {}),
            "placements": placements,
            "survey": self.survey.to_dict(),
            **({} if self.seed is None else {"seed": self.seed}),
        }
        is_of_state = requirement in _OF_STATE
        steps = build_reproduction(
            unmet.reply.exchange, self.target.exchanges, since=unmet.since, is_of_state=is_of_state
        )
        evidence.write(folder, about, failure, steps, settings)
        return failure

    def _kept(self, unmet: UnmetError) -> str | None:
        """Return the file that holds the body of a request, where it is too long for a command."""
        message = unmet.reply.exchange.message if unmet.reply else None
        return self.bodies.keep(message.body) if self.bodies and message and is_long(message) else None


def _withstands(check: Check, row: Row) -> bool:
    """Say whether a row is about what a server withstands, of which no verdict is to hear."""
    return ledger.get_requirement(check.requirements(row)[0]).is_of_robustness


def _absence(kind: ReasonKind, message: str, subject: str = "") -> RowOutcome:
    return no_verdict(Outcome.NOT_APPLICABLE, kind, message, subject)


def _blocked(kind: ReasonKind, message: str, subject: str = "") -> RowOutcome:
    return no_verdict(Outcome.BLOCKED, kind, message, subject)


def _error(kind: ReasonKind, message: str, subject: str = "") -> RowOutcome:
    return no_verdict(Outcome.ERROR, kind, message, subject)
