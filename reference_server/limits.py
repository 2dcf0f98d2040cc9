"""Limits on request size and time, and the options of the command line that set them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on requests; requests beyond them are refused.

    Attributes:
        head: bytes of request line and headers together, without those received together with the first byte.
        body: bytes of a body, both as received and decoded.
        wait_seconds: seconds to wait for a whole head, for more bytes of a body, and for the client to read an answer.
        body_seconds: seconds for a whole body.
        json: bytes of the JSON of a request.
        elements: values in the JSON of a request, elements of an output in JSON, and elements of BYTES.
        containers: arrays, objects and members of objects in the JSON of a request.
        entries: entries of `inputs`, and of `outputs`.
    """

    head: int = 64 * 1024
    body: int = 64 * 1024 * 1024
    wait_seconds: float = 10.0
    body_seconds: float = 300.0
    json: int = 16 * 1024 * 1024
    elements: int = 2 * 1024 * 1024
    containers: int = 64 * 1024
    entries: int = 1024
    connections: int = 1000


DEFAULT = Limits()
_in_force = [DEFAULT]


def get_limits() -> Limits:
    """Return the limits of this process, which apply to bodies over either transport."""
    return _in_force[-1]


def set_limits(limits: Limits) -> None:
    """Set the limits of this process."""
    _in_force[-1] = limits


# --- as options of the command line ----------------------------------------------------------------------------------

RESERVED_DESCRIPTORS = 32  # descriptors for other uses than HTTP connections


class Option(NamedTuple):
    """An option of the command line: the limit that it sets, its parser and unit, and its help text."""

    name: str
    limit: str
    parse: Callable[[str], float]
    unit: str
    text: str


def parse_positive_integer(text: str) -> int:
    """Parse an integer of at least 1; argparse turns the ValueError into a message."""
    if (number := int(text)) < 1:
        raise ValueError
    return number


def parse_seconds(text: str) -> float:
    """Parse a finite time above 0; argparse turns the ValueError into a message."""
    if not 0 < (number := float(text)) < float("inf"):
        raise ValueError
    return number


OPTIONS = (
    Option("--max-body", "body", parse_positive_integer, "BYTES",
           "refuse larger request bodies with status 413, and larger gRPC messages"),
    Option("--max-head", "head", parse_positive_integer, "BYTES", "refuse larger request heads with status 431"),
    Option("--max-json", "json", parse_positive_integer, "BYTES",
           "refuse a request with more bytes of JSON with status 413"),
    Option("--max-elements", "elements", parse_positive_integer, "NUMBER",
           "refuse more values in JSON, and more BYTES elements"),
    Option("--max-arrays", "containers", parse_positive_integer, "NUMBER",
           "refuse more arrays, objects and members in JSON with status 413"),
    Option("--max-entries", "entries", parse_positive_integer, "NUMBER", "refuse more entries in inputs or in outputs"),
    Option("--max-connections", "connections", parse_positive_integer, "NUMBER",
           "refuse more simultaneous connections with status 503"),
    Option("--patience", "wait_seconds", parse_seconds, "SECONDS",
           "refuse a request with status 408 if its head, or the next part of its body, takes longer"),
)  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add an option for each limit to a parser."""
    for option in OPTIONS:
        parser.add_argument(
            option.name,
            type=option.parse,
            default=getattr(DEFAULT, option.limit),
            metavar=option.unit,
            help=f"{option.text} (default: %(default){'g' if option.parse is parse_seconds else 's'})",
            dest=option.limit,
        )


def read_limits(options: argparse.Namespace) -> Limits:
    """Return the limits from the options; the connection limit leaves some descriptors for other uses."""
    limits = Limits(**{option.limit: getattr(options, option.limit) for option in OPTIONS})
    return replace(limits, connections=min(limits.connections, max(1, count_descriptors() - RESERVED_DESCRIPTORS)))


def count_descriptors() -> int:
    """Return the maximum number of open descriptors of this process."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return 1 << 20
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft
