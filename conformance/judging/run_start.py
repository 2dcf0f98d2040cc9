"""The beginning of a run: the target is asked what it offers. Says what is judged, or why nothing can be.

That is a kind and its details for programs, and a sentence for people. The sentence says what to give so that there is
something, in the names of whoever is told: options of a command, or arguments of a function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from conformance.discovery import placement_search
from conformance.discovery.discovery_result import DiscoveryResult, Progress, ignore_progress
from conformance.judging.conclusion import Conclusion, conclude_nothing_judged
from conformance.judging.selection import ROLES, Subjects, collected_rows
from conformance.judging.session import Session
from conformance.roles.guessed_inputs import UserInputs
from conformance.spec.extensions import GRPC, HTTP, OVER_HTTP, PROTOCOL
from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult
from conformance.spec.text import escape_text
from conformance.transport.credentials import hide
from conformance.transport.settings import SettingsError
from conformance.transport.unreachable import TargetLostError

ALL_MODELS = "all"  # as the name of a model: every one that the target lists
MAX_SHOWN_NAMES, MAX_NAMES_LENGTH = 8, 400  # of models in a message; characters


@dataclass(frozen=True, slots=True)
class ArgumentNames:
    """How a user gives what the suite asks for; `{}` stands for the value.

    Attributes:
        model: the name of a model to judge.
        extension: one to judge, offered or not.
        header: one that is sent with every request.
    """

    model: str
    extension: str
    header: str


COMMAND_LINE_NAMES = ArgumentNames("--target-model {}", "--target-extension={}", "--target-header")
PYTHON_NAMES = ArgumentNames('models=["{}"]', 'extensions=["{}"]', "headers={...}")


class MissingKind(StrEnum):
    """What is not there; in brackets what the details are."""

    ANSWERS = "answers"  # nobody answers, or what is asked for is not there (why)
    METADATA = "metadata"  # nor any model (what came instead)
    LIST_OF_MODELS = "list_of_models"  # when all are to be judged
    ROLES = "roles"  # nor any model that is listed
    ROLES_OVER_GRPC = "roles_over_grpc"  # where there is no list of models
    ROLES_AMONG_MODELS = "roles_among_models"  # (the models that are listed)
    WORKING_MODELS = "working_models"  # (of each why it does not work)
    PLAIN_CONTENT = "plain_content"  # (the content coding of the answers)
    EXTENSIONS = "extensions"  # (of each why it is not judged)


_ROLES = "{url} serves none of the suite's model roles (`oip-conformance roles` prints them)"
_SENTENCES: Mapping[MissingKind, str] = {
    MissingKind.ANSWERS: "{details}",
    MissingKind.METADATA: (
        "{url} gives no server metadata ({details}): check the path of the URL, in front of /v2, and whether a gateway"
        " asks for a header ({header})"
    ),
    MissingKind.LIST_OF_MODELS: (
        "{url} lists no models, neither at GET /v2/models nor at POST /v2/repository/index: name the models to judge,"
        " {model}"
    ),
    MissingKind.ROLES: f"{_ROLES}, and lists no models: to judge one that it serves, name it, {{model}}",
    MissingKind.ROLES_OVER_GRPC: f"{_ROLES}: deploy some, `oip-conformance models export` writes them",
    MissingKind.ROLES_AMONG_MODELS: f"{_ROLES}; it serves {{listed}}: judge with {{models}}",
    MissingKind.WORKING_MODELS: "{details}",
    MissingKind.PLAIN_CONTENT: (
        "{url} answers in the content coding {details}, which nobody asked for (Accept-Encoding: identity): nothing of"
        " it can be judged; see whether a gateway compresses answers"
    ),
    MissingKind.EXTENSIONS: (
        "{url} offers none of the extensions ({details}): {protocol} judges the protocol beneath them, {extension} an"
        " extension all the same"
    ),
}


@dataclass(frozen=True, slots=True)
class NothingToJudge:
    """Why there is nothing to judge.

    Attributes:
        details: see `MissingKind`.
    """

    lack: MissingKind
    url: str
    details: tuple[str, ...] = ()

    def text(self, names: ArgumentNames = COMMAND_LINE_NAMES) -> str:
        """Return one line that says so, and what to do."""
        choices = (*(escape_text(name, 100) for name in self.details[:1]), *((ALL_MODELS,) if self.details[1:] else ()))
        return _SENTENCES[self.lack].format(
            url=self.url,
            details="; ".join(self.details),
            listed=escape_text(shorten_names(self.details), MAX_NAMES_LENGTH),
            model=names.model.format("NAME"),
            models=", or ".join(map(names.model.format, choices)),
            protocol=names.extension.format(PROTOCOL),
            extension=names.extension.format("NAME"),
            header=names.header,
        )


def shorten_names(names: Sequence[str]) -> str:
    """Return the first of these names, and how many more there are."""
    more = f" and {len(names) - MAX_SHOWN_NAMES} more" if len(names) > MAX_SHOWN_NAMES else ""
    return f"{', '.join(names[:MAX_SHOWN_NAMES])}{more}"


# --- what is asked ----------------------------------------------------------------------------------------------------


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


def start_run(
    session: Session,
    extensions: Sequence[str],
    subjects: Subjects,
    given: Mapping[str, UserInputs],
    progress: Progress = ignore_progress,
    names: ArgumentNames = COMMAND_LINE_NAMES,
) -> tuple[Subjects, Conclusion | None]:
    """Take the survey of a session; return what is judged, and the conclusion of the run where there is nothing.

    Args:
        session: one that has no survey yet.
        extensions: to judge, whether offered or not; empty: those that the target offers.
        subjects: what is to be judged.
        given: model -> inputs that a user knows better than to guess them.
        progress: is told how far the survey is.
        names: of what the user can give, for the reason why there is nothing.
    """
    subjects, nothing = discover_subjects(session, subjects, extensions, given, progress)
    if nothing is None:
        return subjects, None
    # Where nothing ever answered, there is no server that could be wrong: a gateway, or the wrong address.
    found = _of_survey(session, subjects) if session.target.has_answered else []
    return subjects, conclude_nothing_judged(nothing.text(names), found)


def _of_survey(session: Session, subjects: Subjects) -> list[CheckResult]:
    """Return what is to be said of the survey itself, where it has found nothing that could be judged."""
    rows = collected_rows("quick", subjects=subjects, transports=session.target.settings.transports)
    results = [session.judge(check, row) for check, row in rows if check.of_survey]
    return [result for result in results if result.outcome is Outcome.FAIL]
