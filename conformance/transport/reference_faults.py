"""The faults of the bundled reference server, which lists them as JSON: the suite imports no code of the server."""

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
        super().__init__("the bundled server does not list its faults: try `oip-conformance serve --list-faults`")


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that the reference server can simulate.

    Attributes:
        name: the value of `--fault` on the command line of the reference server.
        summary: how the server behaves with the fault, in one sentence.
        breaks: ids of the requirements that the fault breaks, the main requirement first; empty if unknown.
        walks: for a fault that is only visible if a request combines two features, the kind of request with which the
            checks of the area `walk` reveal the fault; empty for other faults.
        is_over_grpc: whether the fault is visible over gRPC only.
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
    """Return every fault by name, in the server's order, as a read-only mapping; the first call starts the server.

    Raises NoFaultsError: the server does not list its faults.
    """
    command = [sys.executable, "-m", "reference_server", "--list-faults", "json"]
    try:
        listed = subprocess.run(command, capture_output=True, check=True, timeout=MAX_LISTING_S)
    except subprocess.SubprocessError as error:
        raise NoFaultsError from error
    found = map(_parse_fault, json.loads(listed.stdout))
    return MappingProxyType({fault.name: fault for fault in found})


def _parse_fault(entry: Mapping[str, Any]) -> Fault:
    return Fault(
        entry["name"],
        entry["summary"],
        entry["area"],
        tuple(entry["steps"]),
        tuple(entry["breaks"]),
        entry["walks"],
        entry["over_grpc"],
    )
