"""Formulas of the roles, for authors of models: how a model computes its outputs from its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance.roles.roles import Role


def format_formula(role: Role) -> str:
    """Return the formula of a role with its tensor names; `k` is the index of an element in row-major order, from 0."""
    return FORMULAS[role.compute](role)


def _format_conversion(role: Role) -> str:
    """Return the formula of a role whose outputs are its inputs, converted to the datatypes of the outputs."""
    pairs = zip(role.outputs, role.inputs, strict=True)
    return ", ".join(
        f"{out.name} = {own.name}" + (f" as {out.datatype}" if out.datatype != own.datatype else "")
        for out, own in pairs
    )


def _format_documented_purpose(role: Role) -> str:
    """Return the formula that the purpose of a role states after its source reference."""
    return role.purpose.partition(": ")[2]


def _build_formatter(template: str) -> Callable[[Role], str]:
    """Return a function that fills a template with a role's first input name, output names and table."""

    def fill_template(role: Role) -> str:
        outputs = {f"out{place}": spec.name for place, spec in enumerate(role.outputs)}
        return template.format(into=role.inputs[0].name, table=list(role.table), **outputs)

    return fill_template


FORMULAS: Mapping[str, Callable[[Role], str]] = {
    "identity": _format_conversion,
    "cast": _format_conversion,
    "add_sub": _build_formatter("{out0} = A + B, {out1} = A - B, element by element"),
    "length": _build_formatter("{out0}[k] = the number of bytes in {into}[k]"),
    "weighted_sum": _build_formatter("{out0} = [the sum of (k + 1) * {into}[k] over all k]"),
    "emit": _build_formatter(
        '{out0} = [1, 2, ... {into}[0]], {out1} = ["t1", "t2", ... "t" + {into}[1]]; each may be empty'
    ),
    "text": _build_formatter("{out0} = {into}, {out1}[k] = {into}[k] in decimal digits"),
    "table": _build_formatter("{out0}[k] = {table}[{into}[k] - 1]"),
    "transpose": _build_formatter(
        "{out0}[k][j][i] = {into}[i][j][k], {out1}[k][j] = {into}[0][j][k] in decimal digits"
    ),
    "add_version": _build_formatter("{out0}[k] = {into}[k] + the number of the version that computes"),
    "documented_binary": _format_documented_purpose,
    "documented_mixed": _format_documented_purpose,
    "documented_all_outputs": _format_documented_purpose,
    "documented_raw": _format_documented_purpose,
}
