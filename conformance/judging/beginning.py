"""The beginning of a run: the target is surveyed. Where it has nothing to judge, that is the end of the run, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.judging.conclusion import Conclusion, nothing_judged
from conformance.judging.selection import collected_rows
from conformance.judging.session import Session
from conformance.roles.guessed_inputs import Given
from conformance.survey.survey import Survey
from conformance.terms.extensions import GRPC, HTTP, PROTOCOL
from conformance.terms.outcome import Outcome
from conformance.terms.result import CheckResult
from conformance.transport.credentials import hide
from conformance.transport.settings import Settings, SettingsError
from conformance.transport.unreachable import TargetLost


def begin(
    session: Session, extensions: Sequence[str], models: Sequence[str], given: Mapping[str, Given]
) -> Conclusion | None:
    """Take the survey of a session; return the conclusion of the run where there is nothing to judge, else None.

    Args:
        session: one that has no survey yet.
        extensions: to judge, whether offered or not; empty: those that the target offers.
        models: deployed models that are judged by relations; empty where roles are.
        given: model -> inputs that a user knows better than to guess them.
    """
    try:
        survey = session.take_survey(extensions, models, given)
    except (TargetLost, SettingsError) as error:
        reason = hide(str(error), session.target.settings.secrets)
    else:
        reason = _nothing_to_judge(survey, session.target.settings)
    if not reason:
        return None
    # Where nothing ever answered, there is no server that could be wrong: a gateway, or the wrong address.
    return nothing_judged(reason, _of_survey(session, models) if session.target.has_answered else [])


def _of_survey(session: Session, models: Sequence[str]) -> list[CheckResult]:
    """Return what is to be said of the survey itself, where it has found nothing that could be judged."""
    rows = collected_rows("quick", models=models, transports=session.target.settings.transports)
    results = [session.judge(check, row) for check, row in rows if check.of_survey]
    return [result for result in results if result.outcome is Outcome.FAIL]


def _nothing_to_judge(survey: Survey, settings: Settings) -> str:
    """Return why nothing can be judged; empty where something can."""
    url = settings.url
    troubles = [model["trouble"] for model in survey.models.values() if model["trouble"]]
    if troubles and not survey.offered:
        return "; ".join(troubles)
    if not (survey.roles or survey.models) and survey.silence:
        hint = "look at the path of the URL, and whether a gateway wants a --target-header"
        url += "/v2" if HTTP in settings.transports else ""
        return f"{url} answers nothing of use ({survey.silence}): {hint}"
    if not (survey.roles or survey.models):
        return f"{url} serves none of the suite's model roles: `oip-conformance roles` says what to deploy"
    if not survey.offered and GRPC not in settings.transports:  # where tensors travel as bytes, anyway
        return (
            f"{url} offers none of the extensions: it lists none, and requests that use them are not answered; "
            f"--target-extension={PROTOCOL} judges the protocol beneath them"
        )
    return ""
