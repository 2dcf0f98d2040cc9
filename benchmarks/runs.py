"""Whole runs of the suite, against the bundled server in a process of its own."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from shutil import which

import httpx

from benchmarks import sent_again
from benchmarks.children import PYTEST, SUITE, bundled, folder, run
from benchmarks.delay import delayed
from benchmarks.ratio import CannotMeasureError, Measured, benchmark, in_turns, seconds
from conformance.transport import settings
from conformance.transport.http_client import HttpClient
from conformance.wire.request import Message
from tests.support.programs import read_line, start_program

WHO = ("--vendor=X", "--product=X", "--product-version=1", "--contact=x@example.org")
LATENCY = 0.05
HANG_S = 12.0  # longer than the timeout of a run
QUIET = ("-q", "-p", "no:cacheprovider")
OPENAPI = Path(__file__).with_name("openapi.json")


def _certify(url: str, into: Path) -> tuple[float, list[Message]]:
    """Certify a server; return the seconds that this took, and the requests over HTTP in their order."""
    took, _ = run(*SUITE, "certify", "--self-test", f"--target-url={url}", *WHO, "-o", "certified", folder=into)
    return took, sent_again.messages(into / "certified")


def _send_with_httpx(url: str, messages: Sequence[Message]) -> None:
    with httpx.Client(trust_env=False) as client:
        for one in messages:
            client.request(one.method, url + one.path, headers=one.headers, content=one.body or None)


def _send_with_the_client(url: str, messages: Sequence[Message]) -> None:
    with closing(HttpClient(settings.make_settings(url))) as client:
        for one in messages:
            client.send(one)


@benchmark("certify", "a whole certify run, start to last report", "its own requests sent by httpx", reach=1.0)
def certify() -> Measured:
    """Every request goes out again, in the order of the run; what they answer is read and not looked at."""
    with bundled() as server, folder() as into:
        ours, messages = _certify(server.url, into)
        theirs = seconds(lambda: _send_with_httpx(server.url, messages))
    return Measured(ours, theirs, remarks=f"{len(messages)} requests")


@benchmark("client", "CPU time of the client for the requests of a certify run", "that of httpx", reach=0.18)
def client() -> Measured:
    """Of this process alone, without the server; nothing is judged."""
    with bundled() as server, folder() as into:
        _, messages = _certify(server.url, into)
        return in_turns(
            lambda: _send_with_the_client(server.url, messages),
            lambda: _send_with_httpx(server.url, messages),
            runs=2,
            clock=time.process_time,
            remarks=f"{len(messages)} requests",
        )


def _hanging(kind: str, *, grpc: bool) -> Measured:
    """Measure a run against a server that hangs at one kind of request, and one against an honest server."""
    options = ["--port", "0", *(["--grpc-port", "0"] if grpc else [])]
    slow = [sys.executable, "-m", "tests.support.slow_server", kind, str(HANG_S), *options]
    with bundled(grpc=grpc) as server, start_program(slow) as process, folder() as into:
        honest_options = (f"--target-url={server.url}", *([f"--target-grpc={server.grpc}"] if grpc else []))
        url, line = read_line(process), read_line(process) if grpc else ""
        slow_options = (f"--target-url={url}", *([f"--target-grpc={line.removeprefix('grpc ')}"] if grpc else []))
        theirs, _ = run(*PYTEST, *QUIET, *honest_options, folder=into)
        ours, said = run(*PYTEST, *QUIET, *slow_options, folder=into, succeeds=False)
    return Measured(ours, theirs, remarks=next((one for one in said.splitlines() if "waited" in one), ""))


@benchmark("hang-http", "a server that hangs at answers in gzip", "an honest server", reach=3)
def hang_over_http() -> Measured:
    """Each whole certify profile over HTTP."""
    return _hanging("gzip", grpc=False)


@benchmark("hang-grpc", "a server that hangs at empty tensors, over both transports", "an honest server", reach=3)
def hang_over_grpc() -> Measured:
    """Each whole certify profile over both transports."""
    return _hanging("empty", grpc=True)


@benchmark("latency-50ms", "a run with 50 ms of latency", "its requests times the latency", reach=1 / 10)
def latency() -> Measured:
    """A proxy holds each answer back, in a whole run."""
    with bundled() as server, delayed(server.url, LATENCY) as url, folder() as into:
        report = into / "report.json"
        ours, _ = run(*PYTEST, *QUIET, f"--target-url={url}", f"--conformance-report={report}", folder=into)
        requests = _requests(report)
    return Measured(ours, requests * LATENCY, remarks=f"{requests} requests")


@benchmark("two-processes", "one process, the whole run", "two processes", reach=1.7, more_is_better=True)
def two_processes() -> Measured:
    """The ratio is how many times faster two are."""
    with bundled() as server, folder() as into:
        options = (*PYTEST, *QUIET, f"--target-url={server.url}")
        one, _ = run(*options, "-n", "0", folder=into)
        two, _ = run(*options, "-n", "2", folder=into)
    return Measured(one, two)


@benchmark(
    "requests-per-second",
    "requests judged per second",
    "requests judged per second by schemathesis",
    reach=20,
    more_is_better=True,
)
def requests_per_second() -> Measured:
    """Both from the command to its end. Schemathesis is given an OpenAPI description of the same endpoints."""
    program = which("schemathesis") or which("schemathesis", path=str(Path(sys.executable).parent))
    if program is None:
        raise CannotMeasureError("schemathesis is not here: pip install schemathesis, wherever PATH finds it")
    with bundled() as server, folder() as into:
        report = into / "report.json"
        options = (f"--target-url={server.url}", "--conformance-profile=quick", f"--conformance-report={report}")
        ours, _ = run(*PYTEST, *QUIET, *options, folder=into)
        requests = _requests(report)
        harvest = ("--report=ndjson", "--report-ndjson-path=theirs.ndjson", "--max-examples=200", "--seed=1")
        theirs, _ = run(
            program, "run", str(OPENAPI), "--url", server.url, "--continue-on-failure", *harvest,
            folder=into, succeeds=False,
        )  # fmt: skip
        judged = (into / "theirs.ndjson").read_text().count('"response":{')
        if not judged:
            raise CannotMeasureError("this schemathesis writes another report than 4.x")
    return Measured(requests / ours, judged / theirs, "1/s")


def _requests(report: Path) -> int:
    """Return how many requests were sent for the rows of a report."""
    return sum(len(row["exchanges"]) for row in json.loads(report.read_text())["rows"])
