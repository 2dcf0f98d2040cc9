"""Makes a unit of work of each target, and sees first that all of them can be used."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import tomlkit

from conformance.fleet.fleet_error import FleetError
from conformance.fleet.fleet_file import Fleet, FleetTarget
from conformance.fleet.unit import Unit
from conformance.judging import baseline_file
from conformance.judging.baseline_file import BaselineError
from conformance.plugin.options import REFERENCE
from conformance.plugin.server_options import DEFAULT_TIMEOUT_S as TIMEOUT
from conformance.report.json_report import compute_suite_digest
from conformance.spec import files
from conformance.transport import config, settings
from conformance.transport.settings import SettingsError, strip_user

# Values that show nothing: the name of a variable, behind the scheme of an Authorization or not, and that of a file.
_SHOWN_VALUE: Final = re.compile(r"[A-Za-z]*\s*\$\{\w+\}|@(?!@).*", re.DOTALL)
_SHOWN_USER: Final = re.compile(r"[^/]*://\$\{\w+\}(:\$\{\w+\})?@")
# In place of addresses that a variable stands for.
_SOME: Final = {"url": "http://h", "grpc": "h:1"}
# A digest of a short password could be tried out by whoever reads the state: each try costs a few milliseconds.
_COST: Final = {"n": 2**12, "r": 8, "p": 1}


def make_units(fleet: Fleet, *, here: bool, updates_baselines: bool = False) -> list[Unit]:
    """Return a unit for each target.

    Args:
        fleet: with at least one target.
        here: the work runs on this machine, so that secrets can be looked up already, to see whether they are there.
        updates_baselines: baselines are written anew.

    Raises:
        FleetError: a target cannot be used; the message names file, target and member.
    """
    return [_unit(fleet, target, here=here, updates_baselines=updates_baselines) for target in fleet.targets]


def digest(unit: Unit, salt: str) -> str:
    """Return a digest of all that decides what a unit comes to; equal for equal units under the same salt."""
    fields = {name: value for name, value in asdict(unit).items() if name != "folder"}
    text = json.dumps(fields, sort_keys=True).encode()
    return hashlib.scrypt(text, salt=salt.encode(), dklen=16, **_COST).hex()


def _unit(fleet: Fleet, target: FleetTarget, *, here: bool, updates_baselines: bool) -> Unit:
    place = f"{fleet.path}: {target.place}"
    try:
        _expect_usable(target, here=here)
        baseline = _baseline(target.baseline, fleet.baselines, updates=updates_baselines)
    except (SettingsError, BaselineError) as error:
        raise FleetError(f"{place}: {error}") from None
    url, headers, shown = _parted(target.entries)
    return Unit(
        target.name,
        tomlkit.dumps(shown),
        compute_suite_digest(),
        headers,
        url,
        target.models,
        fleet.profile,
        fleet.strict,
        fleet.gate,
        target.limits.connections,
        target.limits.time,
        baseline,
        updates_baselines and baseline is not None,
        fleet.evidence,
    )


def _expect_usable(target: FleetTarget, *, here: bool) -> None:
    """See that a run would take the target.

    Raises:
        SettingsError: it would not.
    """
    entries = dict(target.entries)
    if not here:  # what stands for a secret is known on the cluster alone
        entries = {name: value for name, value in entries.items() if name not in ("headers", "tls")}
        entries |= {name: some for name, some in _SOME.items() if "${" in entries.get(name, "")}
    found = config.build_config(entries, Path())
    if found.ca_file and not Path(found.ca_file).is_file():
        raise SettingsError(f"tls.ca {found.ca_file}: no such file")
    if REFERENCE not in (found.url, found.grpc):
        timeout, url = found.timeout or TIMEOUT, found.url or ""
        made = settings.make_settings(
            url, found.headers, ca_file=found.ca_file, timeout=timeout, grpc=found.grpc, rate=found.rate
        )
        if found.ca_file:
            made.ssl_context()


def _baseline(path: Path | None, folder: Path | None, *, updates: bool) -> str | None:
    """Return the text of a baseline, empty where it is to be made; None where there is none.

    Raises:
        BaselineError: it cannot be read.
    """
    if path is None:
        return None
    if not path.exists() and (updates or path.parent == folder):
        return "" if updates else None
    baseline_file.load(path)
    return files.read_text(path)


def _parted(entries: Mapping[str, Any]) -> tuple[str, tuple[str, ...], dict[str, Any]]:
    """Return the URL where it holds a secret, headers that do, and all entries without these."""
    url, headers = str(entries.get("url", "")), entries.get("headers", {})
    address = url if _SHOWN_USER.match(url) else strip_user(url)
    public = {name: value for name, value in headers.items() if _is_shown(name, value)}
    shown = {**entries, **({"url": address} if url else {}), **({"headers": public} if headers else {})}
    secret = tuple(f"{name}: {value}" for name, value in headers.items() if name not in public)
    return url if address != url else "", secret, shown


def _is_shown(name: str, value: str) -> bool:
    return name.lower() == "host" or _SHOWN_VALUE.fullmatch(value) is not None
