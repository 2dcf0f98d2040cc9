"""Pages that are made of what is there already: the schemas, the roles, the files of a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from conformance.roles import roles
from conformance.roles.formulas import format_formula
from conformance.roles.roles import TensorSpec
from tests.support.site import matrix

ROOT = Path(__file__).parents[3]


def render_report_page() -> str:
    """Return the members of a JSON report, as its schema describes them."""
    schema = json.loads((ROOT / "schemas/report.schema.json").read_text(encoding="utf-8"))
    lines = [
        "# The report",
        "",
        f"{schema['description']} [The schema](../../schemas/report.schema.json) is what is promised "
        "([what stays](../stability.md)); this page is made of it.",
        *_members("", schema, schema["$defs"]),
    ]
    return "\n".join(lines) + "\n"


def _members(place: str, schema: Mapping[str, Any], shared: Mapping[str, Any]) -> Iterator[str]:
    """Yield a table of the members of an object, and after it one for each member that has some of its own."""
    own = {name: _resolved(member, shared) for name, member in schema.get("properties", {}).items()}
    if not own:
        return
    yield from ("", f"## {place or 'Top level'}", "", "| member | always there | is |", "|---|---|---|")
    required = schema.get("required", ())
    for name, member in own.items():
        yield f"| `{name}` | {'yes' if name in required else ''} | {_cell(_said(member))} |"
    for name, member in own.items():
        inner = _resolved(member.get("items", member), shared)
        if not place.count("."):
            yield from _members(f"{place}.{name}".strip("."), inner, shared)


def _resolved(member: Any, shared: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a member with what it refers to, and with its own words where it has some."""
    if not isinstance(member, dict):
        return {}
    return {**shared.get(str(member.get("$ref", "")).rpartition("/")[2], {}), **member}


def _said(member: Mapping[str, Any]) -> str:
    """Return what a member is: its description, or its type and values."""
    kind = member.get("type", "")
    kinds = " or ".join(kind) if isinstance(kind, list) else kind
    constants = [member["const"]] if "const" in member else member.get("enum", ())
    values = [f"`{json.dumps(value)}`" for value in constants]
    return ": ".join(part for part in (kinds, member.get("description", ""), ", ".join(values)) if part)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def render_schemas_page() -> str:
    """Return what each schema is of."""
    lines = [
        "# Schemas",
        "",
        "JSON Schema 2020-12, for use from any language.",
        "",
        "| schema | of what |",
        "|---|---|",
    ]
    for path in sorted((ROOT / "schemas").glob("*.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        lines.append(f"| [{path.name}]({path.name}) | {_cell(schema.get('description') or schema.get('title', ''))} |")
    return "\n".join(lines) + "\n"


def render_roles_page() -> str:
    """Return every model role."""
    lines = [
        "# Model roles",
        "",
        "[What roles are](../judging.md#deploy-model-roles).",
        "",
        "| role | takes | gives | which is |",
        "|---|---|---|---|",
    ]
    for name, role in roles.load().items():
        takes, gives = ("<br>".join(map(_tensor, tensors)) for tensors in (role.inputs, role.outputs))
        lines.append(f"| `{name}`<br>{_cell(role.purpose)} | {takes} | {gives} | {_cell(format_formula(role))} |")
    return "\n".join(lines) + "\n"


def _tensor(tensor: TensorSpec) -> str:
    return f"`{tensor.name}` {tensor.datatype} {list(tensor.shape)}"


def render_files_page(folder: Path) -> str:
    """Return the files of a folder that a page links to."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    return "\n".join([f"# {folder.relative_to(ROOT)}", "", *(f"- [{name}]({name})" for name in names), ""])


# Path of a page that is no file of the repository, or that the site shows otherwise -> what makes it.
PAGES: Mapping[str, Callable[[], str]] = {
    "README.md": matrix.render_home,
    "docs/reference/report.md": render_report_page,
    "docs/reference/roles.md": render_roles_page,
    "schemas/README.md": render_schemas_page,
}
# The same of pages that are HTML already.
RAW_PAGES: Mapping[str, Callable[[], str]] = {matrix.PAGE: matrix.render_matrix}
