"""Fixtures for users' own test suites: `oip_report` is the conformance report of the server from `oip_target`.

The target is judged anew for each test that requests the report, so that no test receives the report of another server.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conformance.api import Report

NO_TARGET = "oip_report: define a fixture oip_target that returns the URL of a server, or an ASGI app"


@pytest.fixture
def oip_target() -> Any:
    """The URL or ASGI app that `oip_report` judges; override this fixture to use `oip_report`."""
    pytest.fail(NO_TARGET, pytrace=False)


@pytest.fixture
def oip_models() -> Collection[str]:
    """The deployed models that `oip_report` judges, named as for `--target-model`; none unless overridden."""
    return ()


@pytest.fixture
def oip_options() -> Mapping[str, Any]:
    """Further arguments of `conformance.judge`, by name; none unless overridden."""
    return {}


@pytest.fixture
def oip_report(
    request: pytest.FixtureRequest, oip_target: Any, oip_models: Collection[str], oip_options: Mapping[str, Any]
) -> Report:
    """The report of `conformance.judge(oip_target, models=oip_models, **oip_options)`; a test that fails shows it."""
    from conformance.api import JudgeError, judge  # lazy: a plain pytest run must not import it

    try:
        report = judge(oip_target, **{"models": oip_models, **oip_options})
    except JudgeError as error:
        pytest.fail(f"oip_report: {error}", pytrace=False)
    request.node.add_report_section("setup", "oip_report", str(report))
    return report
