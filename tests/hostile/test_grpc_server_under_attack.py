"""The bundled server over gRPC as people leave it running: what a call may cost it is limited, and others go on."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from tritonclient.grpc import service_pb2

from conformance.transport.grpc_connection import GrpcConnection
from conformance.transport.grpc_stream import Stream
from conformance.transport.settings import make_settings
from reference_server import grpc_server, workers
from tests.support import programs
from tests.support.grpc_serving import PATH, connect
from tests.support.http2_frames import END_HEADERS, HEADERS, PING, PREFACE_OCTETS, SETTINGS, add_prefix, block, frame

LIMITS = ("--max-elements", "100000", "--max-json", "1000000", "--max-entries", "100", "--max-head", "8000")
CALL = (
    *((":method", "POST"), (":scheme", "http"), (":path", f"{PATH}ServerLive"), (":authority", "test")),
    *(("te", "trailers"), ("content-type", "application/grpc")),
)


@contextmanager
def started(*options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Start a server; yield where it listens over gRPC."""
    command = [sys.executable, "-m", "reference_server", "--port", "0", "--grpc-port", "0", *options]
    with programs.start_program(command, stderr=subprocess.PIPE) as process:
        programs.read_line(process)
        yield programs.read_line(process).removeprefix("grpc "), process


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    with started(*LIMITS) as found:
        yield found


def memory(process: subprocess.Popen[str]) -> int:
    """Return the most bytes of memory that a process ever had."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) * 1024


def infer(model: str, datatype: str, shape: list[int], raw: bytes | None = None, **contents: list[Any]) -> bytes:
    request = service_pb2.ModelInferRequest(model_name=model)
    entry = request.inputs.add(name="INPUT", datatype=datatype, shape=shape)
    if raw is not None:
        request.raw_input_contents.append(raw)
    for field, values in contents.items():
        getattr(entry.contents, field).extend(values)
    return bytes(request.SerializeToString())


def classes(count: int) -> bytes:
    request = service_pb2.ModelInferRequest.FromString(infer("identity_int32", "INT32", [1], bytes(4)))
    request.outputs.add(name="OUTPUT").parameters["classification"].int64_param = count
    return bytes(request.SerializeToString())


MANY = 2_000_000
REQUESTS = {
    "empty-inputs": (lambda: b"\x2a\0" * MANY, "RESOURCE_EXHAUSTED"),
    "short-and-of-many-inputs": (lambda: b"\x2a\0" * 100_000, "RESOURCE_EXHAUSTED"),
    "empty-raw-contents": (lambda: b"\x3a\0" * MANY, "RESOURCE_EXHAUSTED"),
    "unknown-fields": (lambda: b"\xa0\6\1" * MANY, "RESOURCE_EXHAUSTED"),
    "groups": (lambda: b"\xa3\6\xa4\6" * MANY, "RESOURCE_EXHAUSTED"),
    "one-unknown-field": (lambda: b"\xa2\6\x80\x89\x7a" + bytes(MANY), "RESOURCE_EXHAUSTED"),
    "typed-contents": (
        lambda: infer("identity_int32", "INT32", [200_000], int_contents=[1] * 200_000),
        "RESOURCE_EXHAUSTED",
    ),
    "texts": (lambda: infer("identity_bytes", "BYTES", [MANY], bytes(4 * MANY)), "INVALID_ARGUMENT"),
    "no-message": (lambda: b"\xff" * MANY, "RESOURCE_EXHAUSTED"),
    "no-short-message": (lambda: b"\xff" * 100, "INVALID_ARGUMENT"),
    "deep-groups": (lambda: b"\xa3\6" * 1000, "INVALID_ARGUMENT"),
    "none-of-many": (lambda: infer("identity_int32", "INT32", [2**62, 0], b""), "INVALID_ARGUMENT"),
    "2^62": (lambda: infer("identity_int32", "INT32", [2**31, 2**31], b""), "INVALID_ARGUMENT"),
    "2^62-in-one": (lambda: infer("identity_int32", "INT32", [2**62], b""), "INVALID_ARGUMENT"),
    "negative": (lambda: infer("identity_int32", "INT32", [-1], b""), "INVALID_ARGUMENT"),
    "more-texts-than-bytes": (lambda: infer("identity_bytes", "BYTES", [2**40], b""), "INVALID_ARGUMENT"),
    "2^32-classes": (lambda: classes(2**32), "OK"),
}


@pytest.mark.parametrize(("make", "code"), REQUESTS.values(), ids=REQUESTS)
def test_a_request_that_is_made_to_be_dear_costs_little(server: Any, make: Callable[[], bytes], code: str) -> None:
    address, process = server
    before = memory(process)
    with connect(address) as client:
        try:
            client.exchange(f"{PATH}ModelInfer", make())
            found = "OK"
        except grpc.RpcError as error:
            found = error.code().name
        assert client.exchange(f"{PATH}ServerReady", b"") == b"\x08\x01"
    assert found == code
    assert memory(process) - before < 80_000_000


def test_metadata_over_the_limit_are_refused(server: Any) -> None:
    with connect(server[0]) as client, pytest.raises(grpc.RpcError) as error:
        client.exchange(f"{PATH}ServerLive", b"", metadata=[("x-long", "x" * 20_000)])
    assert error.value.code().name == "RESOURCE_EXHAUSTED"


def test_gzip_bomb_is_refused_within_memory_limit() -> None:
    packer = zlib.compressobj(1, wbits=31)
    packed = b"".join([*(packer.compress(bytes(1_000_000)) for _ in range(100)), packer.flush()])
    stream = Stream([*CALL, ("grpc-encoding", "gzip")], add_prefix(packed, compressed=True))
    with started("--max-body", "1000000") as (address, process):
        before = memory(process)
        connection = GrpcConnection(make_settings("", grpc=address, timeout=20))
        connection.call([stream], 1000, time.monotonic() + 20)
        connection.close()
        assert stream.list_values("grpc-status") == ["8"]
        assert memory(process) - before < 50_000_000


# --- those who take their time ---------------------------------------------------------------------------------------


def begun(address: str, calls: int = 1) -> socket.socket:
    """Return a connection with calls of which nothing but the headers comes."""
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)), 10)
    octets = block(*CALL)
    heads = (frame(HEADERS, octets, stream=2 * call + 1, flags=END_HEADERS) for call in range(calls))
    connection.sendall(PREFACE_OCTETS + frame(SETTINGS) + b"".join(heads))
    return connection


def test_calls_that_do_not_go_on_keep_nobody_waiting(server: Any) -> None:
    with ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(begun(server[0], calls=5))
        with connect(server[0]) as client:
            assert client.exchange(f"{PATH}ServerLive", b"") == b"\x08\x01"


def test_a_client_that_pings_and_pings_is_sent_away(server: Any) -> None:
    with begun(server[0], calls=0) as connection:
        octets = b""
        connection.settimeout(10)
        connection.sendall(frame(PING, bytes(8)) * 100)
        while part := connection.recv(65536):
            octets += part
    assert b"too_many_pings" in octets


def test_calls_of_a_connection_are_limited(server: Any) -> None:
    with begun(server[0], calls=0) as connection:
        settings = connection.recv(65536)
    assert (3).to_bytes(2, "big") + (100).to_bytes(4, "big") in settings


def test_the_end_is_quiet_with_calls_under_way() -> None:
    work = infer("identity_bytes", "BYTES", [1_500_000], bytes(6_000_000))
    with started() as (address, process), ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(begun(address))
        client = stack.enter_context(connect(address))
        calls = [client.channel.unary_unary(f"{PATH}ModelInfer").future(work) for _ in range(8)]
        client.exchange(f"{PATH}ServerLive", b"")
        process.terminate()
        said = process.communicate(timeout=10)
        assert (process.returncode, said) == (0, ("", ""))
        for call in calls:
            call.cancel()


def test_server_abandons_stop_delayed_by_open_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    has_ended = asyncio.Event()

    async def stop(_grace: float) -> None:
        await has_ended.wait()

    async def ended() -> None:
        has_ended.set()
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))

    port = grpc_server.GrpcServer({}, "127.0.0.1", 0, 1)
    monkeypatch.setattr(grpc_server, "STOP_SECONDS", 0)
    monkeypatch.setattr(grpc_server, "ABANDON_SECONDS", 0)
    monkeypatch.setattr(port, "_server", SimpleNamespace(stop=stop))
    port.__exit__()
    assert workers.is_busy()  # so that the program leaves without what is under way
    grpc_server.run_in_loop(ended())
    assert not workers.is_busy()
