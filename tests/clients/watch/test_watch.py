"""`oip-conformance client watch` as a user runs it: verdicts, exit statuses, and how it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from conformance.commands.main import main
from conformance.commands.watch_waiting import Interruption, WatchEnd, wait_until_idle
from conformance.report.report_file import read
from tests.clients.watch.programs import GOOD, TRITON, WRONG_LENGTH, WRONG_TYPE, make_bare_client, make_program
from tests.support.bare_requests import TIMEOUT, make_request, read_to_end
from tests.support.programs import read_line, start_program
from tests.support.scripted_server import serve_scripts
from tests.support.servers import reserve_closed_port

LENGTH = "CLIENT-SENDS-HEADER-LENGTH"
FREE = ("--port", "0")


def watch(*arguments: str, command: Sequence[str] = ()) -> int:
    return main(["client", "watch", *FREE, *arguments, *(["--", *command] if command else [])])


def test_of_tritonclient_nothing_fails_over_http_and_grpc(capsys: pytest.CaptureFixture[str]) -> None:
    assert watch("--grpc-port", "0", command=TRITON) == 0
    shown = capsys.readouterr().out
    assert re.search(r"What 2 clients sent is partial: (\d+) of \d+ MUSTs met, none failed, \d+ not judged\n?", shown)
    assert "requests 2 over HTTP" in shown
    assert "requests 2 over gRPC; all met" in shown


def test_a_wrong_client_is_named_and_another_is_not(capsys: pytest.CaptureFixture[str], upstream: str) -> None:
    assert watch("--upstream", upstream, command=make_bare_client(GOOD, WRONG_LENGTH, WRONG_LENGTH, GOOD)) == 1
    shown = capsys.readouterr().out
    assert shown.count(f"request 2 of bad/2.0 does not meet {LENGTH} (MUST): expected ") == 1
    assert "good/1.0: requests 2 over HTTP; all met" in shown
    assert f"1. {LENGTH}  MUST  not met in 1 of 2 rows" in shown
    assert "client.watched-header-counts-the-json [bad/2.0]" in shown
    assert "Rerun" not in shown
    assert shown.rstrip().splitlines()[-1].startswith("What 2 clients sent is nonconformant")


@pytest.mark.parametrize(
    ("requests", "own", "expected"),
    [
        ([GOOD], 0, 0),
        ([GOOD], 3, 3),
        ([WRONG_LENGTH], 0, 1),
        ([WRONG_LENGTH], 3, 3),
        ([], 0, 6),
        ([], 5, 5),
        ([WRONG_TYPE], 0, 0),
    ],
)
def test_the_exit_status_is_that_of_the_command_where_it_is_not_0(
    requests: list[str], own: int, expected: int, upstream: str
) -> None:
    assert watch("--upstream", upstream, command=make_bare_client(*requests, status=own)) == expected


def test_a_should_that_is_not_met_is_advice(capsys: pytest.CaptureFixture[str], upstream: str) -> None:
    assert watch("--upstream", upstream, command=make_bare_client(WRONG_TYPE)) == 0
    shown = capsys.readouterr().out
    assert "advice on request 1 of plain/3.0, by CLIENT-SENDS-CONTENT-TYPE (SHOULD): expected " in shown
    assert "plain/3.0: requests 1 over HTTP; 1 requirement advised" in shown
    assert "not used" in shown


def test_advice_fails_where_that_is_asked_for(capsys: pytest.CaptureFixture[str], upstream: str) -> None:
    assert watch("--upstream", upstream, "--conformance-strict", command=make_bare_client(WRONG_TYPE)) == 1
    shown = capsys.readouterr().out
    assert "request 1 of plain/3.0 does not meet CLIENT-SENDS-CONTENT-TYPE (SHOULD): expected " in shown
    assert "plain/3.0: requests 1 over HTTP; 1 requirement not met" in shown


def test_a_command_that_a_signal_ends_has_the_status_of_a_shell(upstream: str) -> None:
    killed = make_program("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert watch("--upstream", upstream, command=killed) == 128 + signal.SIGKILL


def test_a_header_may_name_clients(capsys: pytest.CaptureFixture[str], upstream: str) -> None:
    named = 'request(JSON_PART + TENSOR, "X-Job: nightly")'
    assert watch("--upstream", upstream, "--client-header", "x-job", command=make_bare_client(named, GOOD)) == 0
    shown = capsys.readouterr().out
    assert "nightly: requests 1" in shown
    assert "unnamed: requests 1" in shown


def test_the_path_of_a_server_is_told_to_the_client(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    told = make_program(f"import os, pathlib; pathlib.Path({str(seen)!r}).write_text(os.environ['OIP_TARGET_URL'])")
    with serve_scripts(lambda _: None) as url:
        assert watch("--upstream", f"{url}/base/", command=told) == 6
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/base", seen.read_text())


def test_a_pytest_of_the_command_takes_no_address_for_a_server_to_judge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], upstream: str
) -> None:
    (tmp_path / "test_own.py").write_text("def test_own():\n    pass\n")
    own = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    assert watch("--upstream", upstream, command=own) == 6
    assert "no inference request came" in capsys.readouterr().out


def test_only_addresses_of_this_watch_reach_the_command(monkeypatch: pytest.MonkeyPatch, upstream: str) -> None:
    monkeypatch.setenv("OIP_TARGET_GRPC", "elsewhere:1")
    absent = make_program("import os, sys; sys.exit(9 * ('OIP_TARGET_GRPC' in os.environ))")
    assert watch("--upstream", upstream, command=absent) == 6


def test_requests_are_judged_if_server_is_unreachable(capsys: pytest.CaptureFixture[str]) -> None:
    trying = make_bare_client(WRONG_LENGTH)
    with reserve_closed_port() as port:
        url = f"http://127.0.0.1:{port}"
        assert watch("--upstream", url, command=trying) == 1
    shown = capsys.readouterr().out
    assert f"{url} cannot be reached: " in shown
    assert f"does not meet {LENGTH}" in shown


def test_a_server_that_is_silent_holds_up_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    def silent(connection: socket.socket) -> None:
        read_to_end(connection)

    with serve_scripts(silent) as url:
        assert watch("--upstream", url, command=make_bare_client(GOOD)) == 0
    assert "What good/1.0 sent is partial: " in capsys.readouterr().out


# --- ends -------------------------------------------------------------------------------------------------------------


def test_it_ends_after_a_time_or_when_nothing_comes(upstream: str, capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--for", "--until-idle"):
        assert watch("--upstream", upstream, option, "0.1") == 6
        assert "incomplete: no inference request came" in capsys.readouterr().out


def test_open_request_prevents_idle_end() -> None:
    waiting = iter([True, True, False])
    assert wait_until_idle(0.001, lambda: time.monotonic() - 1, lambda: next(waiting), Interruption()) == WatchEnd()
    assert list(waiting) == []
    interrupted = Interruption()
    interrupted.set()
    assert wait_until_idle(0.001, time.monotonic, lambda: False, interrupted).stopped == "interrupted"


@contextmanager
def watching(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start a watch; yields the process, and the port where it listens."""
    heeding = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    text = f"{heeding}from conformance.commands.main import main; sys.exit(main())"
    command = [sys.executable, "-c", text, "client", "watch", *FREE, *arguments]
    with start_program(command, stderr=subprocess.STDOUT) as process:
        line = read_line(process)
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        assert found, line
        yield process, int(found[1])


def send(port: int, octets: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), TIMEOUT) as connection:
        connection.sendall(octets)
        connection.shutdown(socket.SHUT_WR)
        return read_to_end(connection)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_without_an_end_of_its_own_a_signal_is_the_end_and_the_verdict_counts(
    number: signal.Signals, upstream: str
) -> None:
    with watching("--upstream", upstream) as (process, port):
        assert send(port, make_request()).startswith(b"HTTP/1.1 200")
        process.send_signal(number)
        shown, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "What unnamed sent is partial: " in shown


def test_a_signal_before_the_end_makes_it_incomplete(upstream: str, tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    with watching("--upstream", upstream, "--for", "600", f"--conformance-report={file}") as (process, port):
        send(port, make_request())
        process.send_signal(signal.SIGINT)
        shown, _ = process.communicate(timeout=60)
    assert process.returncode == 6
    assert "is incomplete: interrupted" in shown
    assert read(file)["extensions"]["protocol"]["verdict"] == "incomplete"


def test_a_signal_ends_the_command_and_what_came_is_judged(upstream: str) -> None:
    script = make_bare_client(GOOD)[2].replace(
        "sys.exit(0)", "print('ready', flush=True); import time; time.sleep(600)"
    )
    with watching("--upstream", upstream, "--", sys.executable, "-c", script) as (process, _):
        assert process.stdout is not None
        while "ready" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGTERM)
        shown, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "is incomplete: interrupted" in shown
    assert "good/1.0: requests 1 over HTTP" in shown


# --- what cannot be used ----------------------------------------------------------------------------------------------

REFUSED = {
    "a port that is none": (["--port", "70000"], "--port 70000"),
    "no time": (["--for", "0"], "--for 0"),
    "endless time": (["--until-idle", "inf"], "--until-idle inf"),
    "no URL": (["--upstream", "host:8000"], "--upstream 'host:8000' is not an http or https URL"),
    "credentials in the URL": (["--upstream", "http://a:b@host"], "--upstream must contain no user and password"),
    "no address": (["--upstream-grpc", "host"], "--upstream-grpc 'host' is not an address"),
    "gRPC without its server": (["--upstream", "http://h", "--grpc-port", "1"], "--grpc-port needs --upstream-grpc"),
    "HTTP without its server": (["--upstream-grpc", "h:1", "--port", "1"], "--port needs --upstream"),
    "a header with a credential": (["--client-header", "Authorization"], "carries a credential"),
    "an unknown report": (["--conformance-report", "a.txt"], "unknown suffix '.txt'"),
    "no folder": (["--conformance-report", "nowhere/a.json"], "no folder"),
    "no baseline": (["--conformance-baseline", "nowhere.toml"], "No such file"),
    "an update of nothing": (["--conformance-update-baseline"], "needs --conformance-baseline FILE"),
    "no certificates": (["--upstream", "https://h", "--upstream-ca", "nowhere.pem"], "nowhere.pem: no such file"),
    "nothing behind the dashes": (["--for", "1", "--"], "give a command after --"),
    "two ends": (["--for", "1", "--", "true"], "cannot be combined with a command"),
    "no such command": (
        ["--port", "0", "--grpc-port", "0", "--", "nowhere-to-be-found"],
        "cannot run nowhere-to-be-found",
    ),
}


@pytest.mark.parametrize(("arguments", "expected"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_used_is_one_line(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["client", "watch", *arguments]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("oip-conformance: error: ")
    assert expected in errors
    assert errors.count("\n") == 1


def test_a_port_that_is_taken_is_one_line(upstream: str, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["client", "watch", "--upstream", upstream, "--port", port]) == 2
    errors = capsys.readouterr().err
    assert f"cannot listen at 127.0.0.1:{port}: {os.strerror(98)}" in errors
    assert errors.count("\n") == 1


def test_without_packages_for_grpc_http_alone_is_watched(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tritonclient.grpc", None)
    assert watch(command=make_bare_client(GOOD)) == 0
    assert "grpc://" not in capsys.readouterr().out
    assert watch("--grpc-port", "0", command=make_bare_client(GOOD)) == 4
    assert "--grpc-port needs the extra grpc: pip install" in capsys.readouterr().err


def test_help_says_what_the_exit_status_means(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["client", "watch", "--help"])
    shown = capsys.readouterr().out
    assert "If it fails, its exit status is that of the watch" in shown
    assert "OIP_TARGET_URL and OIP_TARGET_GRPC" in shown
