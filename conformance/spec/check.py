"""What a check is: an id that never changes, the requirements it answers for, rows, and one short body.

    @check("sizes.answer-states-its-size", answers="BIN-SIZE-O", role="multi")
    @rows(("one", 1), ("many", 1000))
    def answer_states_its_size(target, model, count):
        \"\"\"An output returned as binary data states its exact size in bytes.\"\"\"

The body is called as `body(target, model, *row values)`, without `model` where neither check nor row names a role.
It returns when the requirement is met, with a text when there is something to observe, and raises `expect.unmet.Unmet`
otherwise. The first line of its docstring is the claim, in the present tense.

A check says over which transports it judges: `over=(HTTP,)`, which may be left out, or `(GRPC,)`, or both, where it
compares them. What is the same over both has one body and two ids, each with rows of its own:

    @check("classification.datatype-is-bytes", answers="CLS-TYPE")
    @rows(...)
    @check("grpc.classes-are-bytes", answers="CLS-TYPE/grpc", over=(GRPC,))
    @rows(...)
    def classes_are_bytes(target, model, values, send="json"):
        \"\"\"A classified output has datatype BYTES.\"\"\"

A body over gRPC is given a `transport.grpc_target.GrpcTarget`, which takes the same requests. What it finds unmet it
may name by the requirements of HTTP: `expect.attribution.over_grpc` gives these their names over gRPC.
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
        id: unique within the check; part of what baselines and reports name.
        values: what the body gets behind target and model.
        role: the model role of this row, where rows differ in it.
        answers: the requirements of this row, where rows differ in them.
        thorough: left out by the `quick` profile, because it is slow or one of many alike.
        needs: extensions that the row rests on beside that of its requirements: binary data to send, for instance.
        fit: the deployed models that it can be judged on, where rows differ in it.
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
    fit: Fit | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A check with all its rows.

    Attributes:
        id: `area.claim-in-few-words`; never changes.
        answers: ledger ids; an `Unmet` that names none is about the first.
        role: the model role that it needs, or None.
        fit: the deployed models that rows can be judged on which say nothing of it; None: on none.
        over: the transports that it judges; all of them have to be given.
        explores: draws from Hypothesis; runs under the `explore` profile alone.
        infers: rests on a model that answers a plain request; else the row is blocked.
        of_survey: judges the survey of the target, and so whatever is offered.
        also: checks that share the body, each over another transport.
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
        """The body's name, by which `pytest -k` selects."""
        return self.body.__name__

    @property
    def claim(self) -> str:
        """One sentence in the present tense: the first line of the body's docstring."""
        return (inspect.getdoc(self.body) or "").partition("\n")[0]

    @property
    def is_over_grpc(self) -> bool:
        """Whether it judges a server over gRPC, alone or beside HTTP."""
        return GRPC in self.over

    def requirements(self, row: Row) -> tuple[str, ...]:
        """The ledger ids that this row answers for, the first being the one meant by default."""
        return row.answers or self.answers

    def find_role(self, row: Row) -> str | None:
        """The model role that this row needs, or None."""
        return None if row.model else row.role or self.role

    def find_fit(self, row: Row) -> Fit | None:
        """Return which deployed models this row can be judged on; None: on none."""
        return row.fit or self.fit


@dataclass(frozen=True, slots=True)
class Cases:
    """Rows on their way to the check that stands above them."""

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
    """Make a check of a body; or a further one of the body of another check.

    Args:
        identity: the check's id.
        answers: one ledger id or several, the first being the one meant by default.
        role: the model role of every row that names none.
        over: see `Check.over`.
        explores: see `Check.explores`.
        infers: see `Check.infers`.
        of_survey: see `Check.of_survey`.
        fit: see `Check.fit`.
    """

    def make(made: Body | Cases | Check) -> Check:
        cases = made if isinstance(made, Cases) else Cases((Row(""),), made)
        ids = (answers,) if isinstance(answers, str) else tuple(answers)
        body, others = _unfolded(cases.of)
        return Check(identity, ids, role, cases.rows, body, tuple(over), explores, infers, others, of_survey, fit)

    return make


def _unfolded(made: Body | Check) -> tuple[Body, tuple[Check, ...]]:
    """Return a body, and the checks that were made of it already."""
    if isinstance(made, Check):
        return made.body, (replace(made, also=()), *made.also)
    return made, ()


def rows(*cases: Row | tuple[Any, ...] | str) -> Callable[[Body | Check], Cases]:
    """Give the check above its rows: `Row`s, tuples (id, value, ...), or texts that are both id and value."""
    return lambda made: Cases(tuple(map(_row, cases)), made)


def rows_for_role(role: str, *cases: Row | tuple[Any, ...] | str) -> list[Row]:
    """Return rows of one role, for a check of which other rows are for deployed models alone."""
    return [replace(_row(case), role=role) for case in cases]


def _row(case: Row | tuple[Any, ...] | str) -> Row:
    if isinstance(case, Row):
        return case
    if isinstance(case, str):
        return Row(case, (case,))
    return Row(str(case[0]), tuple(case[1:]))


def list_rows(checks: Iterable[Check]) -> list[tuple[Check, Row]]:
    """Every check with each of its rows, in order."""
    return [(item, row) for item in checks for row in item.rows]


# --- how a row is called ---------------------------------------------------------------------------------------------


def format_label(check_id: str, row_id: str) -> str:
    """Return a row as reports and baselines name it: `id [row]`."""
    return f"{check_id} [{row_id}]" if row_id else check_id


def format_key(check_id: str, row_id: str) -> str:
    """Return a row as recordings, pytest and `never` name it: `id[row]`, with brackets in any case."""
    return f"{check_id}[{row_id}]"
