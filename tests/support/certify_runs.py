"""Runs of `certify` as tests want them."""

from __future__ import annotations

import lzma
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from conformance.certification import sealing
from conformance.commands import certify
from conformance.commands.main import main
from tests.support import warm
from tests.support.few_rows import FEW_ROWS, with_few_rows

LABEL_OPTIONS = ("--vendor=V", "--product=P", "--product-version=1", "--contact=c", "--profile=classification")

SCORES_MODEL = "--model=scores_labelled"  # of a reference server
# What makes it miss a refusal, and nothing else.
MISSES_A_REFUSAL = ("--fault=error-of-unknown-outputs-with-status-200", SCORES_MODEL, "--model=identity_int32")
PRODUCT = (str(Path(__file__).with_name("product_server.py")),)  # one that calls itself as WHO does


def run_certify(folder: Path, *arguments: str) -> int:
    return main(["certify", *arguments, *LABEL_OPTIONS, "-o", str(folder)])


def run_pytest_warm(arguments: Sequence[str], environment: Mapping[str, str]) -> CompletedProcess[str]:
    """Run pytest as `certify` does, in a process that has imported the suite already."""
    return warm.run(warm.pytest_main, Path.cwd(), arguments, environment)


@contextmanager
def certify_few_rows(*plugins: str) -> Iterator[None]:
    """Let `certify` and `verify` judge few rows; models and coverage are judged as they are.

    Recordings are packed with less effort: in folders that nobody keeps, that took most of the time.

    Args:
        plugins: more options for the run of pytest.
    """
    own = certify.list_arguments
    with pytest.MonkeyPatch.context() as patch, with_few_rows():
        patch.setattr(certify, "list_arguments", lambda options: [*own(options), *FEW_ROWS, *plugins])
        patch.setattr(certify, "run_pytest", run_pytest_warm)
        patch.setattr(sealing, "XZ_FILTERS", ({"id": lzma.FILTER_LZMA2, "preset": 0},))
        yield
