"""Exports the model roles as folders for real servers: `oip-conformance models export`.

Exported code does not import this package, and nothing here imports `templates/`: the exported models are judged, and
judged code shares nothing with the suite.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from conformance.export.server_formats import FORMATS, Format, copy_files, refuse_datatypes
from conformance.report.output_files import convert_write_errors
from conformance.roles import roles
from conformance.roles.roles import Role
from conformance.spec.user_error import UserError

# A model's name becomes a folder name and a URL segment.
_PREFIX = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]*)?")


class ExportError(UserError):
    """The export failed; the message is one line with the reason."""


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The result of an export.

    Attributes:
        models: role -> name of its model, in the order of `roles.toml`.
        left_out: role -> reason why the format cannot serve it.
    """

    models: Mapping[str, str]
    left_out: Mapping[str, str]


def export(
    format_name: str,
    folder: Path,
    names: Iterable[str] = (),
    prefix: str = "",
    without: Iterable[str] = (),
    packs: Sequence[str] = (),
) -> ExportResult:
    """Write roles into `folder` in one of `FORMATS`, with a role map and a README.

    Args:
        format_name: key of `FORMATS`.
        folder: absent or empty.
        names: names of the roles; by default all roles that the format can serve.
        prefix: prepended to the name of each role, to form the name of its model.
        without: datatypes that this server lacks, in addition to those that the format lacks.
        packs: the loaded packs whose roles are exported as well; the role map names them.

    Raises ExportError: a role is unknown or cannot be served, or the folder is not empty or cannot be written.
    """
    server_format = FORMATS[format_name]
    known = {**roles.load(), **roles.load_for_packs(packs)}
    chosen, left_out = _choose_roles(server_format, known, list(dict.fromkeys(names)), list(without))
    if not _PREFIX.fullmatch(prefix):
        raise ExportError(f"the prefix {prefix!r} cannot begin the name of a model: use A-Z a-z 0-9 _ - .")
    models = {role.name: prefix + role.name for role in chosen}
    with convert_write_errors(folder, ExportError):
        _create_empty_folder(folder)
        server_format.write(folder, {models[role.name]: role for role in chosen})
        copy_files(folder, server_format.templates / "README.md")
        (folder / "target.toml").write_text(_build_role_map(server_format, models, packs), encoding="utf-8")
    return ExportResult(models, left_out)


def _choose_roles(
    server_format: Format, known: Mapping[str, Role], names: list[str], without: list[str]
) -> tuple[list[Role], Mapping[str, str]]:
    """Return the roles to write, and the reasons for omitted roles; a role that the user named is never omitted."""
    for name in names:
        if name not in known:
            close = get_close_matches(name, known)
            raise ExportError(f"unknown role {name!r}" + (f"; did you mean {' or '.join(close)}?" if close else ""))
    lacking = refuse_datatypes(*without)
    left_out = {role.name: why for role in known.values() if (why := server_format.refusal(role) or lacking(role))}
    for name in names:
        if name in left_out:
            raise ExportError(f"{server_format.name} cannot serve {name}: {left_out[name]}")
    if names:
        return [known[name] for name in known if name in names], {}
    return [role for role in known.values() if role.name not in left_out], left_out


def _create_empty_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise ExportError(f"{folder} is not a folder")
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise ExportError(f"{folder} is not empty")


def _build_role_map(server_format: Format, models: Mapping[str, str], packs: Sequence[str]) -> str:
    """Return a role map in TOML; the names of models are written as JSON strings, which are valid TOML."""
    addresses = [f'{member} = "{address}"' for member, address in server_format.listens.items()]
    addresses += [f"extensions = {json.dumps(packs)}"] if packs else []
    head = ["# Which model fills which role: pytest --target-config=target.toml", *addresses, "", "[roles]"]
    lines = [f"{role} = {json.dumps(model)}" for role, model in models.items()]
    return "\n".join([*head, *lines, ""])
