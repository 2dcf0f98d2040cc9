"""`oip-conformance walk`: prints the request features that rows of the area `walk` combine, and the covered pairs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from conformance.checks.client.walk_axes import GRPC_AXES, HTTP_AXES, AxisValues, build_steps, is_excluded_pair
from conformance.checks.support.covering import Coverage, Step, StepSpace
from conformance.checks.walk import exchanges, walk_rows
from conformance.checks.walk.axes import KINDS, find_cost, is_excluded, is_needed
from conformance.checks.walk.axes_over_grpc import CALLS, is_excluded_call


def add_subcommand(commands: Any) -> None:
    """Add the subcommand."""
    commands.add_parser(
        "walk",
        help="print the features of a request that rows combine in pairs, with their values",
        description="Print the features of requests that the rows of the area `walk` combine, with the values of each. "
        "For each kind of request, print the number of requests and of the pairs of values that they cover. "
        "docs/walk.md explains these rows.",
    )


def run(_: argparse.Namespace) -> str:
    """Return the text to print."""
    return "\n".join(
        [
            *_describe_kinds(KINDS, exchanges.build_steps, is_excluded),
            *_describe_kinds(CALLS, exchanges.build_steps, is_excluded_call),
            *_describe_client_axes("clients", HTTP_AXES),
            *_describe_client_axes("clients over gRPC", GRPC_AXES),
        ]
    )


def measure_coverage(axes: Mapping[str, Sequence[str]], steps: Sequence[Step], *rules: Any) -> Coverage:
    """Count the pairs of values of two request features (`axes`) that the requests (`steps`) cover.

    `rules` are further arguments of `StepSpace`: which pairs are excluded, and how the others are chosen.
    """
    own = [{axis: step[axis] for axis in axes} for step in steps]
    return StepSpace(axes, *rules).measure_coverage(own)


def _describe_kinds(kinds: Mapping[str, Mapping[str, Sequence[str]]], steps_of: Any, excluded: Any) -> Iterator[str]:
    for kind, axes in kinds.items():
        steps = steps_of(kind)
        brief = steps[: len(steps) // walk_rows.BRIEF_STEPS]

        def is_excluded_pair(*values: str, kind: str = kind) -> bool:
            return bool(excluded(kind, *values))

        coverage = measure_coverage(axes, steps, is_excluded_pair, find_cost, is_needed)
        yield f"{kind}: {len(steps)} requests, {coverage}; the first {len(brief)} run before other rows"
        yield from _format_axes(axes)
        never = sum(
            is_excluded_pair(a, v, b, w) for (a, vs), (b, ws) in combinations(axes.items(), 2) for v in vs for w in ws
        )
        yield f"    {'excluded':14} {never} pairs that no client may send, such as chunks in HTTP/1.0"


def _describe_client_axes(kind: str, axes: AxisValues) -> Iterator[str]:
    coverage = measure_coverage(axes, build_steps(axes), is_excluded_pair)
    yield f"{kind}: {len(build_steps(axes))} requests, {coverage}"
    yield from _format_axes(axes)


def _format_axes(axes: AxisValues) -> Iterator[str]:
    for axis, values in axes.items():
        yield f"    {axis.replace('_', ' '):14} {_format_values(values)}"


def _format_values(values: Sequence[str]) -> str:
    return ", ".join(values) if len(values) < 32 else f"{', '.join(values[:30])} and {len(values) - 30} more"
