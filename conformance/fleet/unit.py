"""A unit of work, and what came of it: plain data, the same for the pool of this machine and for a cluster.

Neither shows more of itself than its name: what a scheduler logs of its tasks is their `repr`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Unit:
    """One target to be judged by one run.

    Attributes:
        name: of the target.
        target: the text of a target file without secrets: those that stand in the fleet file itself are in `headers`
            and `url`, those of the environment and of files are looked up where the work runs.
        headers: each as "Name: value", as they were written.
        url: with user and password; empty where the target file has it.
        models: deployed ones to judge, by their names; `all` stands for every one that the target lists.
        gate: what decides its exit status, `conformant` or `interoperable`; None: whether something fails.
        connections: on how many to ask at once; None: as a run chooses by itself.
        seconds: that the run may take.
        baseline: text of a baseline, empty where one is to be written; None without one.
        suite: the digest of the suite that is to judge.
        folder: where to leave what the run writes; empty: it comes back with the outcome.
    """

    name: str
    target: str = field(repr=False)
    suite: str = field(repr=False)
    headers: tuple[str, ...] = field(default=(), repr=False)
    url: str = field(default="", repr=False)
    models: tuple[str, ...] = field(default=(), repr=False)
    profile: str = field(default="certify", repr=False)
    strict: bool = field(default=False, repr=False)
    gate: str | None = field(default=None, repr=False)
    connections: int | None = field(default=None, repr=False)
    seconds: float = field(default=3600.0, repr=False)
    baseline: str | None = field(default=None, repr=False)
    updates_baseline: bool = field(default=False, repr=False)
    evidence: bool = field(default=True, repr=False)
    folder: str = field(default="", repr=False)


class RunFailure(StrEnum):
    """Why a run came to no verdict of its own."""

    TIME = "time"  # it took longer than it may
    USAGE = "usage"  # what it was given cannot be used where it ran
    CRASHED = "crashed"  # it left no report
    OTHER_SUITE = "other_suite"  # another version of the suite is installed where it ran
    WORKER = "worker"  # the worker was lost, or cannot do the work
    STOPPED = "stopped"  # the fleet was ended


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a unit.

    Attributes:
        status: the exit status of the run: 0, 1 or 6.
        is_reached: whether the target ever answered.
        seconds: that the run took.
        trouble: None where the run ended by itself and left a report.
        said: about the trouble, in one line.
        verdict: of the report, as a sentence has it; empty without one.
        folder: where the run has left what it wrote; empty where it was given none, and `files` has it: name -> bytes.
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
