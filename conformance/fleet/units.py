"""Units of work (one per target, created after all targets are validated) and their outcomes.

Units and outcomes are plain data, the same for the pool of this machine and for a cluster. Their `repr` contains only
the name, since a scheduler logs the `repr` of its tasks.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import tomlkit

from conformance.fleet.fleet_file import Fleet, FleetError, FleetTarget
from conformance.judging import baseline_file, packs
from conformance.judging.baseline_file import BaselineError
from conformance.report.json_report import compute_suite_digest
from conformance.spec import files
from conformance.spec.extensions import CHOICES
from conformance.transport import config
from conformance.transport.reference import REFERENCE
from conformance.transport.settings import SettingsError, strip_user

# Values without secrets: a variable reference, optionally after an Authorization scheme, or a file reference.
_SHOWN_VALUE: Final = re.compile(r"[A-Za-z]*\s*\$\{\w+\}|@(?!@).*", re.DOTALL)
_SHOWN_USER: Final = re.compile(r"[^/]*://\$\{\w+\}(:\$\{\w+\})?@")
# Placeholders for addresses that contain variables.
_PLACEHOLDERS: Final = {"url": "http://h", "grpc": "h:1"}
# A short password could be guessed from its digest, so each guess is made to cost a few milliseconds.
_COST: Final = {"n": 2**12, "r": 8, "p": 1}


@dataclass(frozen=True, slots=True)
class Unit:
    """One target to be judged by one run.

    Attributes:
        target: text of a target file without secrets. Secrets written in the fleet file are in `options`; secrets from
            environment variables and files are read where the unit runs.
        options: the options of the run, by name, except those that name files.
        baseline: text of a baseline, empty if one is to be written; None without one.
        suite: digest of the suite that must judge.
        folder: output folder; empty: the files are returned in the outcome.
    """

    name: str
    target: str = field(repr=False)
    suite: str = field(repr=False)
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    seconds: float = field(default=3600.0, repr=False)
    baseline: str | None = field(default=None, repr=False)
    evidence: bool = field(default=True, repr=False)
    folder: str = field(default="", repr=False)


class RunFailure(StrEnum):
    """The reasons why a run did not produce a verdict."""

    TIME = "time"  # it exceeded its time limit
    USAGE = "usage"  # its options cannot be used where it ran
    CRASHED = "crashed"  # it left no report
    OTHER_SUITE = "other_suite"  # another version of the suite is installed where it ran
    WORKER = "worker"  # the worker was lost, or cannot do the work
    STOPPED = "stopped"  # the fleet was ended


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a unit.

    Attributes:
        status: the exit status of the run: 0, 1 or 6.
        is_reached: False if the report says that the target was unreachable; True without a report.
        seconds: duration of the run.
        trouble: the reason why there is no verdict; None if the run ended normally and left a report.
        said: a one-line message that explains `trouble`.
        verdict: verdict of the report, as text; empty without a report.
        folder: output folder; empty if the unit had none, and `files` (name -> bytes) then has the output.
    """

    name: str
    status: int = field(repr=False)
    is_reached: bool = field(default=True, repr=False)
    seconds: float = field(default=0.0, repr=False)
    trouble: RunFailure | None = field(default=None, repr=False)
    said: str = field(default="", repr=False)
    verdict: str = field(default="", repr=False)
    folder: str = field(default="", repr=False)
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)


def make_units(fleet: Fleet, *, here: bool, updates_baselines: bool = False) -> list[Unit]:
    """Create a unit for each target.

    Args:
        fleet: a fleet with at least one target.
        here: whether the units run on this machine; if so, the secrets must exist now.
        updates_baselines: whether the runs rewrite the baselines.

    Raises FleetError: a target cannot be used; the message names file, target and member.
    """
    return [_build_unit(fleet, target, here=here, updates_baselines=updates_baselines) for target in fleet.targets]


def compute_digest(unit: Unit, salt: str) -> str:
    """Return a digest of everything that affects the outcome; equal units have equal digests for the same salt."""
    fields = {name: value for name, value in asdict(unit).items() if name != "folder"}
    text = json.dumps(fields, sort_keys=True).encode()
    return hashlib.scrypt(text, salt=salt.encode(), dklen=16, **_COST).hex()


def _build_unit(fleet: Fleet, target: FleetTarget, *, here: bool, updates_baselines: bool) -> Unit:
    place = f"{fleet.path}: {target.location}"
    try:
        _expect_judgeable(target, here=here)
        baseline = _read_baseline(target.baseline, fleet.baselines, updates=updates_baselines)
    except (SettingsError, BaselineError, packs.PackError) as error:
        raise FleetError(f"{place}: {error}") from None
    url, headers, shown = _split_off_secrets(target.entries)
    return Unit(
        target.name,
        tomlkit.dumps(shown),
        compute_suite_digest(),
        {
            "--target-url": url,
            "--target-header": headers,
            "--target-model": target.models,
            "--conformance-profile": fleet.profile,
            "--conformance-strict": fleet.strict,
            "--conformance-gate": fleet.gate,
            "--conformance-concurrency": target.limits.connections,
            "--conformance-update-baseline": updates_baselines and baseline is not None,
        },
        target.limits.time,
        baseline,
        fleet.evidence,
    )


def _expect_judgeable(target: FleetTarget, *, here: bool) -> None:
    """Require that a run would accept the entries of the target.

    Raises:
        SettingsError: the target cannot be used.
        PackError: a pack cannot be used.
    """
    entries = dict(target.entries)
    of_packs = [name for name in entries.get("extensions", ()) if name not in CHOICES]
    if here:
        packs.split_extensions(of_packs, "extensions")
    else:  # variables, files with secrets, and packs exist only on the cluster
        absent = ("headers", "tls", *(("roles",) if of_packs else ()))
        entries = {name: value for name, value in entries.items() if name not in absent}
        entries |= {name: some for name, some in _PLACEHOLDERS.items() if "${" in entries.get(name, "")}
    found = config.build_config(entries, Path())
    if REFERENCE not in (found.url, found.grpc):
        found.build_settings(found.url or "", found.grpc)


def _read_baseline(path: Path | None, folder: Path | None, *, updates: bool) -> str | None:
    """Return the text of a baseline; empty if the run creates the baseline, None if the target has no baseline.

    Raises BaselineError: the baseline cannot be read.
    """
    if path is None:
        return None
    if not path.exists() and (updates or path.parent == folder):
        return "" if updates else None
    baseline_file.load(path)
    return files.read_text(path)


def _split_off_secrets(entries: Mapping[str, Any]) -> tuple[str, tuple[str, ...], dict[str, Any]]:
    """Return the URL if it holds a secret, the headers with secrets, and all entries without these secrets."""
    url, headers = str(entries.get("url", "")), entries.get("headers", {})
    address = url if _SHOWN_USER.match(url) else strip_user(url)
    public = {name: value for name, value in headers.items() if _is_free_of_secrets(name, value)}
    shown = {**entries, **({"url": address} if url else {}), **({"headers": public} if headers else {})}
    secret = tuple(f"{name}: {value}" for name, value in headers.items() if name not in public)
    return url if address != url else "", secret, shown


def _is_free_of_secrets(name: str, value: str) -> bool:
    return name.lower() == "host" or _SHOWN_VALUE.fullmatch(value) is not None
