"""The survey at the beginning of a run: what is judged, or why nothing can be, and the command that helps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from conformance.judging.selection import ROLES, Subjects
from conformance.judging.session import Session
from conformance.roles.guessed_inputs import Given
from conformance.survey import discovery
from conformance.survey.progress import Progress, silent
from conformance.survey.survey import Survey
from conformance.terms.extensions import GRPC, HTTP, OVER_HTTP, PROTOCOL
from conformance.terms.text import safe
from conformance.transport.credentials import hide
from conformance.transport.settings import Settings, SettingsError
from conformance.transport.unreachable import TargetLost

ALL = "all"  # as the name of a model: every one that the target lists
MOST_NAMES = 8  # of models, in a message


def survey(
    session: Session,
    subjects: Subjects = ROLES,
    wanted: Sequence[str] = (),
    given: Mapping[str, Given] | None = None,
    progress: Progress = silent,
    *,
    lenient: bool = False,
) -> tuple[Subjects, str]:
    """Ask the target what it offers; return what is judged, and why nothing can be, which is empty where something can.

    Nothing is raised: what does not fit the target is such a reason, too.

    Args:
        session: with the target, which has not been surveyed.
        subjects: what is to be judged; the model `ALL` stands for all that the target lists.
        wanted: the extensions to judge, whether offered or not; empty: those that the target offers.
        given: model -> inputs that a user knows better than to guess them.
        progress: is told how far the survey is.
        lenient: a model of which nothing can be asked is described, as it is where the target lists it.
    """
    try:
        subjects, is_listed = resolve_models(session, subjects)
        found = session.take_survey(wanted, subjects, given, lenient=lenient or is_listed, progress=progress)
        return subjects, _nothing_to_judge(session, found)
    except (TargetLost, SettingsError) as error:
        return subjects, hide(str(error), session.target.settings.secrets)


def resolve_models(session: Session, subjects: Subjects) -> tuple[Subjects, bool]:
    """Return what is judged with every model by its name, and whether the target was asked for these.

    Raises:
        SettingsError: all models are to be judged, and the target lists none.
        TargetLost: nobody answers.
    """
    if ALL not in subjects.models:
        return subjects, False
    named = [name for name in subjects.models if name != ALL]
    listed = _listed(session)
    if not listed:
        raise SettingsError(
            f"{session.target.settings.url} lists no models, neither at GET /v2/models nor at POST"
            " /v2/repository/index: name them, with --target-model NAME"
        )
    return replace(subjects, models=tuple(dict.fromkeys([*named, *listed]))), True


def _listed(session: Session) -> list[str]:
    with session.target.scope("list of models"):
        return discovery.listed(session.target)


def _nothing_to_judge(session: Session, found: Survey) -> str:
    settings = session.target.settings
    troubles = [model["trouble"] for model in found.models.values() if model["trouble"]]
    if troubles and not found.offered:
        return "; ".join(troubles)
    is_empty = not (found.roles or found.models)
    # Over gRPC tensors travel as bytes, anyway.
    if found.coding and (is_empty or (not found.offered and GRPC not in settings.transports)):
        return _coded(settings, found)
    if is_empty:
        return _without_models(session, found)
    if not found.offered and GRPC not in settings.transports:
        return _without_extensions(settings, found)
    return ""


def _coded(settings: Settings, found: Survey) -> str:
    return (
        f"{settings.url} answers in the content coding {safe(found.coding, 60)}, which nobody asked for"
        " (Accept-Encoding: identity): nothing of it can be judged; see whether a gateway compresses answers"
    )


def _without_models(session: Session, found: Survey) -> str:
    settings = session.target.settings
    names = _listed(session) if HTTP in settings.transports else []
    if found.silence and not names:
        hint = "look at the path of the URL, and whether a gateway wants a --target-header"
        place = "/v2" if HTTP in settings.transports else ""
        return f"{settings.url}{place} answers nothing of use ({found.silence}): {hint}"
    roles = f"{settings.url} serves none of the suite's model roles, which `oip-conformance roles` lists"
    if not names:
        return f"{roles}; a model that it serves is judged with --target-model NAME"
    one = f"--target-model {names[0]}" if len(names) == 1 else f"--target-model {names[0]}, or --target-model {ALL}"
    return safe(f"{roles}; it serves {some(names)}: judge with {one}", 600)


def some(names: Sequence[str]) -> str:
    """Return the first of these names, and how many more there are."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"{', '.join(names[:MOST_NAMES])}{more}"


def _without_extensions(settings: Settings, found: Survey) -> str:
    """Return why there is nothing to judge, extension by extension, and what can be asked for instead."""
    reasons = "; ".join(f"{name}: {safe(found.refusals[name], 160)}" for name in OVER_HTTP if name in found.refusals)
    return (
        f"{settings.url} offers none of the extensions ({reasons}); --target-extension={PROTOCOL} judges the protocol"
        " beneath them, --target-extension=NAME an extension that should be there"
    )
