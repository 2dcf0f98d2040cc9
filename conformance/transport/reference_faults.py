"""The faults of the bundled reference server, as it lists them itself: the judge imports nothing of the judged."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from conformance.spec.user_error import UserError

MAX_LISTING_S = 60.0  # seconds


class NoFaultsError(UserError):
    """The bundled server does not list its faults: the installation is broken."""

    def __init__(self) -> None:
        super().__init__("the bundled reference server does not list its faults: try `python -m reference_server`")


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        name: on the command line of the reference server.
        summary: what the server does with it, in one sentence.
        area: the subject under which the faults are sorted.
        steps: the functions of the server that it replaces.
        breaks: ids of the requirements that it breaks, first the one that it is about; empty where nobody can say.
        walks: the kind of request by which the walk shows it, where it takes two things at once; else empty.
        is_over_grpc: whether it shows over gRPC alone.
    """

    name: str
    summary: str
    area: str
    steps: tuple[str, ...]
    breaks: tuple[str, ...]
    walks: str
    is_over_grpc: bool


@cache
def load() -> Mapping[str, Fault]:
    """Return every fault by name, in the order of the server's own list. Asked for once; the mapping is read-only.

    Raises:
        NoFaultsError: the server's own list cannot be had.
    """
    command = [sys.executable, "-m", "reference_server", "--list-faults", "json"]
    try:
        listed = subprocess.run(command, capture_output=True, check=True, timeout=MAX_LISTING_S)
    except subprocess.SubprocessError as error:
        raise NoFaultsError from error
    found = map(_fault, json.loads(listed.stdout))
    return MappingProxyType({fault.name: fault for fault in found})


def _fault(entry: Mapping[str, Any]) -> Fault:
    return Fault(
        entry["name"],
        entry["summary"],
        entry["area"],
        tuple(entry["steps"]),
        tuple(entry["breaks"]),
        entry["walks"],
        entry["over_grpc"],
    )
