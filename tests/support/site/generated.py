"""Pages that are made of what is there already, and are no files of the repository: those of the site alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from conformance.commands import sources
from conformance.pages import coverage, errata, pages, servers
from conformance.roles import roles
from conformance.roles.formulas import format_formula
from conformance.roles.roles import TensorSpec
from conformance.spec import ledger
from conformance.spec.documents import load_sentences
from conformance.spec.links import PAGES_FOLDER
from tests.clients import kill_matrix_page as clients_matrix
from tests.strangers import bugs
from tests.support import history_page, kill_matrix_page, strangers_page
from tests.support.results import RESULTS

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


def render_sentences_page() -> str:
    """Return every sentence of the documents with the requirements that rest on it."""
    cited = sources.group_requirements_by_sentence(ledger.load().values())
    return sources.render_sentences(load_sentences().values(), cited)


def render_clients_page() -> str:
    sys.path.insert(0, str(ROOT / "targets" / "runner"))  # programs, and no package
    clients, page = import_module("clients"), import_module("clients_page")
    return "\n".join(page.render_page(page.read_reports(RESULTS / "clients"), clients.read_known())) + "\n"


def render_strangers_page() -> str:
    """Return the bugs that strangers planted in servers and clients."""
    of_clients = strangers_page.render_clients(list(bugs.list_client_bugs()), bugs.read_caught(bugs.CLIENTS_CAUGHT))
    return strangers_page.render(list(bugs.list_bugs()), bugs.read_caught()) + of_clients


# Path of a page that is no file of the repository -> what makes it.
PAGES: Mapping[str, Callable[[], str]] = {
    "docs/coverage.md": lambda: coverage.render()[0],
    "docs/errata.md": lambda: errata.render(servers.load(RESULTS, bundled=True)),
    "docs/history.md": lambda: history_page.render(history_page.read_bugs(), history_page.read_stopping_rows()),
    kill_matrix_page.PAGE: kill_matrix_page.render,
    clients_matrix.PAGE: clients_matrix.render,
    "docs/reference/report.md": render_report_page,
    "docs/reference/roles.md": render_roles_page,
    "docs/results-clients.md": render_clients_page,
    "docs/sentences.md": render_sentences_page,
    "docs/strangers.md": render_strangers_page,
    "schemas/README.md": render_schemas_page,
}


@cache
def render_site_pages() -> Mapping[str, str]:
    """Return the text of every page that is no file of the repository, by its path."""
    requirements = pages.render(servers.load(RESULTS))
    return {name: make() for name, make in PAGES.items()} | {
        f"{PAGES_FOLDER}/{name}": text for name, text in requirements.items()
    }
