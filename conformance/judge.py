"""Runs one check on one row against the target and says what came of it."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

from conformance import deployed, ledger
from conformance.check import Check, Row
from conformance.deployed import FULL, MIXED, PLAIN, Deployed
from conformance.options import OVER_HTTP
from conformance.outcome import UNMET, Blocked, NotApplicable, Outcome, TargetLost, Unmet
from conformance.report import evidence
from conformance.report.failure import describe
from conformance.report.result import NO_MODEL, NOTHING_OVER_HTTP, CheckResult, Failure
from conformance.roles import Model
from conformance.roles import load as load_roles
from conformance.target.exchange import Reply
from conformance.target.replay import NotRecordedError
from conformance.target.secrets import hide
from conformance.target.survey import Survey
from conformance.target.target import Target
from conformance.text import safe

TOO_LARGE = 413
LARGE = 64 * 1024  # bytes; a smaller body is for any server to take
# What a row may need beside extensions: that the target is judged over HTTP, or over gRPC, too.
OPTIONS_OF_DOORS = {"http": "--target-url", "grpc": "--target-grpc"}
GRPC = "grpc"


def scope(check: Check, row: Row) -> str:
    """Return what recordings call a row."""
    return f"{check.id}[{row.id}]"


@dataclass(slots=True)
class Judge:
    """Everything that judging one row takes.

    Attributes:
        strict: advice counts as failure.
        evidence: where a failed check leaves its request and answer, or None.
    """

    target: Target
    survey: Survey
    strict: bool = False
    evidence: Path | None = None
    _deployed: dict[str, Deployed] = field(default_factory=dict)

    def __call__(self, check: Check, row: Row) -> CheckResult:
        """Return the result of a check on one row. Raises nothing but what stops a run (`KeyboardInterrupt`)."""
        started = time.monotonic()
        self.target.begin(scope(check, row))
        verdict = self._absent(check, row) or self._run(check, row)
        requirement = check.requirements(row)[0]
        entry = ledger.requirement(requirement)
        return CheckResult(
            check.id,
            row.id,
            check.name,
            check.claim,
            str(entry.area),
            str(entry.extension),
            verdict.outcome,
            list(check.requirements(row)),
            hide(verdict.message, self.target.settings.secrets),
            hide(verdict.observation, self.target.settings.secrets),
            round(time.monotonic() - started, 6),
            len(self.target.exchanges),
            verdict.failure,
        )

    def _absent(self, check: Check, row: Row) -> _Verdict | None:
        """Say why the row does not apply to this target, or None."""
        doors = self.target.settings.doors
        if not (_is_over_grpc(check) or "http" in row.needs or set(OVER_HTTP) & set(self.survey.offered)):
            return _Verdict(Outcome.NOT_APPLICABLE, NOTHING_OVER_HTTP)
        for extension in (str(ledger.requirement(check.requirements(row)[0]).extension), *row.needs):
            if extension in OPTIONS_OF_DOORS:
                if extension not in doors:
                    return _Verdict(Outcome.NOT_APPLICABLE, f"{OPTIONS_OF_DOORS[extension]} is not given")
            elif extension != "protocol" and extension not in self.survey.offered:
                return _Verdict(Outcome.NOT_APPLICABLE, f"{extension} is not offered")
        role = check.role_of(row)
        if role is not None and role not in self.survey.roles:
            return _Verdict(Outcome.NOT_APPLICABLE, f"{NO_MODEL}{role}")
        if _is_over_grpc(check):
            return None
        if role is not None and not load_roles()[role].speaks_json and "binary_tensor_data" not in self.survey.offered:
            return _Verdict(Outcome.NOT_APPLICABLE, f"binary_tensor_data is not offered, and {role} has no JSON form")
        return None

    def _run(self, check: Check, row: Row) -> _Verdict:
        try:
            model = self._model(check, row)
            trouble = self._trouble(check, row, model) if model and check.infers else ""
            if trouble:
                return _Verdict(Outcome.BLOCKED, trouble)
            self.target.begin(scope(check, row))
            observation = check.body(self.target, *([model] if model else []), *row.values)
        except Unmet as unmet:
            return self._unmet(check, row, unmet)
        except Blocked as blocked:
            # What is not to be said of an answer is said of none that the target had no room for.
            if isinstance(cause := blocked.__context__, Unmet) and cause.reply and _is_too_large(cause.reply):
                return self._unmet(check, row, cause)
            return _Verdict(Outcome.BLOCKED, safe(str(blocked)))
        except NotApplicable as reason:
            return _Verdict(Outcome.NOT_APPLICABLE, safe(str(reason)))
        except NotRecordedError as missing:
            return _Verdict(Outcome.ERROR, safe(str(missing)))
        except TargetLost as lost:
            return _Verdict(Outcome.ERROR, f"the target is gone: {safe(str(lost))}")
        except Exception as error:  # a fault of the suite's own must be seen, and must not end the run
            trace = "".join(f"\n| {safe(line)}" for line in traceback.format_exc().splitlines())
            return _Verdict(Outcome.ERROR, f"the suite failed: {safe(f'{type(error).__name__}: {error}')}{trace}")
        observes = ledger.requirement(check.requirements(row)[0]).level == "OBSERVE"
        return _Verdict(Outcome.OBSERVED if observes else Outcome.PASS, "", safe(observation or ""))

    def _model(self, check: Check, row: Row) -> Model | None:
        if row.model is not None:
            return self._find(row.model)
        role = check.role_of(row)
        return None if role is None else self.target.model(role, crc32(f"{check.id}[{row.id}]".encode()) % 256)

    def _find(self, name: str) -> Deployed:
        """Return a model that the survey has described; it keeps its answers from one check to the next."""
        if name not in self._deployed:
            self._deployed[name] = deployed.of_dict(self.survey.models[name])
        return self._deployed[name]

    def _trouble(self, check: Check, row: Row, model: Model) -> str:
        """Say why the model cannot be used at all; empty where it can."""
        if not isinstance(model, Deployed):
            for door in ("grpc", *(set(row.needs) & {"http"})) if _is_over_grpc(check) else ("http",):
                if trouble := self.target.trouble(model, door):
                    over = " over gRPC" if door == "grpc" else ""
                    return f"{model.name} answers no plain request{over}: {safe(trouble)}"
            return ""
        if not model.trouble:
            self.target.begin(f"model {model.name}")
            for name in (PLAIN, FULL, MIXED) if "binary_tensor_data" in self.survey.offered else (PLAIN,):
                model.answer(self.target, name)
        return safe(model.trouble, 800)

    def _unmet(self, check: Check, row: Row, unmet: Unmet) -> _Verdict:
        if unmet.reply is not None and _is_too_large(unmet.reply):
            return _Verdict(Outcome.NOT_APPLICABLE, f"too large for the target: {safe(unmet.reply.outcome())}")
        requirement = unmet.requirement or check.requirements(row)[0]
        outcome = UNMET[ledger.requirement(requirement).level]
        if outcome is Outcome.ADVISORY and self.strict:
            outcome = Outcome.FAIL
        failure = self._failure(check, row, unmet, requirement)
        message = f"expected {failure.expected}, got {failure.actual}"
        observation = failure.actual if outcome is Outcome.OBSERVED else ""
        return _Verdict(outcome, message, observation, failure)

    def _failure(self, check: Check, row: Row, unmet: Unmet, requirement: str) -> Failure:
        """Describe what is unmet, and leave the evidence where that is asked for."""
        settings = self.target.settings
        if self.evidence is None or unmet.reply is None:
            return describe(unmet, requirement, settings)
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
        }
        evidence.write(folder, about, failure, unmet.reply.exchange, settings)
        return failure


@dataclass(frozen=True, slots=True)
class _Verdict:
    outcome: Outcome
    message: str = ""
    observation: str = ""
    failure: Failure | None = None


def _is_over_grpc(check: Check) -> bool:
    return ledger.requirement(check.requirements(check.rows[0])[0]).area == GRPC


def _is_too_large(reply: Reply) -> bool:
    """Whether a large body was declined: how much a server takes is its own affair (RFC 9110, 15.5.14)."""
    declined = reply.status == TOO_LARGE or reply.exchange.code == "RESOURCE_EXHAUSTED"
    return declined and len(reply.exchange.message.body) >= LARGE
