"""How much of what applies to a target was judged: the rows that were not, why, and the models that would change it.

What does not apply is no gap: an extension that is not offered, a limit of the server's own, a check that finds nothing
to say about this target.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from conformance.spec import ledger

MAX_NAMED_MODELS = 3  # models in one line


class GapReason(StrEnum):
    """Why a row that applies was not judged."""

    NO_MODEL = "no_model"  # no model fills its role
    LEFT_OUT = "left_out"  # by the profile
    NOT_RUN = "not_run"  # kept back, narrowed away, or the run ended before
    CANNOT = "cannot"  # the client cannot do it, as its adapter says
    NOT_SENT = "not_sent"  # no watched client sent anything that would show it


# The same for people.
GAP_REASONS: Mapping[GapReason, str] = {
    GapReason.NO_MODEL: "no model fills the role that a row needs",
    GapReason.LEFT_OUT: "the profile leaves its rows out",
    GapReason.NOT_RUN: "its rows were not run",
    GapReason.CANNOT: "the client cannot do it",
    GapReason.NOT_SENT: "no watched client sent it",
}


@dataclass(frozen=True, slots=True)
class UnjudgedRow:
    """A row that applies and was not judged.

    Attributes:
        requirements: the ledger ids that it answers for, and that apply.
        role: that a model would have to fill; empty where none is missing.
    """

    requirements: tuple[str, ...]
    why: GapReason
    role: str = ""


@dataclass(frozen=True, slots=True)
class Gap:
    """What of one requirement was not judged.

    Attributes:
        rows: how many rows; 0 where no row but a request of the client's own would show it.
        needs: the roles whose models would judge them, that of the most rows first.
    """

    rows: int
    why: tuple[GapReason, ...]
    needs: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as the report has it."""
        return {"rows": self.rows, "why": [str(why) for why in self.why], "needs": list(self.needs)}


@dataclass(frozen=True, slots=True)
class Deployment:
    """What a model for one role would add.

    Attributes:
        musts: the MUSTs that are not judged, and would be beside those of the deployments before it.
        rows: how many rows about MUSTs wait for it.
    """

    role: str
    musts: tuple[str, ...]
    rows: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as the report has it."""
        return {"role": self.role, "musts": list(self.musts), "rows": self.rows}


@dataclass(frozen=True, slots=True)
class Coverage:
    """What of a run was not judged; empty where nothing is missing.

    Attributes:
        gaps: by requirement, whatever its level.
        unjudged: the MUSTs of which no row was judged.
        deployments: few models that judge them, that which adds most first; then those that more rows wait for.
        waiting: how many rows about MUSTs have no model to run on.
        left_out: how many rows about MUSTs the profile leaves out.
        profile: which.
    """

    gaps: Mapping[str, Gap] = field(default_factory=dict)
    unjudged: tuple[str, ...] = ()
    deployments: tuple[Deployment, ...] = ()
    waiting: int = 0
    left_out: int = 0
    profile: str = ""

    @property
    def has_gap(self) -> bool:
        """Whether something about a MUST was not judged, though all was run that should be."""
        return any(
            ledger.get_requirement(name).level == "MUST" and set(gap.why) != {GapReason.NOT_RUN}
            for name, gap in self.gaps.items()
        )

    def limited(self, keep: Callable[[ledger.Requirement], bool]) -> Coverage:
        """Return the gaps of some requirements alone."""
        return replace(self, gaps={name: gap for name, gap in self.gaps.items() if keep(ledger.get_requirement(name))})

    @property
    def reasons(self) -> list[str]:
        """Why a run with these gaps is partial: a line for each reason."""
        return self._lines("MUST")

    @property
    def brief(self) -> str:
        """The same behind a count of MUSTs."""
        return ", ".join(self._lines(""))

    def _lines(self, noun: str) -> list[str]:
        musts = len(self.unjudged)
        named = f" {_plural(noun, musts)}" if noun else ""
        lines = [f"{musts}{named} not judged{self._hint()}"] if musts else []
        if self.waiting and not any(one.musts for one in self.deployments):
            lines.append(f"{_rows(self.waiting)} not judged{self._hint()}")
        if self.left_out:
            lines.append(f"{_rows(self.left_out)} left out by the profile {self.profile}")
        return lines

    def _hint(self) -> str:
        """Return which models to deploy first, in brackets; empty where none would help."""
        of_musts = [one for one in self.deployments if one.musts][:MAX_NAMED_MODELS]
        if of_musts:
            return f" (deploy {_listed(of_musts)}: {sum(len(one.musts) for one in of_musts)} more)"
        of_rows = self.deployments[:MAX_NAMED_MODELS]
        return f" (deploy {_listed(of_rows)}: {_rows(sum(one.rows for one in of_rows))} more)" if of_rows else ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as the report has it; what of which requirement stands there with the requirement."""
        return {
            "unjudged": list(self.unjudged),
            "waiting": self.waiting,
            "left_out": self.left_out,
            "deploy": [one.to_dict() for one in self.deployments],
        }


FULL_COVERAGE = Coverage()


def _listed(deployments: Sequence[Deployment]) -> str:
    *others, last = [one.role for one in deployments]
    return f"{', '.join(others)} and {last}" if others else last


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def _rows(count: int) -> str:
    return f"{count} {_plural('row', count)}"
