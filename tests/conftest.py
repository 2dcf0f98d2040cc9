"""Servers that many tests share, each started by the first that asks for it."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.support import sampling
from tests.support.servers import FEW_MODELS, ONE_MODEL, run_bundled
from tests.support.serving import Server, run_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# The hundreds of processes that the tests start multiply no matrices: numpy's threads for that only cost them time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A machine under load is no fault of what is tested.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")

# The files that take longest, which start first: what pytest-xdist starts last, the other processes wait for.
SLOWEST_FIRST = (
    "faults/test_kill_matrix.py",
    "run/test_deployed_models.py",
    "certification/test_clients.py",
    "clients/test_client_walk.py",
    "clients/test_client_alterations.py",
    "judging/test_short_waits.py",
    "faults/test_variations_under_load.py",
    "run/test_limits.py",
    "run/test_docs.py",
    "clients/peer/test_rows.py",
    "run/test_plugin.py",
    "run/test_reports.py",
    "strangers/test_strangers.py",
    "hostile/test_silence.py",
    "commands/test_run_through.py",
    "gateways/test_gateways.py",
    "run/test_grpc.py",
    "../examples/packs/statistics/tests/test_statistics_pack.py",
)
MAX_TEST_S = 900  # seconds; the longest, which judges a server for every fault, takes four minutes on a slow machine


def pytest_addoption(parser: pytest.Parser) -> None:
    """Say where copies of the documents are, in which sentences are looked up, and whether samples of rows will do."""
    parser.addoption(
        "--copies", metavar="DIR", default="../shared/spec", help="copies of the documents (default: %(default)s)"
    )
    parser.addoption("--whole", action="store_true", help="judge every row where tests otherwise judge a sample")


def pytest_configure(config: pytest.Config) -> None:
    """Heed `--whole`, and let pytest-xdist take files in their order: by itself it leaves the longest here for last."""
    sampling.is_whole = config.getoption("--whole")
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Let one process compile the tests of a new clone: otherwise each of pytest-xdist's compiles all of them."""
    if not sys.dont_write_bytecode and not list(Path(__file__).parent.glob("*/__pycache__/test_*.pyc")):
        command = [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:xdist", "-p", "no:cacheprovider"]
        subprocess.run([*command, *config.args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage while tests are collected, and never among what is then there: nearly all of it stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Have a test that waits for what never comes fail, and say where; the rows of the suite are none of these."""
    item.add_marker(pytest.mark.timeout(MAX_TEST_S))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the slowest files first, and leave the order of the rest."""
    ranks = {(Path(__file__).parent / name).resolve(): rank for rank, name in enumerate(SLOWEST_FIRST)}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The reference server, to be talked to in plain bytes."""
    with run_server() as started:
        yield started


@pytest.fixture(scope="session")
def reference() -> Iterator[str]:
    """The URL of a reference server, to be judged."""
    with run_bundled() as url:
        yield url


@pytest.fixture(scope="session")
def small() -> Iterator[str]:
    """The URL of one with few models, for whole runs."""
    with run_bundled(*FEW_MODELS) as url:
        yield url


@pytest.fixture(scope="session")
def lone() -> Iterator[str]:
    """The URL of one with one model, for whole runs of which little is asked."""
    with run_bundled(ONE_MODEL) as url:
        yield url


@pytest.fixture(scope="session")
def renamed() -> Iterator[str]:
    """The URL of one whose models and tensors have other names."""
    with run_bundled(program=(str(Path(__file__).with_name("support") / "renamed_server.py"),)) as url:
        yield url


@pytest.fixture(scope="session")
def browser(pytestconfig: pytest.Config) -> Iterator[Browser]:
    """A browser without a window."""
    from tests.support import chromium

    assert pytestconfig.cache is not None
    with chromium.run_browser(pytestconfig.cache.mkdir("chromium")) as running:
        yield running
