"""The limits as options of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from reference_server.limits import DEFAULT, Limits

RESERVED_DESCRIPTORS = 32  # descriptors that are no connections over HTTP


class Option(NamedTuple):
    """An option: the limit that it sets, its kind and unit, and what becomes of what is beyond."""

    name: str
    limit: str
    kind: Callable[[str], float]
    unit: str
    text: str


def parse_whole(text: str) -> int:
    """Return a number from 1 on; argparse makes a line of the ValueError."""
    if (number := int(text)) < 1:
        raise ValueError
    return number


def parse_seconds(text: str) -> float:
    """Return a time above 0 that ends; argparse makes a line of the ValueError."""
    if not 0 < (number := float(text)) < float("inf"):
        raise ValueError
    return number


OPTIONS = (
    Option(
        "--max-body", "body", parse_whole, "BYTES", "refuse larger request bodies with status 413, and larger messages"
    ),
    Option("--max-head", "head", parse_whole, "BYTES", "refuse larger heads of requests with status 431"),
    Option("--max-json", "json", parse_whole, "BYTES", "refuse more JSON in a request with status 413"),
    Option(
        "--max-elements", "elements", parse_whole, "NUMBER", "refuse more values in JSON, and more elements of BYTES"
    ),
    Option(
        "--max-arrays",
        "containers",
        parse_whole,
        "NUMBER",
        "refuse more arrays, objects and members in JSON with status 413",
    ),
    Option("--max-entries", "entries", parse_whole, "NUMBER", "refuse more entries of inputs, and of outputs"),
    Option(
        "--max-connections", "connections", parse_whole, "NUMBER", "refuse connections beyond so many with status 503"
    ),
    Option(
        "--patience",
        "patience",
        parse_seconds,
        "SECONDS",
        "refuse a request whose head, or the next part of whose body, takes longer, with status 408",
    ),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    for option in OPTIONS:
        parser.add_argument(
            option.name,
            type=option.kind,
            default=getattr(DEFAULT, option.limit),
            metavar=option.unit,
            help=f"{option.text} (default: %(default)g)"
            if option.kind is parse_seconds
            else f"{option.text} (default: %(default)s)",
            dest=option.limit,
        )


def read_limits(options: argparse.Namespace) -> Limits:
    """Return the limits that were given; connections leave some descriptors for what else takes one."""
    limits = Limits(**{option.limit: getattr(options, option.limit) for option in OPTIONS})
    return replace(limits, connections=min(limits.connections, max(1, count_descriptors() - RESERVED_DESCRIPTORS)))


def count_descriptors() -> int:
    """Return how many descriptors this process may have open."""
    try:
        import resource
    except ImportError:  # no such limit is known to Windows
        return 1 << 20
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft
