"""Defines checks: each has a permanent id, the requirements that it covers, rows, and one short body.

    @check("sizes.answer-states-its-size", answers="BIN-SIZE-O", role="multi")
    @rows(("one", 1), ("many", 1000))
    def answer_states_its_size(target, model, count):
        \"\"\"An output returned as binary data states its exact size in bytes.\"\"\"

The body is called as `body(target, model, *row values)`; `model` is omitted if neither check nor row has a role. It
returns if the requirement is met, optionally with a text to report as an observation, and otherwise raises
`expect.unmet.UnmetError`. The first line of its docstring is the claim, in the present tense.

`over` lists the transports that a check judges: `(HTTP,)` (the default), `(GRPC,)`, or both if it compares them. A
claim that holds over each of them has one body and two ids, each with separate rows:

    @check("classification.datatype-is-bytes", answers="CLS-TYPE")
    @rows(...)
    @check("grpc.classes-are-bytes", answers="CLS-TYPE/grpc", over=(GRPC,))
    @rows(...)
    def classes_are_bytes(target, model, values, send="json"):
        \"\"\"A classified output has datatype BYTES.\"\"\"

A body over gRPC receives a `transport.grpc_target.GrpcTarget`, which accepts the same requests. It may raise `Unmet`
with requirements of HTTP: `expect.attribution.to_grpc_requirement` translates them to gRPC.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conformance.spec.extensions import GRPC, HTTP
from conformance.spec.fit import Fit

Body = Callable[..., str | None]


@dataclass(frozen=True, slots=True)
class Row:
    """One case of a check.

    Attributes:
        id: unique within the check; baselines and reports refer to it.
        values: arguments of the body after target and model.
        role: the model role of this row, if rows differ.
        answers: the requirements of this row, if rows differ.
        needs: further extensions that the row requires, for example binary data to send its tensors.
        fit: the deployed models that can be used for the row, if rows differ.
        model: the name of the deployed model to judge, whatever it computes.
        dangerous: whether requests of the row have crashed servers; such rows run late, and only on request.
    """

    id: str
    values: tuple[Any, ...] = ()
    role: str | None = None
    answers: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    dangerous: bool = False
    fit: Fit | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A check with all its rows.

    Attributes:
        id: `area.claim-in-few-words`; never changes.
        answers: ledger ids; an `Unmet` without a requirement refers to the first.
        role: the model role that the check requires, or None.
        fit: the deployed models for rows without a fit of their own; None if no deployed model can be used.
        over: the transports that the check judges; the target must have all of them.
        explores: whether the check draws from Hypothesis; such checks run only under the `explore` profile.
        infers: whether the check requires a model that answers a plain request; otherwise its rows are blocked.
        of_survey: whether the check judges the discovery of the target, so that it runs for every extension.
        also: checks with the same body over other transports.
    """

    id: str
    answers: tuple[str, ...]
    role: str | None
    rows: tuple[Row, ...]
    body: Body
    over: tuple[str, ...] = (HTTP,)
    explores: bool = False
    infers: bool = True
    also: tuple[Check, ...] = ()
    of_survey: bool = False
    fit: Fit | None = None

    @property
    def area(self) -> str:
        """The first part of the id."""
        return self.id.partition(".")[0]

    @property
    def name(self) -> str:
        """The body's name, for `pytest -k`."""
        return self.body.__name__

    @property
    def claim(self) -> str:
        """One sentence in the present tense: the first line of the body's docstring."""
        return (inspect.getdoc(self.body) or "").partition("\n")[0]

    @property
    def is_over_grpc(self) -> bool:
        """Whether it judges gRPC, alone or together with HTTP."""
        return GRPC in self.over

    def requirements(self, row: Row) -> tuple[str, ...]:
        """The ledger ids that this row covers; the first is the default of an `Unmet`."""
        return row.answers or self.answers

    def find_role(self, row: Row) -> str | None:
        """The model role that this row needs, or None."""
        return None if row.model else row.role or self.role

    def find_fit(self, row: Row) -> Fit | None:
        """Return the constraints on deployed models for this row; None if no deployed model can be used."""
        return row.fit or self.fit


@dataclass(frozen=True, slots=True)
class Cases:
    """Rows of a check and its body: the `rows` decorator returns them for the `check` decorator."""

    rows: tuple[Row, ...]
    of: Body | Check


def check(
    identity: str,
    *,
    answers: str | Sequence[str] = (),
    role: str | None = None,
    over: Sequence[str] = (HTTP,),
    explores: bool = False,
    infers: bool = True,
    of_survey: bool = False,
    fit: Fit | None = None,
) -> Callable[[Body | Cases | Check], Check]:
    """Make a check from a body, or another check from the body of an existing one.

    Args:
        identity: the check's id.
        answers: one or several ledger ids; the first is the default of an `Unmet`.
        role: the model role of rows without one.
        over: see `Check.over`.
        explores: see `Check.explores`.
        infers: see `Check.infers`.
        of_survey: see `Check.of_survey`.
        fit: see `Check.fit`.
    """

    def make(made: Body | Cases | Check) -> Check:
        cases = made if isinstance(made, Cases) else Cases((Row(""),), made)
        ids = (answers,) if isinstance(answers, str) else tuple(answers)
        body, others = _split_check(cases.of)
        return Check(identity, ids, role, cases.rows, body, tuple(over), explores, infers, others, of_survey, fit)

    return make


def _split_check(made: Body | Check) -> tuple[Body, tuple[Check, ...]]:
    """Return a body, and the checks already made from it."""
    if isinstance(made, Check):
        return made.body, (replace(made, also=()), *made.also)
    return made, ()


def rows(*cases: Row | tuple[Any, ...] | str) -> Callable[[Body | Check], Cases]:
    """Set the rows of a check: `Row`s, tuples (id, value, ...), or texts that are both id and value."""
    return lambda made: Cases(tuple(map(_build_row, cases)), made)


def rows_for_role(role: str, *cases: Row | tuple[Any, ...] | str) -> list[Row]:
    """Return rows with one role, for a check whose other rows are only for deployed models."""
    return [replace(_build_row(case), role=role) for case in cases]


def _build_row(case: Row | tuple[Any, ...] | str) -> Row:
    if isinstance(case, Row):
        return case
    if isinstance(case, str):
        return Row(case, (case,))
    return Row(str(case[0]), tuple(case[1:]))


def list_rows(checks: Iterable[Check]) -> list[tuple[Check, Row]]:
    """Return every pair of a check and one of its rows, in order."""
    return [(item, row) for item in checks for row in item.rows]


# --- names of rows ----------------------------------------------------------------------------------------------------


def format_label(check_id: str, row_id: str) -> str:
    """Format a row for reports and baselines: `id [row]`."""
    return f"{check_id} [{row_id}]" if row_id else check_id


def format_key(check_id: str, row_id: str) -> str:
    """Format a row for recordings, pytest and `never`: `id[row]`, always with brackets."""
    return f"{check_id}[{row_id}]"
