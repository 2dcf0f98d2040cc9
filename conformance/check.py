"""What a check is: an id that never changes, the requirements it answers for, rows, and one short body.

    @check("sizes.answer-states-its-size", answers="BIN-SIZE-O", role="multi")
    @rows(("one", 1), ("many", 1000))
    def answer_states_its_size(target, model, count):
        \"\"\"An output returned as binary data states its exact size in bytes.\"\"\"

The body is called as `body(target, model, *row values)`, without `model` where neither check nor row names a role.
It returns when the requirement is met, with a text when there is something to observe, and raises `Unmet` otherwise.
The first line of its docstring is the claim, in the present tense.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Body = Callable[..., str | None]


@dataclass(frozen=True, slots=True)
class Row:
    """One case of a check.

    Attributes:
        id: unique within the check; part of what baselines and reports name.
        values: what the body gets behind target and model.
        role: the model role of this row, where rows differ in it.
        answers: the requirements of this row, where rows differ in them.
        thorough: left out by the `quick` profile, because it is slow or one of many alike.
        needs: extensions that the row rests on beside that of its requirements: binary data to send, for instance.
        model: the name of the deployed model that it is about, whatever that computes.
        dangerous: what it sends has ended servers; run last, and only where that is asked for.
    """

    id: str
    values: tuple[Any, ...] = ()
    role: str | None = None
    answers: tuple[str, ...] = ()
    thorough: bool = False
    needs: tuple[str, ...] = ()
    dangerous: bool = False
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A check with all its rows.

    Attributes:
        id: `area.claim-in-few-words`; never changes.
        answers: ledger ids; an `Unmet` that names none is about the first.
        role: the model role that it needs, or None.
        explores: draws from Hypothesis; runs under the `explore` profile alone.
        infers: rests on a model that answers a plain request; else the row is blocked.
    """

    id: str
    answers: tuple[str, ...]
    role: str | None
    rows: tuple[Row, ...]
    body: Body
    explores: bool = False
    infers: bool = True

    @property
    def name(self) -> str:
        """The body's name, by which `pytest -k` selects."""
        return self.body.__name__

    @property
    def claim(self) -> str:
        """One sentence in the present tense: the first line of the body's docstring."""
        return (inspect.getdoc(self.body) or "").partition("\n")[0]

    def requirements(self, row: Row) -> tuple[str, ...]:
        """The ledger ids that this row answers for, the first being the one meant by default."""
        return row.answers or self.answers

    def role_of(self, row: Row) -> str | None:
        """The model role that this row needs, or None."""
        return row.role or self.role


def check(
    identity: str,
    *,
    answers: str | Sequence[str] = (),
    role: str | None = None,
    explores: bool = False,
    infers: bool = True,
) -> Callable[[Body], Check]:
    """Make a check of a body.

    Args:
        identity: the check's id.
        answers: one ledger id or several, the first being the one meant by default.
        role: the model role of every row that names none.
        explores: see `Check.explores`.
        infers: see `Check.infers`.
    """

    def make(body: Body) -> Check:
        ids = (answers,) if isinstance(answers, str) else tuple(answers)
        cases: tuple[Row, ...] = getattr(body, "rows", (Row(""),))
        return Check(identity, ids, role, cases, body, explores, infers)

    return make


def rows(*cases: Row | tuple[Any, ...] | str) -> Callable[[Body], Body]:
    """Give a body its rows: `Row`s, tuples (id, value, ...), or texts that are both id and value."""

    def give(body: Body) -> Body:
        body.rows = tuple(map(_row, cases))  # type: ignore[attr-defined]
        return body

    return give


def _row(case: Row | tuple[Any, ...] | str) -> Row:
    if isinstance(case, Row):
        return case
    if isinstance(case, str):
        return Row(case, (case,))
    return Row(str(case[0]), tuple(case[1:]))


def all_rows(checks: Iterable[Check]) -> list[tuple[Check, Row]]:
    """Every check with each of its rows, in order."""
    return [(item, row) for item in checks for row in item.rows]
