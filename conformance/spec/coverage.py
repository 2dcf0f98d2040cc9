"""Coverage of a run: which applicable rows were not judged, why, and which models the user can deploy to judge them.

A row that was not judged is a gap, unless the row does not apply: its extension is not offered, it exceeds a limit of
the server, or its check does not concern this target.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from conformance.spec import ledger
from conformance.spec import report as reports

MAX_NAMED_MODELS = 3  # models in one line


class GapReason(StrEnum):
    """The reasons why an applicable row was not judged."""

    NO_MODEL = "no_model"  # no model fills its role
    LEFT_OUT = "left_out"  # by the profile
    NOT_RUN = "not_run"  # held back, deselected, or the run ended before
    CANNOT = "cannot"  # the client cannot send such a request, according to its adapter
    NOT_SENT = "not_sent"  # no watched client sent a relevant request


# The reasons in words, for people.
GAP_REASONS: Mapping[GapReason, str] = {
    GapReason.NO_MODEL: "no model fills the role that a row needs",
    GapReason.LEFT_OUT: "the profile leaves the requirement's rows out",
    GapReason.NOT_RUN: "the requirement's rows were not run",
    GapReason.CANNOT: "the client cannot send a request that the requirement needs",
    GapReason.NOT_SENT: "no watched client sent a request that the requirement concerns",
}


@dataclass(frozen=True, slots=True)
class UnjudgedRow:
    """An applicable row that was not judged.

    Attributes:
        requirements: the ids of its requirements that apply to the target.
        role: the role that no model fills; empty if no model is missing.
    """

    requirements: tuple[str, ...]
    why: GapReason
    role: str = ""


@dataclass(frozen=True, slots=True)
class Gap:
    """The unjudged part of one requirement.

    Attributes:
        rows: the number of unjudged rows; 0 for a client whose own traffic is watched, because the suite runs no rows.
        needs: the missing model roles of the unjudged rows; the role with most rows comes first.
    """

    rows: int
    why: tuple[GapReason, ...]
    needs: tuple[str, ...] = ()

    def to_dict(self) -> reports.Unjudged:
        """Return plain data for the report."""
        return {"rows": self.rows, "why": [str(why) for why in self.why], "needs": list(self.needs)}


@dataclass(frozen=True, slots=True)
class Deployment:
    """A model role to deploy, with the MUSTs and rows that can then be judged.

    Attributes:
        musts: the unjudged MUSTs that this role makes possible to judge, without those of earlier deployments.
        rows: the number of rows of MUSTs that need this role.
    """

    role: str
    musts: tuple[str, ...]
    rows: int

    def to_dict(self) -> reports.Deployment:
        """Return plain data for the report."""
        return {"role": self.role, "musts": list(self.musts), "rows": self.rows}


@dataclass(frozen=True, slots=True)
class Coverage:
    """The requirements and rows that a run did not judge; all empty if the run is complete.

    Attributes:
        gaps: the gap of each requirement of any level that has one, by id.
        unjudged: the MUSTs without a judged row.
        deployments: first a small set of models that covers these MUSTs, the largest gain first; then other models.
        waiting: the number of rows of MUSTs that have no model.
        left_out: the number of rows of MUSTs that the profile skips.
    """

    gaps: Mapping[str, Gap] = field(default_factory=dict)
    unjudged: tuple[str, ...] = ()
    deployments: tuple[Deployment, ...] = ()
    waiting: int = 0
    left_out: int = 0
    profile: str = ""

    @property
    def has_gap(self) -> bool:
        """Whether a MUST has a gap with a reason other than `NOT_RUN`."""
        return any(
            ledger.get_requirement(name).level == "MUST" and set(gap.why) != {GapReason.NOT_RUN}
            for name, gap in self.gaps.items()
        )

    def limit_to(self, keep: Callable[[ledger.Requirement], bool]) -> Coverage:
        """Return the coverage with only the gaps of selected requirements."""
        return replace(self, gaps={name: gap for name, gap in self.gaps.items() if keep(ledger.get_requirement(name))})

    @property
    def reasons(self) -> list[str]:
        """The reasons why a run with these gaps is partial, one line each."""
        return self._format_reasons("MUST")

    @property
    def brief(self) -> str:
        """The reasons for a partial run in one line without the word MUST, for a text that already counts MUSTs."""
        return ", ".join(self._format_reasons(""))

    def _format_reasons(self, noun: str) -> list[str]:
        musts = len(self.unjudged)
        named = f" {_pluralise(noun, musts)}" if noun else ""
        lines = [f"{musts}{named} not judged{self._suggest_deployments()}"] if musts else []
        if self.waiting and not any(one.musts for one in self.deployments):
            lines.append(f"{_format_rows(self.waiting)} not judged{self._suggest_deployments()}")
        return [*lines, *self.omissions]

    @property
    def omissions(self) -> list[str]:
        """One line with the number of rows that the profile left out; an empty list if that number is 0."""
        return [f"{_format_rows(self.left_out)} left out by the profile {self.profile}"] if self.left_out else []

    def _suggest_deployments(self) -> str:
        """Return a bracketed phrase that names the models to deploy first; empty if no model would help."""
        of_musts = [one for one in self.deployments if one.musts][:MAX_NAMED_MODELS]
        if of_musts:
            return f" (deploy {_join_roles(of_musts)} to judge {sum(len(one.musts) for one in of_musts)} more)"
        of_rows = self.deployments[:MAX_NAMED_MODELS]
        return (
            f" (deploy {_join_roles(of_rows)} to judge {_format_rows(sum(one.rows for one in of_rows))})"
            if of_rows
            else ""
        )

    def to_dict(self) -> reports.CoverageEntry:
        """Return plain data for the report, without the gaps: the report has them in the entries of requirements."""
        return {
            "unjudged": list(self.unjudged),
            "waiting": self.waiting,
            "left_out": self.left_out,
            "deploy": [one.to_dict() for one in self.deployments],
        }


FULL_COVERAGE = Coverage()


def _join_roles(deployments: Sequence[Deployment]) -> str:
    *others, last = [one.role for one in deployments]
    return f"{', '.join(others)} and {last}" if others else last


def _pluralise(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def _format_rows(count: int) -> str:
    return f"{count} {_pluralise('row', count)}"
