"""Runs one check on one row against the target and says what came of it."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass, field, replace
from pathlib import Path
from zlib import crc32

from conformance.expect.attribution import of_broken, over_grpc
from conformance.expect.unmet import Blocked, NotApplicable, Unmet
from conformance.judging import evidence
from conformance.judging.course import course
from conformance.judging.earlier_answers import given_before
from conformance.judging.ends import ALIVE, ALIVE_LEGAL, Ends
from conformance.judging.failure import describe, is_long
from conformance.judging.kept_bodies import KeptBodies
from conformance.judging.own_limits import OwnLimits
from conformance.judging.raw_readings import RawReadings
from conformance.judging.said import Said, without_verdict
from conformance.roles.model import Model
from conformance.roles.roles import load as load_roles
from conformance.survey import deployed
from conformance.survey.control import Control
from conformance.survey.deployed import Deployed
from conformance.survey.survey import Survey
from conformance.terms import ledger
from conformance.terms.check import Check, Row, key, label
from conformance.terms.extensions import GRPC, HTTP, OVER_HTTP, PROTOCOL, ROBUSTNESS
from conformance.terms.outcome import UNMET, Outcome, Reason, ReasonKind
from conformance.terms.result import CheckResult, Failure
from conformance.terms.text import safe
from conformance.transport import client_names
from conformance.transport.client_names import ClientName
from conformance.transport.credentials import hide
from conformance.transport.grpc_target import GrpcTarget
from conformance.transport.replay import NotKeptError, NotRecordedError
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLost
from conformance.wire.grpc_request import infer_message

# What a row can come to that is no failure and has sent something.
_SENT = (Outcome.PASS, Outcome.ADVISORY, Outcome.OBSERVED, Outcome.BLOCKED)
# What is about requests that came before, on whatever connection.
_OF_STATE = ("OIP-ISOLATION", "OIP-ISOLATION/grpc")
# That it does not matter which client a request names.
_CLIENT_NAME = "OIP-CLIENT-NAME"
OPTION_OF = {HTTP: "--target-url", GRPC: "--target-grpc"}


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
    survey: Survey
    strict: bool = False
    evidence: Path | None = None
    is_one_of_several: bool = False
    bodies: KeptBodies | None = None
    seed: int | None = None
    _deployed: dict[tuple[str, bool], Deployed] = field(default_factory=dict)
    _limits: OwnLimits = field(init=False)
    _readings: RawReadings = field(init=False)
    _ends: Ends = field(init=False)

    def __post_init__(self) -> None:
        self._limits = OwnLimits(self.target)
        self._readings = RawReadings(self.target)
        self._ends = Ends(self.target, self.is_one_of_several)

    def __call__(self, check: Check, row: Row) -> CheckResult:
        """Return the result of a check on one row. Raises nothing but what stops a run (`KeyboardInterrupt`)."""
        started = time.monotonic()
        with self.target.scope(key(check.id, row.id), client=self._clients(check, row)[0]):
            said = self._absent(check, row) or self._run(check, row)
            said = self._with_what_broke(check, row, said)
            entry = ledger.requirement(check.requirements(row)[0])
            is_missed = said.failure is not None and entry.is_of_robustness
            self._ends.note(label(check.id, row.id), has_failed=is_missed or said.outcome is Outcome.FAIL)
            exchanges = len(self.target.exchanges)
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
        )

    # --- before ---

    def _absent(self, check: Check, row: Row) -> Said | None:
        """Say why the row does not apply to this target, or None."""
        offered, transports = self.survey.offered, self.target.settings.transports
        broke = check.of_survey and any(not one.is_manner for one in self.target.broken_before)
        applies = check.is_over_grpc or broke or _withstands(check, row)
        if not (applies or {*OVER_HTTP, PROTOCOL} & set(offered)):
            return _absence(ReasonKind.NOTHING_OVER_HTTP, "none of the extensions is offered over HTTP")
        own = str(ledger.requirement(check.requirements(row)[0]).extension)
        missing = [name for name in (own, *row.needs) if name not in (PROTOCOL, ROBUSTNESS, *offered)]
        if own not in missing:
            for transport in check.over:
                if transport not in transports:
                    return _absence(ReasonKind.TRANSPORT_NOT_GIVEN, f"{OPTION_OF[transport]} is not given", transport)
        if missing:
            return _absence(ReasonKind.NOT_OFFERED, f"{missing[0]} is not offered", missing[0])
        return self._without_model(check, row)

    def _without_model(self, check: Check, row: Row) -> Said | None:
        """Say why there is no model to judge the row with, or None."""
        if row.model is not None:
            return self._misfit(check, row)
        role = check.role_of(row)
        if role is None:
            return None
        if role not in self.survey.roles:
            return _absence(ReasonKind.NO_MODEL, f"no model for the role {role}", role)
        if check.is_over_grpc or "binary_tensor_data" in self.survey.offered or load_roles()[role].is_json_capable:
            return None
        message = f"binary_tensor_data is not offered, and {role} has no JSON form"
        return _absence(ReasonKind.NO_JSON_FORM, message, role)

    def _misfit(self, check: Check, row: Row) -> Said | None:
        """Say what a deployed model lacks for the row, or None."""
        model, fit = self._find(check, row), check.fit_of(row)
        lack = (
            ""
            if fit is None or model.trouble
            else fit.lack(model.role.inputs, model.role.outputs, is_described=model.is_described)
        )
        return _absence(ReasonKind.NOT_FOR_THIS_MODEL, f"{model.name} lacks {lack}", model.name) if lack else None

    # --- the check ---

    def _run(self, check: Check, row: Row) -> Said:
        try:
            return self._judged(check, row)
        except Unmet as unmet:
            if self._is_unsteady(check, row):
                return _absence(ReasonKind.NOT_FOR_THIS_TARGET, f"{row.model} is not deterministic")
            found = self._ends.of_several(unmet)
            self._note_other_name(check, row, found)
            return self._unmet(check, row, found)
        except Blocked as blocked:
            if self._is_unsteady(check, row):
                return _absence(ReasonKind.NOT_FOR_THIS_TARGET, f"{row.model} is not deterministic")
            cause = blocked.cause or Unmet("an answer that lets the row be judged", safe(str(blocked)))
            if self._note_other_name(check, row, cause, is_blocked=True):
                return self._unmet(check, row, cause)
            # What is not to be said of an answer is said of none that the target had no room for.
            return self._beyond(check, row, blocked.cause) or _blocked(ReasonKind.SIMPLER_IS_WRONG, safe(str(blocked)))
        except NotApplicable as reason:
            return _absence(ReasonKind.NOT_FOR_THIS_TARGET, safe(str(reason)))
        except NotRecordedError as missing:
            kind = ReasonKind.NOT_KEPT if isinstance(missing, NotKeptError) else ReasonKind.NOT_RECORDED
            return _error(kind, safe(str(missing)))
        except TargetLost as lost:
            return self._lost(check, row, lost)
        except Exception as error:  # a fault of the suite's own must be seen, and must not end the run
            trace = "".join(f"\n| {safe(line)}" for line in traceback.format_exc().splitlines())
            text = f"the suite failed: {safe(f'{type(error).__name__}: {error}')}{trace}"
            return _error(ReasonKind.SUITE_FAILED, text)

    def _is_unsteady(self, check: Check, row: Row) -> bool:
        """Say whether a deployed model gives other answers to the row's control requests than before."""
        model = self._find(check, row) if row.model is not None else None
        if model is None or model.control is None:
            return False
        with self.target.scope(f"{key(check.id, row.id)}, control"):
            return model.control.has_changed(model)

    def _judged(self, check: Check, row: Row) -> Said:
        if self.target.lost and not check.of_survey:
            raise TargetLost(self.target.lost, has_died=self.target.has_died)
        model = self._model(check, row)
        if isinstance(model, Deployed) and model.control is not None:
            model.control.begin_row()
        if model and check.infers and (silence := self._silence(check, model)):
            return _blocked(ReasonKind.MODEL_IS_SILENT, silence, model.name)
        peer = GrpcTarget(self.target) if check.is_over_grpc else self.target
        observation = check.body(peer, *([model] if model else []), *row.values)
        observes = ledger.requirement(check.requirements(row)[0]).level == "OBSERVE"
        return Said(Outcome.OBSERVED if observes else Outcome.PASS, "", safe(observation or ""))

    def _model(self, check: Check, row: Row) -> Model | None:
        salt = crc32(key(check.id, row.id).encode()) % 256
        if row.model is not None:
            return replace(self._find(check, row), salt=salt)
        role = check.role_of(row)
        return None if role is None else self.target.model(role, salt)

    def _find(self, check: Check, row: Row) -> Deployed:
        """Return a model that the survey has described; its control requests are kept from one check to the next."""
        found = str(row.model), check.over == (GRPC,)
        if found not in self._deployed:
            control = Control(self.target, is_over_grpc=found[1])
            model = replace(deployed.of_dict(self.survey.models[found[0]]), control=control)
            self._deployed[found] = self._with_typed_calls(model) if found[1] else model
        return self._deployed[found]

    def _with_typed_calls(self, model: Deployed) -> Deployed:
        """Return a model as it is asked over gRPC: with typed contents where they work, JSON over HTTP or not."""
        typed = replace(model, json_trouble="")
        if not model.json_trouble or not typed.is_json_capable:
            return model
        with self.target.scope(f"typed call {model.name}"):
            return typed if self.target.send(infer_message(typed.plain()), fresh=True).succeeded else model

    def _silence(self, check: Check, model: Model) -> str:
        """Say why the model cannot be used at all; empty where it can."""
        if isinstance(model, Deployed) and model.trouble:
            return safe(model.trouble, 800)
        for transport in sorted(check.over):
            if refusal := self.target.plain_refusal(model, transport):
                over = " over gRPC" if transport == GRPC else ""
                return f"{model.name} answers no plain request{over}: {safe(refusal)}"
        return ""

    # --- the client that a row names ---

    def _clients(self, check: Check, row: Row) -> tuple[ClientName, ClientName]:
        """Return the name that a row goes out under, and the other one; see `client_names.choose`."""
        return client_names.choose(None if _withstands(check, row) else self.seed, key(check.id, row.id))

    def _note_other_name(self, check: Check, row: Row, unmet: Unmet, *, is_blocked: bool = False) -> bool:
        """Make what is unmet a matter of the client's name where the row is met under the other one; say whether it is.

        Only a MUST is: to advise the one client and not the other is a server's right. A row without an answer is not
        sent again, and may hang again. Met twice under the other name, then unmet twice: a server that fails every
        second request, or every third, does not look so.
        """
        is_must = is_blocked or ledger.requirement(self._named(check, row, unmet)).level == "MUST"
        is_open = any(one.status is None for one in self.target.exchanges)
        own, other = self._clients(check, row)
        if self.seed is None or is_open or not is_must or _withstands(check, row):
            return False
        for place, (client, is_met) in enumerate(((other, True), (other, True), (own, False), (own, False))):
            with self.target.scope(f"{key(check.id, row.id)}, again {place}", client=client):
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
        except (Unmet, Blocked):
            return False
        except Exception:  # the row has its outcome already, and needs no other reason
            return None
        return True

    # --- a target that breaks, or is gone ---

    def _with_what_broke(self, check: Check, row: Row, said: Said) -> Said:
        """Say of a row that is not failed by itself what broke beside it: whether its model answers at all, say."""
        broken = [one for one in self.target.broken if not one.is_manner]
        if _withstands(check, row):  # which asks itself whether the server is well, before and after
            self.target.broken = []
            return said
        if not broken or said.outcome not in _SENT:
            return said
        self.target.broken = []
        first, more = broken[0], f" (and {len(broken) - 1} more)" if broken[1:] else ""
        named = of_broken(first)
        unmet = Unmet(
            f"{first.expected}, to a request beside this row, for {first.scope}",
            f"{safe(first.outcome)}{more}",
            first.reply,
            requirement=over_grpc(named) if first.reply.is_over_grpc else named,
        )
        return self._unmet(check, row, unmet)

    def _lost(self, check: Check, row: Row, lost: TargetLost) -> Said:
        """Say of a row in which the target was lost that it fails, where it ended the server; else that it is open."""
        unmet = None if _withstands(check, row) else self._ends.blamed(lost)
        if unmet is not None:
            named = unmet.requirement or check.requirements(row)[0]
            entry = ledger.requirement(named)
            if entry.level != "MUST":  # to end is never a matter of advice
                unmet.requirement = ALIVE if entry.concern is ledger.Concern.REFUSAL else ALIVE_LEGAL
            return self._unmet(check, row, unmet)
        why = safe(self._ends.told(lost))
        return _error(ReasonKind.TARGET_LOST, f"the target is gone: {why}", why)

    # --- what is unmet ---

    def _beyond(self, check: Check, row: Row, unmet: Unmet | None) -> Said | None:
        """Say that what is unmet is beyond a limit that the target has for itself, or None."""
        if unmet is None or unmet.reply is None or unmet.requirement == _CLIENT_NAME or _withstands(check, row):
            return None
        model, named = self._model(check, row), unmet.requirement or check.requirements(row)[0]
        if reading := self._readings.keep_from_judging(unmet.reply, named, model):
            return _absence(ReasonKind.NOT_FOR_THIS_TARGET, reading)
        limit = self._limits.met_by(unmet.reply, model)
        return _absence(ReasonKind.TOO_LARGE, limit) if limit else None

    def _unmet(self, check: Check, row: Row, unmet: Unmet) -> Said:
        if beyond := self._beyond(check, row, unmet):
            return beyond
        requirement = self._named(check, row, unmet)
        if _withstands(check, row):  # whatever is missed for it
            requirement = check.requirements(row)[0]
        unmet.actual += given_before(unmet, self.target.exchanges)
        outcome = Outcome.ADVISORY if _withstands(check, row) else UNMET[ledger.requirement(requirement).level]
        if outcome is Outcome.ADVISORY and self.strict and not _withstands(check, row):
            outcome = Outcome.FAIL
        failure = self._failure(check, row, unmet, requirement)
        message = f"expected {failure.expected}, got {failure.actual}"
        observation = failure.actual if outcome is Outcome.OBSERVED else ""
        return Said(outcome, message, observation, failure)

    def _named(self, check: Check, row: Row, unmet: Unmet) -> str:
        """Return the requirement that is unmet."""
        named = over_grpc(unmet.requirement) if check.is_over_grpc else unmet.requirement
        return self._readings.named(named or check.requirements(row)[0])

    def _failure(self, check: Check, row: Row, unmet: Unmet, requirement: str) -> Failure:
        """Describe what is unmet, and leave the evidence where that is asked for."""
        settings = self.target.settings
        if self.evidence is None or unmet.reply is None or _withstands(check, row):  # no program sends half a request
            return describe(unmet, requirement, settings, self._kept(unmet))
        folder = self.evidence / evidence.folder_name(check.id, row.id)
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
        steps = course(unmet.reply.exchange, self.target.exchanges, since=unmet.since, is_of_state=is_of_state)
        evidence.write(folder, about, failure, steps, settings)
        return failure

    def _kept(self, unmet: Unmet) -> str | None:
        """Return the file that holds the body of a request, where it is too long for a command."""
        message = unmet.reply.exchange.message if unmet.reply else None
        return self.bodies.keep(message.body) if self.bodies and message and is_long(message) else None


def _withstands(check: Check, row: Row) -> bool:
    """Say whether a row is about what a server withstands, of which no verdict is to hear."""
    return ledger.requirement(check.requirements(row)[0]).is_of_robustness


def _absence(kind: ReasonKind, message: str, subject: str = "") -> Said:
    return without_verdict(Outcome.NOT_APPLICABLE, kind, message, subject)


def _blocked(kind: ReasonKind, message: str, subject: str = "") -> Said:
    return without_verdict(Outcome.BLOCKED, kind, message, subject)


def _error(kind: ReasonKind, message: str, subject: str = "") -> Said:
    return without_verdict(Outcome.ERROR, kind, message, subject)
