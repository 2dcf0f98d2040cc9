"""Fixtures for a test suite of one's own: `oip_report` is the report of what `oip_target` gives it.

Each test that asks for the report has its target judged for itself: nobody is shown what was true of another server.
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
    """The URL or ASGI app that `oip_report` judges; to be defined by who asks for that."""
    pytest.fail(NO_TARGET, pytrace=False)


@pytest.fixture
def oip_models() -> Collection[str]:
    """The deployed models that `oip_report` judges, as `--target-model` names them: none, where nobody defines them."""
    return ()


@pytest.fixture
def oip_options() -> Mapping[str, Any]:
    """Further arguments of `conformance.judge`, by name: none, where nobody defines them."""
    return {}


@pytest.fixture
def oip_report(
    request: pytest.FixtureRequest, oip_target: Any, oip_models: Collection[str], oip_options: Mapping[str, Any]
) -> Report:
    """The report of `conformance.judge(oip_target, models=oip_models, **oip_options)`; a test that fails shows it."""
    from conformance.api import JudgeError, judge  # what a plain run of pytest must not import

    try:
        report = judge(oip_target, **{"models": oip_models, **oip_options})
    except JudgeError as error:
        pytest.fail(f"oip_report: {error}", pytrace=False)
    request.node.add_report_section("setup", "oip_report", str(report))
    return report
