"""What a server withstands is asked only where it is asked for, and weighs nothing: neither verdict nor exit status."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from conformance import checks
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.judging.selection import ROLES, Subjects, list_profile_rows
from conformance.judging.session import Session
from conformance.spec import ledger
from conformance.spec.check import Case, list_rows
from conformance.spec.extensions import EXTENSIONS, ROBUSTNESS, TRANSPORTS
from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult
from conformance.transport import settings
from conformance.transport.target import Target
from reference_server.limits import Limits
from tests.support.servers import judge
from tests.support.sightings import Server, run_server
from tests.support.tables import on_each, row_name

CASES = list_rows(checks.list_area_checks(ROBUSTNESS))
# What takes the bundled server, or the making of the request, more than a moment.
SLOW = {
    *("1-GiB-of-blanks", "1-GiB-of-blanks-packed-twice", "60-MiB-of-empty-arrays", "3-MiB-of-empty-arrays"),
    *("100000-inputs", "100000-outputs", "1-MiB-of-empty-objects"),
    *("chunk-extensions-without-number", "trailer", "trailers-without-number"),
}
TIMEOUT = 4.0  # seconds that no honest answer comes near


def judged(url: str, cases: Sequence[Case], *, strict: bool = False, timeout: float = TIMEOUT) -> list[CheckResult]:
    """Return the results of rows against a server, in one session."""
    roles = ("identity_int32", "identity_uint8", "rank2")
    discovery_result = DiscoveryResult(offered=dict.fromkeys(EXTENSIONS, ""), roles={name: name for name in roles})
    with Session(Target(settings.make_settings(url, timeout=timeout)), discovery_result, strict=strict) as session:
        return [session.judge(case) for case in cases]


def case_of(check: str, row: str) -> Case:
    return next(case for case in CASES if (case[0].id, case[1].id) == (f"robustness.{check}", row))


# --- apart -----------------------------------------------------------------------------------------------------------


def test_robustness_rows_are_collected_only_on_request() -> None:
    for subjects in (ROLES, Subjects(("some",), with_roles=False)):
        found = list_profile_rows("explore", dangerous=True, subjects=subjects, transports=TRANSPORTS)
        assert ROBUSTNESS not in {check.area for check, _ in found}
    asked = list_profile_rows("explore", dangerous=True, subjects=Subjects(robustness=True), transports=TRANSPORTS)
    assert [case for case in asked if case[0].area == ROBUSTNESS] == CASES
    assert asked[-len(CASES) :] == CASES


@on_each(CASES, row_name)
def test_row_covers_one_robustness_requirement(case: Case) -> None:
    assert [ledger.get_requirement(name).is_of_robustness for name in case.requirements] == [True]


ENDED = (
    "shape-2-to-the-62-by-0",
    "2-to-the-32-classes",
    "arrays-100000-deep",
    "1-GiB-of-blanks",
    "60-MiB-of-empty-arrays",
)


@pytest.mark.parametrize("name", ENDED)
def test_what_is_known_to_end_servers_is_dangerous(name: str) -> None:
    found = [row for _, row in CASES if row.id.removesuffix("-in-binary") == name]
    assert any(row.dangerous for row in found)
    assert not any(row.dangerous != found[0].dangerous for row in found if row.role != "rank2")


# --- the bundled server withstands it -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with run_server(Limits(wait_seconds=0.5)) as started:
        yield started


@on_each(
    [case for case in CASES if not case[0].is_over_grpc and case[1].id not in SLOW and case[1].role in (None, "rank2")],
    row_name,
)
def test_bundled_server_passes_robustness_row(case: Case, *, server: Server) -> None:
    (result,) = judged(server.url, [case])
    assert (result.outcome, result.message) == (Outcome.PASS, "")


# --- a server that does not ------------------------------------------------------------------------------------------

GOOD = b'{"model_name":"identity_int32","outputs":[{"name":"OUTPUT","datatype":"INT32","shape":%b,"data":%b}]}'


def answered(request: bytes) -> bytes | None:
    """Return the right answer to a plain request; None where it is none."""
    try:
        tensor = json.loads(request.partition(b"\r\n\r\n")[2])["inputs"][0]
    except (ValueError, LookupError):
        return None
    body = GOOD % (json.dumps(tensor["shape"]).encode(), json.dumps(tensor["data"]).encode())
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


Otherwise = Callable[[socket.socket, socket.socket], None]


def hangs(_: socket.socket, connection: socket.socket) -> None:
    connection.settimeout(None)
    while connection.recv(1 << 16):
        pass


def dies(listener: socket.socket, connection: socket.socket) -> None:
    listener.close()
    connection.close()


def takes_it(_: socket.socket, connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")


def refuses(_: socket.socket, connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")


def closes(_: socket.socket, __: socket.socket) -> None:
    """Say nothing."""


@contextmanager
def serving_but(otherwise: Otherwise) -> Iterator[str]:
    """Serve plain requests, one connection each, and meet all others in a way of its own; yields the URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_serve, args=(listener, otherwise), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)


def _whole(connection: socket.socket) -> bytes:
    """Return a request; of one whose head gives no length, what comes first."""
    request = connection.recv(1 << 16)
    found = re.search(rb"Content-Length: ([0-9]+)\r\n(?s:.*)\r\n\r\n", request)
    while found and len(request) < found.end() + int(found[1]) and (more := connection.recv(1 << 16)):
        request += more
    return request


def _serve(listener: socket.socket, otherwise: Otherwise) -> None:
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                connection.settimeout(1)
                request = _whole(connection)
                answer = answered(request)
                if answer is None:
                    otherwise(listener, connection)
                else:
                    connection.sendall(answer)


CUT = case_of("cut-request-is-not-carried-out", "inside-the-json")
NAME = case_of("odd-name-leads-nowhere", "half-an-escape")
HEADER = case_of("chunk-size-is-a-number", "of-letters")


@pytest.mark.parametrize(
    ("otherwise", "outcome", "said"),
    [
        (refuses, Outcome.PASS, ""),
        (closes, Outcome.PASS, ""),
        (takes_it, Outcome.ADVISORY, "HTTP 200"),
        (hangs, Outcome.ADVISORY, "no answer within 1.5 s"),
        (dies, Outcome.ADVISORY, "the server died: "),
    ],
)
@pytest.mark.parametrize("strict", [False, True])
def test_unmet_robustness_is_advice(otherwise: Otherwise, outcome: Outcome, said: str, strict: bool) -> None:
    with serving_but(otherwise) as url:
        (result,) = judged(url, [HEADER], strict=strict, timeout=1)
    assert result.outcome is outcome
    assert said in result.message
    assert result.failure is None or result.failure.requirement == "ROBUST-CHUNK-SIZE"
    assert result.failure is None or result.failure.repeat == ""


def test_row_after_crash_is_error_that_names_the_crash() -> None:
    with serving_but(dies) as url:
        first, second = judged(url, [HEADER, CUT], timeout=1)
    assert first.failure is not None
    assert second.outcome is Outcome.ERROR
    assert "since robustness.chunk-size-is-a-number [of-letters]" in second.message


def test_a_server_that_answers_no_plain_request_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.answered", lambda _: None)
    with serving_but(refuses) as url:
        (result,) = judged(url, [NAME])
    assert result.outcome is Outcome.BLOCKED


# --- a whole run -----------------------------------------------------------------------------------------------------

SHORT = ("--target-url=reference", "--target-extension=raw", "--target-timeout=3", "-q")
SELECTED = ("-k", "robustness.reset-harms-nobody or metadata.server-metadata-is-an-object or odd-name-leads-nowhere")


def test_report_has_robustness_apart_from_verdict(tmp_path: Path) -> None:
    arguments = (*SHORT, *SELECTED, "--conformance-robustness")
    names = ("r.json", "r.html", "r.md")
    done = judge(tmp_path, *arguments, *[f"--conformance-report={name}" for name in names])
    report: dict[str, Any] = json.loads((tmp_path / "r.json").read_text())
    assert (report["robustness"]["held"], report["robustness"]["of"]) == (16, 16)
    assert {check["area"] for check in report["robustness"]["rows"]} == {"robustness"}
    assert "robustness" not in {check["area"] for check in report["rows"]}
    assert not [entry for entry in report["requirements"] if entry["id"].startswith("ROBUST")]
    assert report["options"]["robustness"] is True
    assert "robustness: 16 of 16 rows passed" in done.stdout
    for name in names[1:]:
        assert "16 of 16 rows passed" in (tmp_path / name).read_text()
