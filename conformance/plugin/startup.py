"""Startup optimisations."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_THREADS = "OPENBLAS_NUM_THREADS"


def pause_garbage_collection(config: pytest.Config) -> None:
    """Search no more for garbage until `resume_garbage_collection`, or until pytest lets go of its configuration.

    Loading makes some hundred thousand objects, all of which stay until the process ends. Python looks through all of
    them whenever their number has grown by a quarter: a fifth of a short run's time.
    """
    if gc.isenabled():
        gc.disable()
        config.add_cleanup(gc.enable)


def resume_garbage_collection() -> None:
    """Search for garbage again, but among what comes from now on."""
    gc.freeze()
    gc.enable()


@contextmanager
def limit_numpy_threads() -> Iterator[None]:
    """Have numpy start no threads for linear algebra, which nothing here needs: they spin while they wait for work."""
    if _THREADS in os.environ:
        yield
        return
    os.environ[_THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[_THREADS]  # what a run starts, an adapter of the user's for instance, has the user's environment
