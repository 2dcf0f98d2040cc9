"""The session of one server under test: its discovery result, its models, and the judge of its rows.

    with Session(target) as session:
        session.discover(["raw"])
        results = [session.judge(case) for case in list_profile_rows("quick")]

An earlier discovery result, from the controller of a run or from a report, can be passed instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from conformance.discovery import deployed_model, limit_checks, model_discovery, role_discovery
from conformance.discovery.discovery_result import DiscoveryResult, Progress, ignore_progress
from conformance.judging.concurrent_judge import ConcurrentJudge
from conformance.judging.evidence import SavedBodies
from conformance.judging.judge import Judge, RobustnessJudge
from conformance.judging.selection import ROLES, Subjects
from conformance.roles.declared_limits import Limits
from conformance.roles.guessed_inputs import UserInputs
from conformance.roles.placement import Placement, add_versions
from conformance.spec.check import Case, format_key
from conformance.spec.extensions import GRPC, HTTP
from conformance.spec.result import CheckResult
from conformance.transport import broken_request, client_names
from conformance.transport.any_target import AnyTarget
from conformance.transport.broken_request import BrokenRequest
from conformance.transport.exchange import Exchange, Reply
from conformance.transport.grpc_target import GrpcTarget
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLostError

DISCOVERY_SCOPE = "survey"


class Session:
    """A target with its discovery result and its judge.

    Attributes:
        target: the server, or a recording in its place.
        discovery_result: the discovery result; empty until it is discovered or passed.
    """

    def __init__(
        self,
        target: Target,
        discovery_result: DiscoveryResult | None = None,
        *,
        placements: Mapping[str, Placement] | None = None,
        limits: Limits = MappingProxyType({}),
        strict: bool = False,
        evidence: Path | None = None,
        is_one_of_several: bool = False,
        bodies: SavedBodies | None = None,
        seed: int | None = None,
    ) -> None:
        """Create a session.

        Args:
            target: the server; only this session uses it.
            discovery_result: an earlier discovery result, or None.
            placements: the model of each role; None looks for models named like the roles.
            limits: the limits that the target file declares, for `discover`; an earlier result has them.
            strict: see `Judge`.
            evidence: see `Judge`.
            is_one_of_several: see `Judge`.
            bodies: see `Judge`.
            seed: see `Judge`.
        """
        self.target = target
        self.target.limits = limits
        self.discovery_result = DiscoveryResult()
        self._placements = placements
        self._seed = seed
        self._judge = Judge(
            target,
            self.discovery_result,
            strict=strict,
            evidence=evidence,
            is_one_of_several=is_one_of_several,
            bodies=bodies,
            seed=seed,
        )
        self._robustness_judge = RobustnessJudge(self._judge)
        if discovery_result is not None:
            self._set_discovery_result(discovery_result)

    def discover(
        self,
        extensions: Sequence[str] = (),
        subjects: Subjects = ROLES,
        given: Mapping[str, UserInputs] | None = None,
        *,
        lenient: bool = False,
        progress: Progress = ignore_progress,
    ) -> DiscoveryResult:
        """Discover what the target offers, and return the result without secrets that the target echoes.

        Args:
            extensions: the extensions to judge, whether offered or not; empty selects the offered ones.
            subjects: the subjects of the run.
            given: inputs that the user supplies instead of guessed ones, by model.
            lenient: see `model_discovery.discover_models`.
            progress: receives the progress of discovery.

        Raises:
            TargetLostError: the target does not answer.
            SettingsError: a model does not exist or cannot be used.
            ContradictedLimitError: a model exceeds a declared limit.
        """
        found = DiscoveryResult()
        try:
            with self.target.scope(DISCOVERY_SCOPE, outside_rows=True), self.target.limit_silence():
                if subjects.with_roles:
                    found = role_discovery.discover_roles(
                        self.target, extensions, self._placements, progress, subjects.packs
                    )
                if subjects.models:
                    of_models = model_discovery.discover_models(
                        self.target, subjects.models, extensions, given, lenient=lenient, progress=progress
                    )
                    found = found.merge(of_models) if subjects.with_roles else of_models
                limit_checks.apply_limits(self.target, found)
                self._set_discovery_result(found)
                found.refused_clients = self._find_refused_clients()
        except TargetLostError as lost:
            self._record_crash(lost)
            raise
        finally:
            found.broken = [one.to_dict() for one in self.target.broken]
            self.target.broken = []
            self._set_discovery_result(found.hide_secrets(self.target.settings.secrets))
        return self.discovery_result

    def _find_refused_clients(self) -> dict[str, str]:
        """Return the common client names that the server refuses, over any transport, each with the status."""
        roles = (self.target.model(role) for role in self.discovery_result.roles)
        deployed = map(deployed_model.from_dict, self.discovery_result.models.values())
        usable = [*filter(None, roles), *(model for model in deployed if not model.trouble)][:1]
        peers: Mapping[str, AnyTarget] = {HTTP: self.target, GRPC: GrpcTarget(self.target)}
        refused: dict[str, str] = {}
        for transport in sorted(self.target.settings.transports) if self._seed is not None else ():
            for model in usable:
                message = peers[transport].message(peers[transport].build_good_requests(model)[0])
                if self.target.send(message).succeeded:
                    refused |= client_names.find_refused_names(self.target.send, message)
        return refused

    def _record_crash(self, lost: TargetLostError) -> None:
        """Record that the last request got no valid answer, if the server crashed after this request."""
        if lost.has_died and self.target.last is not None and self.target.last.status is None:
            last = Reply(self.target.last)
            self.target.broken.append(BrokenRequest(DISCOVERY_SCOPE, last, last, str(lost)))

    def judge(self, case: Case) -> CheckResult:
        """Return the result of a row."""
        is_of_robustness = case.requirement.is_of_robustness
        return (self._robustness_judge if is_of_robustness else self._judge)(case)

    def create_concurrent_judge(self) -> ConcurrentJudge:
        """Return a judge for a forked process, whose rows are judged while other processes judge others."""
        return ConcurrentJudge(self._judge)

    def judge_fatal_row(self, case: Case, unanswered: Exchange | None, in_flight: Sequence[Case] = ()) -> CheckResult:
        """Return the result of a row during which the server ended for good, in another process.

        Args:
            case: the row.
            unanswered: the request of the row that got no answer; None if another row may have ended the server.
            in_flight: other rows that were waiting for an answer as well; one of them may have ended the server.
        """
        self.target.last = unanswered or self.target.last
        self._judge.crashes.begin_row(case, in_flight)
        return self.judge(case)

    def find_fatal_row(self) -> str | None:
        """Return the row that crashed the target for good, as the setting `never` names it; None if there is none."""
        found = self._judge.crashes.suspected if self.target.has_died else None
        return format_key(found[0].id, found[1].id) if found else None

    def close(self) -> None:
        """Close every connection."""
        self.target.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _set_discovery_result(self, discovery_result: DiscoveryResult) -> None:
        self.discovery_result = self._judge.models.discovery_result = discovery_result
        self.target.roles, self.target.limits = discovery_result.roles, discovery_result.limits
        self.target.placements = add_versions(self._placements or {}, discovery_result.roles, discovery_result.versions)
        self.target.broken_in_discovery = [broken_request.from_dict(one) for one in discovery_result.broken]
