"""Judge deployed models on some areas, and say what became of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.judging.selection import Subjects, list_profile_rows
from conformance.judging.session import Session
from conformance.roles.guessed_inputs import UserInputs
from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult
from conformance.transport.settings import Settings
from conformance.transport.target import Target
from tests.support.samples import select_answering
from tests.support.sampling import judge_sample, judge_until_missed

BAD = (Outcome.FAIL, Outcome.ADVISORY, Outcome.BLOCKED, Outcome.ERROR)


def judge_models(
    url: str,
    areas: Sequence[str],
    *names: str,
    extensions: Sequence[str] = (),
    given: Mapping[str, UserInputs] | None = None,
    about: Sequence[str] = (),
    is_sample: bool = False,
) -> list[CheckResult]:
    """Return the results of the rows of some areas on models, and on no role.

    Args:
        url: of the server.
        areas: whose rows are judged.
        names: of the models.
        extensions: that are judged though the server does not offer them.
        given: model -> inputs that a user knows.
        about: requirements: their rows alone, until each of them has been missed; empty: all rows.
        is_sample: whether a sample of the rows will do, with some for each claim of a check.
    """
    subjects = Subjects(names, with_roles=False)
    with Session(Target(Settings(url))) as session:
        session.discover(extensions, subjects, given)
        cases = [case for case in list_profile_rows("certify", subjects=subjects) if case[0].area in areas]
        if about:
            return list(judge_until_missed(session, select_answering(cases, about), about))
        if is_sample:
            return list(judge_sample(session, cases))
        return [session.judge(case) for case in cases]


def list_bad(results: Sequence[CheckResult]) -> list[tuple[str, str, str]]:
    """Return the rows without a good outcome, each with its message."""
    return [(result.outcome, result.label, result.message) for result in results if result.outcome in BAD]


def list_met(results: Sequence[CheckResult]) -> set[str]:
    """Return the requirements that some row has judged and found met."""
    return {name for result in results if result.outcome is Outcome.PASS for name in result.requirements}


def list_missed(results: Sequence[CheckResult]) -> set[str]:
    return {result.failure.requirement for result in results if result.failure}
