"""Reads a fleet file (TOML, `schemas/fleet.schema.json`): many targets, and how they are judged."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

from conformance.spec import files, schemas
from conformance.spec.text import escape_text
from conformance.spec.user_error import UserError
from conformance.transport import config
from conformance.transport.settings import SettingsError, strip_user

Entries = Mapping[str, Any]

USAGE: Final = 4  # the exit status of a usage error, like pytest's; 2 means interrupted
MAX_NAME_CHARS: Final = 100  # characters of a target name, which is also a folder name
_NO_PART: Final = re.compile(r"[^A-Za-z0-9._-]+")
ALL: Final = "all"  # every model that a target lists
# Members of a target that exist only in a fleet file; all other members exist in a target file as well.
_OWN: Final = ("file", "baseline", "limits")
_JOINED: Final = ("headers", "tls", "limits")


class FleetError(UserError):
    """The fleet file, an option or the folder cannot be used; the message names file, target and member."""

    status = USAGE


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a run on connections to the target and on time.

    Attributes:
        connections: the number of simultaneous connections; None uses the run's default.
        time: the maximum number of seconds for the whole run.
        retries: the number of retries for an unreachable target; `retry_pause` is the number of seconds before each.
    """

    connections: int | None = None
    time: float = 3600.0
    retries: int = 1
    retry_pause: float = 10.0


@dataclass(frozen=True, slots=True)
class FleetTarget:
    """One target of a fleet.

    Attributes:
        location: the keys of the target's table in the fleet file, for messages.
        entries: the entries of a target file, merged with the defaults of the fleet; may hold secrets.
        models: names of the deployed models to judge; `ALL` stands for all.
        baseline: the file of known failures, or None.
    """

    name: str
    location: str
    entries: Entries = field(repr=False)
    models: tuple[str, ...]
    limits: Limits
    baseline: Path | None = None


@dataclass(frozen=True, slots=True)
class Fleet:
    """The contents of a fleet file.

    Attributes:
        gate: the verdict required for exit status 0, `conformant` or `interoperable`; None requires that nothing fails.
        workers: number of targets judged concurrently; None: chosen from the number of processors.
        evidence: whether the bytes of requests and answers are stored.
        baselines: the default folder of baselines, for targets that name none, or None.
    """

    path: Path
    targets: tuple[FleetTarget, ...]
    profile: str = "certify"
    strict: bool = False
    gate: str | None = None
    workers: int | None = None
    keep: int = 10
    evidence: bool = True
    baselines: Path | None = None


def load(path: Path) -> Fleet:
    """Read the file.

    Raises:
        FleetError: the file, or one that it names, is unreadable, not TOML or does not match the schema; or there is no
        target.
    """
    try:
        entries = files.parse_toml(files.read_text(path))
    except files.UnreadableError as error:
        raise FleetError(f"{path}: {error}") from error
    _expect_valid_entries(path, entries)
    targets = tuple(_list_targets(path, entries))
    if not targets:
        raise FleetError(f"{path}: no target: give [targets.NAME] with a url, or [discover] with urls or a file")
    _expect_distinct(path, targets)
    given = {
        name: entries[name] for name in ("profile", "strict", "gate", "workers", "keep", "evidence") if name in entries
    }
    return Fleet(path, targets, baselines=_resolve_path(path, entries.get("baselines")), **given)


def _expect_valid_entries(path: Path, entries: Entries) -> None:
    fleet, target = schemas.load_schema("fleet"), schemas.load_schema("target")
    schema = {**fleet, "$defs": {**fleet["$defs"], "target-file": target}}  # the fleet schema refers to this
    error = schemas.find_error(entries, schema)
    if error is None:
        return
    place = ".".join(str(part) for part in error.absolute_path)
    said = error.message
    if "headers" in error.absolute_path:  # jsonschema's message would quote the value, which may be secret
        said = "a header has a name, and a text for its value"
    raise FleetError(escape_text(f"{path}: {place}: {said}" if place else f"{path}: {said}", 600))


def _list_targets(path: Path, entries: Entries) -> Iterator[FleetTarget]:
    defaults = entries.get("defaults", {})
    folder = _resolve_path(path, entries.get("baselines"))
    for name, own in entries.get("targets", {}).items():
        yield _build_target(path, name, f"targets.{name}", own, defaults, folder)
    taken = {name.lower() for name in entries.get("targets", {})}
    for url in _read_urls(path, entries.get("discover", {})):
        name = make_name(url, taken)
        taken.add(name.lower())
        yield _build_target(path, name, f"discover: {name}", {"url": url}, defaults, folder)


def _build_target(
    path: Path, name: str, place: str, own: Entries, defaults: Entries, baselines: Path | None
) -> FleetTarget:
    (own, models), (defaults, usual) = _split_off_models(own), _split_off_models(defaults)
    found, folder = own, path.absolute().parent
    if "file" in own:
        also = [member for member in own if member not in _OWN]
        if also:
            raise FleetError(f"{path}: {place}: {also[0]} cannot be combined with file: set it in that file")
        file = folder / own["file"]
        try:
            found = {**config.read_entries(file), **own}
        except SettingsError as error:
            raise FleetError(f"{path}: {place}: {error}") from None
        found, folder = _resolve_file_names(found, file.parent), file.parent
    merged = _merge_entries(_resolve_file_names(defaults, path.absolute().parent), _resolve_file_names(found, folder))
    if not ("url" in merged or "grpc" in merged):
        raise FleetError(f"{path}: {place}: give url, grpc, or both")
    default_models = (ALL,) if "url" in merged else ()  # models are discovered over HTTP
    return FleetTarget(
        name,
        place,
        {member: value for member, value in merged.items() if member not in _OWN},
        next((each for each in (models, usual) if each is not None), default_models),
        _build_limits(path, place, merged.get("limits", {})),
        _find_baseline_path(path, name, own, baselines),
    )


def _split_off_models(entries: Entries) -> tuple[Entries, tuple[str, ...] | None]:
    """Split off a `models` entry that is a list or `ALL`: return the other entries, and the models, or None."""
    named = entries.get("models")
    if named is None or isinstance(named, Mapping):
        return entries, None
    others = {member: value for member, value in entries.items() if member != "models"}
    return others, (ALL,) if named == ALL else tuple(named)


def _build_limits(path: Path, place: str, entries: Entries) -> Limits:
    for member, value in entries.items():
        if math.isnan(value):  # NaN passes the schema's minimum and maximum: every comparison with it is false
            raise FleetError(f"{path}: {place}.limits.{member}: nan is not a number of seconds")
    return Limits(**entries)


def _find_baseline_path(path: Path, name: str, own: Entries, folder: Path | None) -> Path | None:
    return _resolve_path(path, own.get("baseline")) or (folder and folder / f"{name}.toml")


def _resolve_path(path: Path, name: str | None) -> Path | None:
    return path.absolute().parent / name if name else None


def _merge_entries(defaults: Entries, own: Entries) -> dict[str, Any]:
    """Return the defaults, overridden by the target's own entries; header names match in any case."""
    joined = {name: _merge_tables(defaults[name], own[name]) for name in _JOINED if name in defaults and name in own}
    return {**defaults, **own, **joined}


def _merge_tables(defaults: Entries, own: Entries) -> dict[str, Any]:
    said = {name.lower() for name in own}
    return {**{name: value for name, value in defaults.items() if name.lower() not in said}, **own}


def _resolve_file_names(entries: Entries, folder: Path) -> dict[str, Any]:
    """Return the entries with file names made absolute."""
    found = dict(entries)
    if "ca" in found.get("tls", {}):
        found["tls"] = {**found["tls"], "ca": str(folder / found["tls"]["ca"])}
    if "headers" in found:
        found["headers"] = {name: _resolve_file_name(value, folder) for name, value in found["headers"].items()}
    return found


def _resolve_file_name(value: str, folder: Path) -> str:
    is_file = value.startswith("@") and not value.startswith("@@")
    return f"@{folder / value[1:]}" if is_file else value


def _expect_distinct(path: Path, targets: tuple[FleetTarget, ...]) -> None:
    """Require that the names of targets are distinct as folder names, even on case-insensitive file systems."""
    seen: dict[str, str] = {}
    for target in targets:
        other = seen.setdefault(target.name.lower(), target.name)
        if other != target.name:
            raise FleetError(
                f"{path}: targets.{target.name}: targets.{other} differs only in case: give it another name"
            )


# --- targets that are listed only by URL ------------------------------------------------------------------------------


def _read_urls(path: Path, entries: Entries) -> list[str]:
    """Return the distinct URLs of the table `discover`; the path `file` is relative to the folder of the fleet file."""
    listed = _read_url_lines(path, path.absolute().parent / entries["file"]) if "file" in entries else []
    return list(dict.fromkeys([*entries.get("urls", ()), *listed]))


def _read_url_lines(path: Path, file: Path) -> list[str]:
    try:
        lines = [line.partition("#")[0].split() for line in files.read_text(file).splitlines()]
    except files.UnreadableError as error:
        raise FleetError(f"{path}: discover.file {file}: {error}") from error
    for number, words in enumerate(lines, start=1):
        if len(words) > 1:
            raise FleetError(f"{path}: discover.file {file}: line {number} contains more than a URL")
    return [words[0] for words in lines if words]


def make_name(url: str, taken: Collection[str]) -> str:
    """Return a name for a URL: its host, port and path, without user and password.

    Args:
        url: URL as written; variables in it are not expanded.
        taken: names in use, in lower case.
    """
    place = strip_user(url).partition("://")[2] or url
    name = _NO_PART.sub("-", place).strip("-._")[: MAX_NAME_CHARS - 8].rstrip("-._") or "target"
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(each for each in names if each.lower() not in taken)
