"""Defines checks. A check has a permanent id, the requirements that it covers, rows (its cases), and one function.

    @check("sizes.answer-states-its-size", requirements="BIN-SIZE-O", role="multi")
    @rows(("one", 1), ("many", 1000))
    def answer_states_its_size(target, model, count):
        \"\"\"An output returned as binary data states its exact size in bytes.\"\"\"

The suite calls this function, the body, as `body(target, model, *row values)`; `model` is omitted if neither check nor
row has a role. The body returns if the requirement is met; a returned text is reported as an observation. If the
requirement is not met, the body raises `expect.unmet.UnmetError`. The first line of its docstring is the claim, in the
present tense.

`over` lists the transports that a check judges: `(HTTP,)` (the default), `(GRPC,)`, or both if it compares them. A
claim that holds over each of them is a `claim`, which makes a check for each:

    @claim("classification.datatype-is-bytes", requirements="CLS-TYPE")
    @rows(
        Row("fp32", (SCORES,), role="scores"),
        Row("infinities", (INFINITE, "binary"), role="scores", needs=BINARY),
        Row("as-binary-data", (SCORES, "binary", True), role="scores", only=Only(HTTP, "calls have no such parameter")),
    )
    def datatype_is_bytes(target, model, values, send="json", binary=ABSENT):
        \"\"\"A classified output has datatype BYTES.\"\"\"

The check over gRPC is `grpc.datatype-is-bytes`, for CLS-TYPE/grpc. It has the same rows. A row with a role runs twice,
with typed and with raw contents, if the body has the parameter `send`, the form of the inputs. `only` names the single
transport of a row or a check, and why the other has none; `docs/coverage.md` shows it.

A body over gRPC receives a `transport.grpc_target.GrpcTarget`, which accepts the same requests. It may raise
`UnmetError` with requirements of HTTP: `expect.attribution.to_grpc_requirement` translates them to gRPC.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from conformance.spec import ledger
from conformance.spec.extensions import BINARY, CLASSES, CLASSES_OVER_GRPC, GRPC, HTTP, RAW, TRANSPORTS
from conformance.spec.fit import Fit

Body = Callable[..., str | None]

# What a row over gRPC needs in place of what it needs over HTTP; raw contents need no extension.
_NEEDS_OVER_GRPC: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(BINARY, ()),
    **dict.fromkeys(CLASSES, CLASSES_OVER_GRPC),
}
# suffix of a row's id -> the value of `send` for inputs in typed and in raw contents
_CONTENTS: Mapping[str, str] = {"typed": "json", "raw": "binary"}


@dataclass(frozen=True, slots=True)
class Only:
    """The single transport over which a check or a row can run, and why it cannot run over the other."""

    transport: str
    why: str


# The reason of rows that need raw requests, if their check is a `claim`.
RAW_ALONE = Only(HTTP, "a raw request is a body of HTTP")


@dataclass(frozen=True, slots=True)
class Row:
    """One case of a check.

    Attributes:
        id: unique within the check; baselines and reports refer to it.
        values: arguments of the body after target and model.
        role: the model role of this row, if rows differ.
        requirements: the requirements of this row, if rows differ.
        needs: the extensions that the row requires in addition to the extension of its requirements, such as binary
            data for its tensors.
        fit: the constraints on deployed models that can replace the role's model in this row, if rows differ.
        model: the name of the deployed model to judge, which may compute anything; None: the model of the role.
        dangerous: whether requests of the row have crashed servers; such rows run late, and only with an option.
        only: the single transport of this row, if the check is a `claim`.
    """

    id: str
    values: tuple[Any, ...] = ()
    role: str | None = None
    requirements: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    dangerous: bool = False
    fit: Fit | None = None
    model: str | None = None
    only: Only | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A check with all its rows.

    Attributes:
        id: `area.claim-in-few-words`; never changes.
        requirements: ids of the requirements; an `UnmetError` without a requirement refers to the first.
        role: the model role that the check requires, or None.
        fit: the constraints on deployed models that can replace the role's model, for rows without own constraints;
            None if only the role's model can be used.
        over: the transports that the check judges; the target must have all of them.
        explores: whether Hypothesis generates the requests; such checks run only under the `explore` profile.
        infers: whether the rows are blocked if the model answers no simple valid request (`Target.find_plain_refusal`).
        judges_discovery: whether the check judges the requests of discovery, so that it runs for every extension.
        only: why there is no check over the other transport, unless its requirements say so.
        suffix: what follows the name of the function if another check of the area has the same function.
    """

    id: str
    requirements: tuple[str, ...]
    role: str | None
    rows: tuple[Row, ...]
    body: Body
    over: tuple[str, ...] = (HTTP,)
    explores: bool = False
    infers: bool = True
    also: tuple[Check, ...] = ()
    judges_discovery: bool = False
    fit: Fit | None = None
    only: Only | None = None
    suffix: str = ""

    @property
    def area(self) -> str:
        """The first part of the id."""
        return self.id.partition(".")[0]

    @property
    def name(self) -> str:
        """The name of the body's function, which `pytest -k` selects."""
        return self.body.__name__ + self.suffix

    @property
    def claim(self) -> str:
        """One sentence in the present tense: the first line of the body's docstring."""
        return (inspect.getdoc(self.body) or "").partition("\n")[0]

    @property
    def cases(self) -> list[Case]:
        """The check with each of its rows, in order."""
        return [Case(self, row) for row in self.rows]

    @property
    def is_over_grpc(self) -> bool:
        """Whether the check judges gRPC, alone or together with HTTP."""
        return GRPC in self.over


class Case(NamedTuple):
    """A check with one of its rows: what a run judges."""

    check: Check
    row: Row

    @property
    def ids(self) -> tuple[str, str]:
        """The ids of check and row."""
        return self.check.id, self.row.id

    @property
    def key(self) -> str:
        """The name in recordings, pytest and the setting `never`; see `format_key`."""
        return format_key(*self.ids)

    @property
    def label(self) -> str:
        """The name in reports and baselines; see `format_label`."""
        return format_label(*self.ids)

    @property
    def requirements(self) -> tuple[str, ...]:
        """The ids of the requirements that the row covers; the first is the default of an `UnmetError`."""
        return self.row.requirements or self.check.requirements

    @property
    def requirement(self) -> ledger.Requirement:
        """The first requirement of the row; the body of the check may report another requirement as unmet."""
        return ledger.get_requirement(self.requirements[0])

    @property
    def role(self) -> str | None:
        """The model role that the row needs; None if it needs no role or names a deployed model."""
        return None if self.row.model else self.row.role or self.check.role

    @property
    def fit(self) -> Fit | None:
        """The constraints on deployed models for the row; None if only the role's model can be used."""
        return self.row.fit or self.check.fit


@dataclass(frozen=True, slots=True)
class BodyWithRows:
    """A body with the rows of its check: the `rows` decorator returns it for the `check` decorator."""

    rows: tuple[Row, ...]
    source: Body | Check


def check(
    identity: str,
    *,
    requirements: str | Sequence[str] = (),
    role: str | None = None,
    over: Sequence[str] = (HTTP,),
    explores: bool = False,
    infers: bool = True,
    judges_discovery: bool = False,
    fit: Fit | None = None,
    only: Only | None = None,
) -> Callable[[Body | BodyWithRows | Check], Check]:
    """Make a check from a body, or another check from the body of an existing check.

    `requirements`: ids of one or several requirements; the first is the default of an `UnmetError`.
    `role`: the model role of rows that have no role themselves. The others are attributes of `Check`.
    """

    def build_check(source: Body | BodyWithRows | Check) -> Check:
        cases = source if isinstance(source, BodyWithRows) else BodyWithRows((Row(""),), source)
        ids = (requirements,) if isinstance(requirements, str) else tuple(requirements)
        body, also = _split_check(cases.source)
        selected = _select_rows(cases.rows, over)
        return Check(
            identity, ids, role, selected, body, tuple(over), explores, infers, also, judges_discovery, fit, only
        )

    return build_check


def claim(
    identity: str, *, requirements: str | Sequence[str], over_grpc: Sequence[str] = (), **settings: Any
) -> Callable[[Body | BodyWithRows | Check], Check]:
    """Make a check over HTTP, and another over gRPC whose id, requirements and rows follow from the first.

    Args:
        identity: the id over HTTP; over gRPC its area is `grpc`, and in a pack it ends in `-over-grpc`.
        requirements: ids of requirements over HTTP; over gRPC those of them that exist there. All those of a pack have
            to exist there: a pack is loaded after its checks are made.
        over_grpc: ids of requirements that the check over gRPC covers before these.
        settings: other arguments of `check`.
    """

    def build_checks(source: Body | BodyWithRows | Check) -> Check:
        made = check(identity, requirements=requirements, over=TRANSPORTS, **settings)(source)
        made = replace(made, rows=tuple(replace(row, only=_find_only(row)) for row in made.rows))
        call_id, suffix = _name_calls(made)
        calls = replace(
            made,
            id=call_id,
            suffix=suffix,
            requirements=(*over_grpc, *_list_grpc_requirements(made.requirements)),
            rows=tuple(call for row in _select_rows(made.rows, (GRPC,)) for call in _list_calls(made, row)),
            over=(GRPC,),
            also=(),
        )
        return replace(made, rows=_select_rows(made.rows, (HTTP,)), over=(HTTP,), also=(calls, *made.also))

    return build_checks


def _select_rows(cases: Iterable[Row], transports: Sequence[str]) -> tuple[Row, ...]:
    return tuple(row for row in cases if row.only is None or row.only.transport in transports)


def _find_only(row: Row) -> Only | None:
    return RAW_ALONE if set(RAW) & set(row.needs) else row.only


def _list_grpc_requirements(requirements: Iterable[str]) -> tuple[str, ...]:
    found = [
        ledger.find_grpc_equivalent(each) if each in ledger.load() else each + ledger.GRPC_SUFFIX
        for each in requirements
    ]
    return tuple(dict.fromkeys(requirement for requirement in found if requirement))


def _name_calls(made: Check) -> tuple[str, str]:
    """Return id and suffix of a claim over gRPC: in the area `grpc`, or in the only area of its pack."""
    if all(requirement in ledger.load() for requirement in made.requirements):
        return f"{GRPC}.{made.id.partition('.')[2]}", ""
    return f"{made.id}-over-grpc", "_over_grpc"


def _list_calls(made: Check, row: Row) -> Iterator[Row]:
    """Yield the rows over gRPC of a claim's row: one for each form of contents if a role's inputs have a form."""
    needs = tuple(dict.fromkeys(own for name in row.needs for own in _NEEDS_OVER_GRPC[name]))
    call = replace(row, requirements=_list_grpc_requirements(row.requirements), needs=needs)
    parameters = inspect.signature(made.body).parameters
    arguments = [name for name in parameters if name not in ("target", "model")]
    if "send" not in arguments or Case(made, row).role is None:
        yield call
        return
    values = [*row.values, *[parameters[name].default for name in arguments[len(row.values) :]]]
    for name, form in _CONTENTS.items():
        values[arguments.index("send")] = form
        yield replace(call, id="-".join(filter(None, (row.id, name))), values=tuple(values))


def _split_check(source: Body | Check) -> tuple[Body, tuple[Check, ...]]:
    """Return the body, and the checks that earlier `check` decorators made from the body."""
    if isinstance(source, Check):
        return source.body, (replace(source, also=()), *source.also)
    return source, ()


def rows(*cases: Row | tuple[Any, ...] | str) -> Callable[[Body | Check], BodyWithRows]:
    """Set the rows of a check: `Row`s, tuples (id, value, ...), or texts that are both id and value."""
    return lambda source: BodyWithRows(tuple(map(_build_row, cases)), source)


def rows_for_role(role: str, *cases: Row | tuple[Any, ...] | str) -> list[Row]:
    """Return rows with this role, for a check whose other rows run only on deployed models."""
    return [replace(_build_row(case), role=role) for case in cases]


def _build_row(case: Row | tuple[Any, ...] | str) -> Row:
    if isinstance(case, Row):
        return case
    if isinstance(case, str):
        return Row(case, (case,))
    return Row(str(case[0]), tuple(case[1:]))


def list_rows(checks: Iterable[Check]) -> list[Case]:
    """Return the cases of checks, in order."""
    return [case for item in checks for case in item.cases]


# --- names of rows ----------------------------------------------------------------------------------------------------


def format_label(check_id: str, row_id: str) -> str:
    """Format a row for reports and baselines: `id [row]`."""
    return f"{check_id} [{row_id}]" if row_id else check_id


def format_key(check_id: str, row_id: str) -> str:
    """Format a row for recordings, pytest and the setting `never`: `id[row]`, always with brackets."""
    return f"{check_id}[{row_id}]"
