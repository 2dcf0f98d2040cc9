"""What the tests of certification share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conformance.certification import profiles, rejudge
from conformance.commands.main import main
from conformance.spec.coverage import FULL_COVERAGE
from tests.support.certify_runs import MISSES_A_REFUSAL, PRODUCT, SCORES_MODEL, certify_few_rows, run_certify
from tests.support.forging import FolderContents, load
from tests.support.servers import run_bundled


@contextmanager
def few_models() -> Iterator[None]:
    """Let few models and few rows be enough for the run, for its verification, and for a profile."""
    with pytest.MonkeyPatch.context() as patch, certify_few_rows("-p", "tests.support.few_models"):
        patch.setattr(rejudge, "find_coverage", lambda *_, **__: FULL_COVERAGE)
        patch.setattr(profiles, "_are_beyond_scope", lambda _rows, _demanded: True)
        yield


@pytest.fixture(scope="module")
def few_models_are_enough() -> Iterator[None]:
    """Conformant is who has every role, which is a test's own matter; a server with few models is judged sooner."""
    with few_models():
        yield


@pytest.fixture(scope="module")
def few_rows_are_enough() -> Iterator[None]:
    """A run of few rows, its models and its coverage being judged as they are."""
    with certify_few_rows():
        yield


@pytest.fixture(scope="session")
def scoring() -> Iterator[str]:
    """The URL of a product with one model, that has labels."""
    with run_bundled(SCORES_MODEL, program=PRODUCT) as url:
        yield url


@pytest.fixture(scope="session")
def honest(tmp_path_factory: pytest.TempPathFactory, scoring: str) -> Path:
    """The folder of a product that is conformant."""
    folder = tmp_path_factory.mktemp("honest") / "c"
    with few_models():
        assert run_certify(folder, f"--target-url={scoring}") == 0
    return folder


@pytest.fixture(scope="session")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a server that fails: what a forger would start from."""
    folder = tmp_path_factory.mktemp("failing") / "c"
    with (
        few_models(),
        run_bundled("--fault", "first-label-is-taken-for-a-heading", SCORES_MODEL, program=PRODUCT) as url,
    ):
        assert run_certify(folder, f"--target-url={url}") == 1
    return folder


@pytest.fixture(scope="session")
def interoperable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a product that misses a refusal alone, certified as interoperable."""
    folder = tmp_path_factory.mktemp("interoperable") / "c"
    with few_models(), run_bundled(*MISSES_A_REFUSAL, program=PRODUCT) as url:
        assert run_certify(folder, f"--target-url={url}", "--conformance-gate=interoperable") == 0
    return folder


@pytest.fixture(scope="session")
def original(honest: Path) -> FolderContents:
    """What is in the honest folder; whoever edits it copies it."""
    return load(honest)


@pytest.fixture(scope="session")
def bad(failing: Path) -> FolderContents:
    """What is in the failing folder."""
    return load(failing)


@pytest.fixture
def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Return what sees that the folder of the test is refused for a reason."""

    def see(reason: str) -> None:
        assert main(["verify", str(tmp_path)]) == 1
        assert reason in capsys.readouterr().out

    return see
