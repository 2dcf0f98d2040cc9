"""The beginning of a run: the target is surveyed. Where it has nothing to judge, that is the end of the run, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.discovery.discovery_result import Progress, ignore_progress
from conformance.judging.conclusion import Conclusion, conclude_nothing_judged
from conformance.judging.nothing_to_judge import COMMAND_LINE_NAMES, ArgumentNames
from conformance.judging.selection import Subjects, collected_rows
from conformance.judging.session import Session
from conformance.judging.subject_discovery import discover_subjects
from conformance.roles.guessed_inputs import UserInputs
from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult


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
