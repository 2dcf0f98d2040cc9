"""Startup optimizations: no assertion rewriting, no garbage collection while loading, few threads of numpy."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder

import pytest

_THREADS = "OPENBLAS_NUM_THREADS"


class _SuiteFinder:
    """Finds modules of the suite for Python to import as usual."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, _: object = None) -> ModuleSpec | None:
        return PathFinder.find_spec(name, path) if name.startswith("conformance.") else None


def skip_assertion_rewriting(config: pytest.Config) -> None:
    """Let modules of the suite be imported without pytest, which rewrites the assertions of a plugin's whole package.

    Checks make no assertions. Rewriting them doubles the time of a first run, and takes a seventh of a short later one.
    """
    sys.meta_path.insert(0, _SuiteFinder)
    config.add_cleanup(lambda: sys.meta_path.remove(_SuiteFinder))


def pause_garbage_collection(config: pytest.Config) -> None:
    """Disable garbage collection until `resume_garbage_collection` is called, or pytest cleans up its configuration.

    Loading creates several hundred thousand objects that live until the process ends. Python traverses all of them
    whenever their number has grown by a quarter, which takes a fifth of the time of a short run.
    """
    if gc.isenabled():
        gc.disable()
        config.add_cleanup(gc.enable)


def resume_garbage_collection() -> None:
    """Enable garbage collection again, for objects created from now on."""
    gc.freeze()
    gc.enable()


def exclude_results_from_garbage_collection() -> None:
    """Exclude the results of the run from the two garbage collections at the end of pytest, which saves a second.

    Call this only if no test of the user ran: with these collections pytest finds resources that tests left open.
    """
    gc.freeze()


@contextmanager
def limit_numpy_threads() -> Iterator[None]:
    """Prevent numpy from starting threads for linear algebra; the suite needs none, and idle ones consume CPU time."""
    if _THREADS in os.environ:
        yield
        return
    os.environ[_THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[_THREADS]  # subprocesses, such as a user's adapter, keep the user's environment
