"""`conformance.judge` on servers and on apps: the bundled one, right and broken, and one that offers nothing."""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import conformance
from conformance.api import judging
from conformance.judging import selection
from conformance.report import formats
from conformance.spec.check import Case
from reference_server import app as reference_app
from reference_server import faults, models
from reference_server.app import Application
from tests.support.few_rows import with_few_rows
from tests.support.valid_reports import expect_valid

ODD_NAMES = "robustness.odd-name-leads-nowhere"
FEW = ("identity_int32", "multi", "scores_labelled")

LEFT_OUT = r"(1 row|([2-9]|\d{2,}) rows) left out by the profile quick"


def bundled() -> Application:
    """Return the app of the bundled server with few models."""
    return reference_app.create({name: model for name, model in models.load().items() if name in FEW})


def offering_nothing() -> Starlette:
    async def metadata(_: Request) -> JSONResponse:
        return JSONResponse({"name": "small", "version": "1", "extensions": []})

    return Starlette(routes=[Route("/v2", metadata)])


@pytest.fixture(scope="module", autouse=True)
def few_rows() -> Iterator[None]:
    with with_few_rows():
        yield


@pytest.fixture(scope="module")
def broken() -> conformance.Report:
    """The report of the bundled server with a fault."""
    with faults.switch_on(faults.load()["binary-outputs-in-reverse"]):
        return conformance.judge(bundled(), profile="quick")


def test_of_the_bundled_app_with_few_models_nothing_fails() -> None:
    report = conformance.judge(bundled(), profile="quick")
    assert (report.verdict, report.failures) == ("partial", ()), str(report)
    assert report.passed
    unjudged, left_out = report.why
    assert re.fullmatch(r"\d+ MUSTs not judged \(deploy \w+, \w+ and \w+ to judge \d+ more\)", unjudged)
    assert re.fullmatch(LEFT_OUT, left_out)
    expect_valid(report.to_dict())
    assert report.to_dict()["footer"]["complete"]


def test_what_an_app_withstands_is_said_beside_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def few(_: str, **named: Any) -> list[Case]:
        return [case for case in selection.list_profile_rows("certify", **named) if case[0].id == ODD_NAMES]

    monkeypatch.setattr(judging, "list_profile_rows", few)  # the others wait for what does not come
    with faults.switch_on(faults.load()["path-of-a-file-is-followed"]):
        report = conformance.judge(bundled(), profile="quick", robustness=True)
    assert report.to_dict()["options"]["robustness"]
    assert report.failures == ()
    assert report.robustness is not None
    assert 0 < report.robustness.held < report.robustness.of
    (unmet,) = report.robustness.unmet
    assert (unmet.requirement, {row.check for row in unmet.rows}) == ("ROBUST-PATH", {ODD_NAMES})
    expect_valid(report.to_dict())


def test_a_broken_app_is_nonconformant(broken: conformance.Report) -> None:
    assert broken.verdict == "nonconformant"
    assert not broken.passed
    expect_valid(broken.to_dict())
    failure = broken.failures[0]
    assert (failure.requirement, failure.level) == ("BIN-ORDER-O", "MUST")
    assert failure.statement.startswith("The binary data of an answer follow the order")
    assert failure.explain == "oip-conformance explain BIN-ORDER-O"
    assert broken.why[0] == f"{sum(len(one.rows) for one in broken.failures)} rows failed"
    assert re.fullmatch(LEFT_OUT, broken.why[1])
    row = failure.rows[0]
    assert row.label == f"{row.check} [{row.row}]"
    assert (row.sent.startswith("POST /v2/models/multi/infer"), "curl" in row.repeat) == (True, True)


def test_what_a_report_says_is_short_and_to_the_point(broken: conformance.Report) -> None:
    lines = str(broken).splitlines()
    assert " is nonconformant: " in lines[0]
    assert lines[1].startswith("MUST BIN-ORDER-O: The binary data of an answer follow")
    assert lines[2].startswith(f"    {broken.failures[0].rows[0].label}: expected ")
    assert lines[-1] == f"    {broken.failures[-1].explain}"
    assert repr(broken).endswith("; not met: BIN-ORDER-O>")
    assert len(repr(broken)) < 240  # what pytest shows of a value


@pytest.mark.parametrize("suffix", formats.FORMATS)
def test_a_report_is_written_in_every_format(tmp_path: Path, broken: conformance.Report, suffix: str) -> None:
    broken.write(tmp_path / f"r{suffix}")
    text = (tmp_path / f"r{suffix}").read_text()
    assert "nonconformant" in text
    with pytest.raises(conformance.JudgeError, match=r"r\.txt: unknown suffix .\.txt., known are"):
        broken.write("r.txt")


def test_a_copy_of_the_report_is_its_own(broken: conformance.Report) -> None:
    broken.to_dict()["rows"].clear()
    assert broken.failures


def test_an_app_that_offers_nothing_is_incomplete() -> None:
    report = conformance.judge(offering_nothing())
    assert report.verdict == "incomplete"
    assert not report.passed
    assert "serves none of the suite's model roles" in str(report)
    assert str(report).endswith('to judge one, name it with models=["NAME"]')
    assert not report.to_dict()["footer"]["complete"]


def test_advice_is_no_failure_unless_it_is_asked_for() -> None:
    with faults.switch_on(faults.load()["header-of-zero-without-binary-data"]):
        lenient, strict = (conformance.judge(bundled(), profile="quick", strict=strict) for strict in (False, True))
    assert (lenient.verdict, strict.verdict) == ("partial", "nonconformant")
    assert [entry.requirement for entry in lenient.advice] == [entry.requirement for entry in strict.failures]
    assert lenient.advice[0].level == "SHOULD"


def test_a_url_is_judged_as_pytest_judges_it(tmp_path: Path, small: str) -> None:
    (tmp_path / "t.toml").write_text(f'url = "{small}"\nnever = ["metadata.*"]\n[roles]\nmulti = "multi"\n')
    named, configured = (
        conformance.judge(small, profile="quick", headers={"X-Key": "s3cret-value"}),
        conformance.judge(config=tmp_path / "t.toml", profile="quick"),
    )
    assert named.verdict == "partial", str(named)
    assert named.to_dict()["options"]["headers"] == ["X-Key"]
    assert "s3cret-value" not in json.dumps(named.to_dict())
    assert configured.verdict == "incomplete"
    assert "rows not run" in configured.why[0]


def test_the_protocol_is_judged_alone_where_it_is_asked_for() -> None:
    report = conformance.judge(bundled(), extensions=["protocol"], profile="quick")
    assert report.verdict == "partial", str(report)
    offered = {name for name, entry in report.to_dict()["extensions"].items() if entry["offered"]}
    assert offered == {"protocol"}


def test_a_server_that_is_not_there_raises_nothing() -> None:
    report = conformance.judge("http://127.0.0.1:9", timeout=0.5)
    assert (report.verdict, report.failures) == ("incomplete", ())
    assert "cannot connect" in report.why[0]


# --- serving ---------------------------------------------------------------------------------------------------------


def test_the_lifespan_of_an_app_is_carried_out_and_nothing_is_left_behind() -> None:
    seen: list[str] = []

    @asynccontextmanager
    async def lifespan(_: Starlette) -> Any:
        seen.append("start")
        yield
        seen.append("stop")

    app = offering_nothing()
    app.router.lifespan_context = lifespan
    threads, disabled = set(threading.enumerate()), logging.getLogger("uvicorn.access").disabled
    assert conformance.judge(app).verdict == "incomplete"
    assert seen == ["start", "stop"]
    assert set(threading.enumerate()) <= threads
    assert logging.getLogger("uvicorn.access").disabled == disabled


def test_an_app_that_does_not_start_is_one_line() -> None:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> Any:
        raise RuntimeError("no such \x1b model folder")
        yield

    app = offering_nothing()
    app.router.lifespan_context = lifespan
    with pytest.raises(conformance.JudgeError) as raised:
        conformance.judge(app)
    assert str(raised.value) == "the app does not start: RuntimeError: no such \\x1b model folder"


# --- arguments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "arguments", "message"),
    [
        (None, {}, "nothing to judge: give a URL, an ASGI app, or grpc"),
        (3, {}, "a target is a URL or an ASGI app, called with scope, receive and send; not int"),
        (lambda environ, start: None, {}, "a target is a URL or an ASGI app, called with"),  # noqa: ARG005
        ("ftp://x", {}, "--target-url 'ftp://x' is not an http or https URL"),
        ("http://x", {"profile": "explore"}, "profile 'explore': give one of certify, quick"),
        ("http://x", {"models": "multi"}, "models: give a list of names, not 'multi'"),
        ("http://x", {"extensions": ["gzip"]}, "extensions: unknown 'gzip'; give one of binary_tensor_data, raw"),
        ("http://x", {"extensions": ["classification_grpc"]}, "extensions: classification_grpc needs grpc='host:port'"),
        ("http://x", {"headers": {"a b": "c"}}, "--target-header: write it as 'Name: value'"),
        ("http://x", {"timeout": 0}, "--target-timeout 0: give seconds between 0 and 3600"),
        ("http://x", {"config": "gone.toml"}, "--target-config gone.toml: No such file or directory"),
        (None, {"grpc": "nowhere"}, "--target-grpc 'nowhere' is not an address"),
    ],
)
def test_what_cannot_be_used_is_one_line(target: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(conformance.JudgeError) as raised:
        conformance.judge(target, **arguments)
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


def test_the_package_has_what_it_declares_and_no_more() -> None:
    assert {name: getattr(conformance, name).__name__ for name in ("judge", "Report")} == {
        "judge": "judge",
        "Report": "Report",
    }
    with pytest.raises(AttributeError, match="module 'conformance' has no attribute 'no_such'"):
        conformance.no_such  # type: ignore[attr-defined]  # noqa: B018
