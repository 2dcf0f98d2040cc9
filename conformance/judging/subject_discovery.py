"""The survey at the beginning of a run: what is judged, or why nothing can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from conformance.discovery import placement_search
from conformance.discovery.discovery_result import DiscoveryResult, Progress, ignore_progress
from conformance.judging.nothing_to_judge import ALL_MODELS, MissingKind, NothingToJudge
from conformance.judging.selection import ROLES, Subjects
from conformance.judging.session import Session
from conformance.roles.guessed_inputs import UserInputs
from conformance.spec.extensions import GRPC, HTTP, OVER_HTTP
from conformance.spec.text import escape_text
from conformance.transport.credentials import hide
from conformance.transport.settings import SettingsError
from conformance.transport.unreachable import TargetLostError


def discover_subjects(
    session: Session,
    subjects: Subjects = ROLES,
    wanted: Sequence[str] = (),
    given: Mapping[str, UserInputs] | None = None,
    progress: Progress = ignore_progress,
    *,
    lenient: bool = False,
) -> tuple[Subjects, NothingToJudge | None]:
    """Ask the target what it offers; return what is judged, and why nothing can be, or None where something can.

    Nothing is raised: what does not fit the target is such a reason, too.

    Args:
        session: with the target, which has not been surveyed.
        subjects: what is to be judged; the model `ALL_MODELS` stands for all that the target lists.
        wanted: the extensions to judge, whether offered or not; empty: those that the target offers.
        given: model -> inputs that a user knows better than to guess them.
        progress: is told how far the survey is.
        lenient: a model of which nothing can be asked is described, as it is where the target lists it.
    """
    settings = session.target.settings
    try:
        resolved = resolve_models(session, subjects)
        if resolved is None:
            return subjects, NothingToJudge(MissingKind.LIST_OF_MODELS, settings.url)
        is_listed, subjects = resolved != subjects, resolved
        found = session.discover(wanted, subjects, given, lenient=lenient or is_listed, progress=progress)
        return subjects, _nothing_to_judge(session, found)
    except (TargetLostError, SettingsError) as error:
        return subjects, NothingToJudge(MissingKind.ANSWERS, settings.url, (hide(str(error), settings.secrets),))


def resolve_models(session: Session, subjects: Subjects) -> Subjects | None:
    """Return what is judged with every model by its name; None where all are to be judged and the target lists none.

    Raises:
        TargetLost: nobody answers.
    """
    if ALL_MODELS not in subjects.models:
        return subjects
    listed = _listed(session)
    if not listed:
        return None
    named = [name for name in subjects.models if name != ALL_MODELS]
    return replace(subjects, models=tuple(dict.fromkeys([*named, *listed])))


def _listed(session: Session) -> list[str]:
    with session.target.scope("list of models"):
        return placement_search.list_models(session.target)


def _nothing_to_judge(session: Session, found: DiscoveryResult) -> NothingToJudge | None:
    settings = session.target.settings
    troubles = tuple(model["trouble"] for model in found.models.values() if model["trouble"])
    if troubles and not found.offered:
        return NothingToJudge(MissingKind.WORKING_MODELS, settings.url, troubles)
    is_empty = not (found.roles or found.models)
    # Over gRPC tensors travel as bytes, anyway.
    offers_nothing = not found.offered and GRPC not in settings.transports
    if found.coding and (is_empty or offers_nothing):
        return NothingToJudge(MissingKind.PLAIN_CONTENT, settings.url, (escape_text(found.coding, 60),))
    if is_empty:
        return _without_models(session, found)
    if offers_nothing:
        absences = tuple(f"{name}: {found.why_absent(name)}" for name in OVER_HTTP)
        return NothingToJudge(MissingKind.EXTENSIONS, settings.url, absences)
    return None


def _without_models(session: Session, found: DiscoveryResult) -> NothingToJudge:
    settings = session.target.settings
    is_over_http = HTTP in settings.transports
    names = _listed(session) if is_over_http else []
    if names:
        return NothingToJudge(MissingKind.ROLES_AMONG_MODELS, settings.url, tuple(names))
    if found.silence:
        return NothingToJudge(MissingKind.METADATA, settings.url, (found.silence,))
    return NothingToJudge(MissingKind.ROLES if is_over_http else MissingKind.ROLES_OVER_GRPC, settings.url)
