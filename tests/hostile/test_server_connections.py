"""Many connections, few descriptors, and the end of the server in the middle of all."""

from __future__ import annotations

import argparse
import asyncio
import signal
import socket
import struct
import subprocess
import sys
import time
from contextlib import ExitStack
from http import HTTPStatus
from typing import Any, cast

import pytest

from reference_server import limits
from reference_server.http_protocol import StallTimer
from tests.support.programs import read_line, start_program
from tests.support.serving import Server, make_infer_request, read_answer, run_server

GOOD = make_infer_request("identity_int32", b'{"inputs":[{"name":"INPUT","shape":[1],"datatype":"INT32","data":[7]}]}')
CUTS = (0, 40, -71, -10)  # nothing; half a head; a head; half a body


def slow(server: Server, count: int, stack: ExitStack) -> list[socket.socket]:
    """Open connections that each stop somewhere in a request."""
    opened = [stack.enter_context(socket.create_connection(server.address, 10)) for _ in range(count)]
    for number, connection in enumerate(opened):
        connection.sendall(GOOD[: CUTS[number % len(CUTS)]])
    return opened


def status_with_room(server: Server) -> int:
    """Return the status of an answer by a server that was full: it may not have seen yet who has left it."""
    until = time.monotonic() + 10
    while (status := server.exchange(GOOD).status) == HTTPStatus.SERVICE_UNAVAILABLE and time.monotonic() < until:
        time.sleep(0.01)
    return status


def test_a_connection_too_many_is_refused_and_room_is_made_again() -> None:
    with run_server("--max-connections", "5") as server:
        with ExitStack() as stack:
            slow(server, 5, stack)
            with server.connection() as more:
                answer = read_answer(more)
            assert (answer.status, answer.headers["connection"]) == (503, "close")
        assert status_with_room(server) == 200


def test_out_of_descriptors_is_one_line_and_serving_goes_on() -> None:
    limited = "import resource, runpy; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64));"
    command = [
        sys.executable,
        "-c",
        f"{limited} runpy.run_module('reference_server', run_name='__main__')",
        "--port",
        "0",
    ]
    with start_program(command, stderr=subprocess.PIPE) as process:
        server = Server(read_line(process), process)
        with ExitStack() as stack:
            for _ in range(200):
                stack.enter_context(socket.create_connection(server.address, 10))
        assert status_with_room(server) == 200
        process.terminate()
        _, said = process.communicate(timeout=10)
    assert (process.returncode, len(said.splitlines()) <= 1, "Traceback" in said) == (0, True, False)


def test_clients_that_reset_their_connections_are_not_worth_a_line() -> None:
    large = make_infer_request("identity_fp32", bytes(16_000_000), "0")
    with run_server() as server:
        for _ in range(10):
            with socket.create_connection(server.address, 10) as connection:
                connection.sendall(large)
                assert connection.recv(1)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # RST
        assert server.exchange(GOOD).status == 200
        server.process.terminate()
        assert server.process.communicate(timeout=10)[1] == ""


@pytest.mark.parametrize("numbers", [[signal.SIGTERM], [signal.SIGINT, signal.SIGINT]], ids=["once", "twice"])
def test_the_end_is_quiet_whatever_is_in_flight(numbers: list[signal.Signals]) -> None:
    count = 1_000_000
    body = b'{"inputs":[{"name":"INPUT","shape":[%d],"datatype":"FP32","data":[%b0]}]}' % (
        count,
        b"0.25," * (count - 1),
    )
    with run_server() as server, ExitStack() as stack:
        slow(server, 100, stack)
        stack.enter_context(server.connection()).sendall(make_infer_request("identity_fp32", body))
        unread = stack.enter_context(server.connection())
        unread.sendall(make_infer_request("identity_uint8", bytes(20_000_000), "0"))
        assert server.exchange(GOOD).status == 200
        for number in numbers:
            server.process.send_signal(number)
        out, said = server.process.communicate(timeout=10)
    assert (server.process.returncode, out, said) == (0, "", "")


@pytest.mark.parametrize("option", ["--max-connections=0", "--max-json=-1", "--patience=nan", "--max-elements=x"])
def test_invalid_limit_is_one_line_usage_error(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    limits.add_options(parser)
    with pytest.raises(SystemExit) as ended:
        parser.parse_args([option])
    name, _, value = option.partition("=")
    said = capsys.readouterr().err.splitlines()[-1]
    assert (ended.value.code, name in said, value in said) == (2, True, True)


@pytest.mark.parametrize("count", [1, 100_000])
def test_a_client_that_sends_no_more_gets_its_answer(count: int) -> None:
    body = b'{"inputs":[{"name":"INPUT","shape":[%d],"datatype":"INT32","data":[%b0]}]}' % (count, b"1," * (count - 1))
    with run_server() as server, server.connection() as connection:
        connection.sendall(make_infer_request("identity_int32", body))
        connection.shutdown(socket.SHUT_WR)
        assert read_answer(connection).status == 200


class Answers:
    """A connection of which so many bytes wait to be sent, one after the other."""

    def __init__(self, *waiting: int) -> None:
        self.waiting = list(waiting)
        self.is_aborted = False

    def get_write_buffer_size(self) -> int:
        return self.waiting.pop(0)

    def abort(self) -> None:
        self.is_aborted = True


def test_stalled_client_is_disconnected() -> None:
    async def watch() -> tuple[bool, list[int]]:
        answers = Answers(9, 5, 1, 1, 1)
        StallTimer(cast(Any, answers), asyncio.get_running_loop(), 0.0)
        while not answers.is_aborted:
            await asyncio.sleep(0)
        return answers.is_aborted, answers.waiting

    assert asyncio.run(watch()) == (True, [1])
