"""The start of a run: discovers what the target offers, and gives the reason if nothing can be judged.

The reason consists of a kind and details for programs, and a sentence for people. The sentence suggests a command-line
option, or a function argument if the run was started from the Python API.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from conformance.discovery import placement_search
from conformance.discovery.discovery_result import DiscoveryResult, Progress, ignore_progress
from conformance.discovery.limit_checks import ContradictedLimitError
from conformance.discovery.offered_extensions import find_missing_service
from conformance.judging.conclusion import Conclusion, conclude_nothing_judged
from conformance.judging.selection import ROLES, Subjects, list_profile_rows
from conformance.judging.session import Session
from conformance.roles.guessed_inputs import UserInputs
from conformance.spec.extensions import GRPC, HTTP, OVER_HTTP, PROTOCOL
from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult
from conformance.spec.text import escape_text
from conformance.transport.credentials import hide
from conformance.transport.settings import SettingsError
from conformance.transport.unreachable import TargetLostError

ALL_MODELS = "all"  # as a model name, stands for every model that the target lists
MAX_SHOWN_NAMES, MAX_NAMES_LENGTH = 8, 400  # model names in a message; characters


@dataclass(frozen=True, slots=True)
class ArgumentNames:
    """Names of the options or arguments that messages suggest; `{}` stands for the value.

    Attributes:
        model: the option that names a model to judge.
        extension: the option that selects an extension to judge, whether offered or not.
        header: the option that adds a header to every request.
    """

    model: str
    extension: str
    header: str


COMMAND_LINE_NAMES = ArgumentNames("--target-model {}", "--target-extension={}", "--target-header")
PYTHON_NAMES = ArgumentNames('models=["{}"]', 'extensions=["{}"]', "headers={...}")


class MissingKind(StrEnum):
    """What a target lacks if nothing can be judged; the comments say in brackets what `details` holds."""

    ANSWERS = "answers"  # no answer, or a named item does not exist (the reason)
    METADATA = "metadata"  # no server metadata and no model (the actual answer)
    METHODS = "methods"  # no method over gRPC (the answer to ServerLive)
    LIST_OF_MODELS = "list_of_models"  # no list of models although all are to be judged (the answers)
    ROLES = "roles"  # no model with a role, and no list of models (the answers)
    ROLES_OVER_GRPC = "roles_over_grpc"  # no model with a role; gRPC has no list of models
    ROLES_AMONG_MODELS = "roles_among_models"  # no role among the listed models (their names)
    WORKING_MODELS = "working_models"  # no working model (one reason per model)
    PLAIN_CONTENT = "plain_content"  # no uncompressed answers (their content coding)
    EXTENSIONS = "extensions"  # no offered extension (one reason per extension)


_ROLES = "{url} serves none of the suite's model roles (`oip-conformance roles` prints them)"
_SENTENCES: Mapping[MissingKind, str] = {
    MissingKind.ANSWERS: "{details}",
    MissingKind.METADATA: (
        "{url} gives no server metadata ({details}): check the path of the URL before /v2, and whether a gateway"
        " requires a header ({header})"
    ),
    MissingKind.METHODS: (
        "{url} answers no method of inference.GRPCInferenceService ({details}): check the address, the name under which"
        " the server registers the service, and the server's log"
    ),
    MissingKind.LIST_OF_MODELS: "{url} lists no models ({details}): name the models to judge with {model}",
    MissingKind.ROLES: f"{_ROLES}, and lists no models{{bracketed}}: to judge one, name it with {{model}}",
    MissingKind.ROLES_OVER_GRPC: f"{_ROLES}: deploy some; `oip-conformance models export` writes them",
    MissingKind.ROLES_AMONG_MODELS: f"{_ROLES}; it serves {{listed}}: judge with {{models}}",
    MissingKind.WORKING_MODELS: "{details}",
    MissingKind.PLAIN_CONTENT: (
        "{url} answers in the content coding {details}, although requests have Accept-Encoding: identity: such answers"
        " cannot be judged; check whether a gateway compresses answers"
    ),
    MissingKind.EXTENSIONS: (
        "{url} offers none of the extensions ({details}): {protocol} judges the base protocol, {extension} judges an"
        " extension anyway"
    ),
}


@dataclass(frozen=True, slots=True)
class NothingToJudge:
    """The reason why nothing can be judged.

    Attributes:
        details: see `MissingKind`.
    """

    lack: MissingKind
    url: str
    details: tuple[str, ...] = ()

    def text(self, names: ArgumentNames = COMMAND_LINE_NAMES) -> str:
        """Return one line with the reason, and with options or arguments that may help."""
        choices = (*(escape_text(name, 100) for name in self.details[:1]), *((ALL_MODELS,) if self.details[1:] else ()))
        return _SENTENCES[self.lack].format(
            url=self.url,
            details="; ".join(self.details),
            bracketed=f" ({'; '.join(self.details)})" if self.details else "",
            listed=escape_text(list_first_names(self.details), MAX_NAMES_LENGTH),
            model=names.model.format("NAME"),
            models=", or ".join(map(names.model.format, choices)),
            protocol=names.extension.format(PROTOCOL),
            extension=names.extension.format("NAME"),
            header=names.header,
        )


def list_first_names(names: Sequence[str]) -> str:
    """Return the first names and the number of the others."""
    more = f" and {len(names) - MAX_SHOWN_NAMES} more" if len(names) > MAX_SHOWN_NAMES else ""
    return f"{', '.join(names[:MAX_SHOWN_NAMES])}{more}"


# --- discovery --------------------------------------------------------------------------------------------------------


def discover_subjects(
    session: Session,
    subjects: Subjects = ROLES,
    extensions: Sequence[str] = (),
    given: Mapping[str, UserInputs] | None = None,
    progress: Progress = ignore_progress,
    *,
    lenient: bool = False,
) -> tuple[Subjects, NothingToJudge | None]:
    """Discover what the target offers; return the subjects, and the reason if nothing can be judged, else None.

    Unsuitable settings or an unreachable target raise no exception; they are returned as the reason. A limit that the
    target contradicts raises `ContradictedLimitError`.

    Args:
        session: a session without a discovery result.
        subjects: the requested subjects; the model `ALL_MODELS` stands for all models that the target lists.
        extensions: the extensions to judge, whether offered or not; empty selects the offered ones.
        given: inputs that the user supplies instead of guessed ones, by model.
        progress: receives the progress of discovery.
        lenient: whether to describe unusable models instead of failing; with `ALL_MODELS` this is always so.
    """
    settings = session.target.settings
    try:
        resolved = resolve_models(session, subjects)
        if resolved is None:
            nothing: NothingToJudge | None = _explain_missing_list(session, MissingKind.LIST_OF_MODELS)
        else:
            is_listed, subjects = resolved != subjects, resolved
            found = session.discover(extensions, subjects, given, lenient=lenient or is_listed, progress=progress)
            nothing = _explain_nothing_to_judge(session, found, has_packs=bool(subjects.packs))
        return subjects, nothing and (_explain_missing_service(session) or nothing)
    except ContradictedLimitError:
        raise  # an error of the target file, not a result about the target
    except (TargetLostError, SettingsError) as error:
        reason = NothingToJudge(MissingKind.ANSWERS, settings.url, (hide(str(error), settings.secrets),))
        return subjects, _explain_missing_service(session) or reason


def resolve_models(session: Session, subjects: Subjects) -> Subjects | None:
    """Replace `ALL_MODELS` by the names of the models; return None if the target lists no models.

    Raises:
        TargetLostError: the target does not answer.
    """
    if ALL_MODELS not in subjects.models:
        return subjects
    listed = _list_models(session)
    if not listed:
        return None
    named = [name for name in subjects.models if name != ALL_MODELS]
    return replace(subjects, models=tuple(dict.fromkeys([*named, *listed])))


def _list_models(session: Session) -> list[str]:
    with session.target.scope("list of models"):
        return placement_search.list_models(session.target)


def _explain_nothing_to_judge(session: Session, found: DiscoveryResult, *, has_packs: bool) -> NothingToJudge | None:
    settings = session.target.settings
    troubles = tuple(model["trouble"] for model in found.models.values() if model["trouble"])
    if len(troubles) == len(found.models) > 0 and not found.offered:
        return NothingToJudge(MissingKind.WORKING_MODELS, settings.url, troubles)
    is_empty = not (found.roles or found.models)
    # Over gRPC tensors are binary even without an extension.
    offers_nothing = not found.offered and GRPC not in settings.transports and not has_packs
    if found.coding and (is_empty or offers_nothing):
        return NothingToJudge(MissingKind.PLAIN_CONTENT, settings.url, (escape_text(found.coding, 60),))
    if is_empty:
        return _explain_missing_models(session, found)
    if offers_nothing:
        absences = tuple(f"{name}: {found.explain_absence(name)}" for name in OVER_HTTP)
        return NothingToJudge(MissingKind.EXTENSIONS, settings.url, absences)
    return None


def _explain_missing_service(session: Session) -> NothingToJudge | None:
    """Return the reason if only gRPC is judged, and the server answers no method; else None."""
    settings = session.target.settings
    if HTTP in settings.transports or session.target.lost:
        return None
    with session.target.scope("methods over gRPC"):
        answer = find_missing_service(session.target)
    return NothingToJudge(MissingKind.METHODS, settings.url, (hide(answer, settings.secrets),)) if answer else None


def _explain_missing_models(session: Session, found: DiscoveryResult) -> NothingToJudge:
    settings = session.target.settings
    if names := _list_models(session) or found.other_models:
        return NothingToJudge(MissingKind.ROLES_AMONG_MODELS, settings.url, tuple(names))
    if found.silence:
        return NothingToJudge(MissingKind.METADATA, settings.url, (found.silence,))
    if HTTP in settings.transports:
        return _explain_missing_list(session, MissingKind.ROLES)
    return NothingToJudge(MissingKind.ROLES_OVER_GRPC, settings.url)


def _explain_missing_list(session: Session, lack: MissingKind) -> NothingToJudge:
    settings = session.target.settings
    with session.target.scope("missing list of models"):
        answers = placement_search.describe_missing_list(session.target)
    return NothingToJudge(lack, settings.url, (hide(answers, settings.secrets),))


def start_run(
    session: Session,
    extensions: Sequence[str],
    subjects: Subjects,
    given: Mapping[str, UserInputs],
    progress: Progress = ignore_progress,
    names: ArgumentNames = COMMAND_LINE_NAMES,
) -> tuple[Subjects, Conclusion | None]:
    """Run the discovery of a session; return the subjects, and the conclusion of the run if nothing can be judged.

    Args:
        session: a session without a discovery result.
        extensions: the extensions to judge, whether offered or not; empty selects the offered ones.
        subjects: the requested subjects.
        given: inputs that the user supplies instead of guessed ones, by model.
        progress: receives the progress of discovery.
        names: the option or argument names for the reason.

    Raises:
        ContradictedLimitError: the target contradicts a limit that its file declares.
    """
    subjects, nothing = discover_subjects(session, subjects, extensions, given, progress)
    if nothing is None:
        return subjects, None
    # If nothing ever answered at an address, there is no server to judge: perhaps a gateway, or a wrong address.
    has_answered = session.target.answered.issuperset(session.target.settings.transports)
    found = _judge_discovery_rows(session, subjects) if has_answered else []
    return subjects, conclude_nothing_judged(nothing.text(names), found)


def _judge_discovery_rows(session: Session, subjects: Subjects) -> list[CheckResult]:
    """Judge the rows about discovery requests, and return the results of those that fail."""
    rows = list_profile_rows("quick", subjects=subjects, transports=session.target.settings.transports)
    results = [session.judge(case) for case in rows if case.check.judges_discovery]
    return [result for result in results if result.outcome is Outcome.FAIL]
