"""Paths, methods, bodies in pieces, limits, and what happens to a connection."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest

from reference_server import app, models
from tests.support.serving import Server, make_infer_request, read_answer, run_server

GOOD = make_infer_request("raw_fixed", bytes(16), "0")
BAD = make_infer_request("raw_fixed", bytes(15), "0")
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")

# (method, path, status, body)
PATHS = [
    ("GET", "/v2", 200,
     '{"name":"oip-reference-server","version":"0.1.0","extensions":["binary_tensor_data",'
     '"model_configuration","statistics","classification"]}'),
    ("GET", "/v2/health/live", 200, '{"live":true}'),
    ("GET", "/v2/health/ready", 200, '{"ready":true}'),
    ("GET", "/v2/models/rank2", 200,
     '{"name":"rank2","versions":["1"],"platform":"reference","inputs":[{"name":"INPUT","datatype":"INT32",'
     '"shape":[-1,-1]}],"outputs":[{"name":"OUTPUT","datatype":"INT32","shape":[-1,-1]}]}'),
    ("GET", "/v2/models/batching/versions/1", 200,
     '{"name":"batching","versions":["1"],"platform":"reference","inputs":[{"name":"INPUT","datatype":"INT32",'
     '"shape":[-1,3]}],"outputs":[{"name":"OUTPUT","datatype":"INT32","shape":[-1,3]}]}'),
    ("GET", "/v2/models/rank2/ready", 200, '{"name":"rank2","ready":true}'),
    ("GET", "/v2/models/rank2/versions/1/ready", 200, '{"name":"rank2","ready":true}'),
    ("GET", "/v2/models/batching/config", 200,
     '{"name":"batching","platform":"reference","max_batch_size":64,"input":[{"name":"INPUT","data_type":"TYPE_INT32",'
     '"dims":[3],"optional":false}],"output":[{"name":"OUTPUT","data_type":"TYPE_INT32","dims":[3]}]}'),
    ("GET", "/v2/models/identity_bytes/versions/1/config", 200,
     '{"name":"identity_bytes","platform":"reference","max_batch_size":0,"input":[{"name":"INPUT",'
     '"data_type":"TYPE_STRING","dims":[-1],"optional":false}],"output":[{"name":"OUTPUT","data_type":"TYPE_STRING","dims":[-1]}]}'),
    ("GET", "/v2/models/nope/config", 404, '{"error":"there is no model \\"nope\\""}'),
    ("GET", "/v2/models/nope/stats", 404, '{"error":"there is no model \\"nope\\""}'),
    ("GET", "/v2/models/rank2/versions/2/stats", 404,
     '{"error":"model \\"rank2\\" has no version \\"2\\", only \\"1\\""}'),
    ("POST", "/v2/models/rank2/config", 405, '{"error":"Method Not Allowed: POST \\"/v2/models/rank2/config\\""}'),
    ("GET", "/v2/models/nope", 404, '{"error":"there is no model \\"nope\\""}'),
    ("GET", "/v2/models/nope/ready", 404, '{"error":"there is no model \\"nope\\""}'),
    ("POST", "/v2/models/nope/infer", 404, '{"error":"there is no model \\"nope\\""}'),
    ("POST", "/v2/models/rank2/versions/2/infer", 404,
     '{"error":"model \\"rank2\\" has no version \\"2\\", only \\"1\\""}'),
    ("GET", "/v2/", 404, '{"error":"Not Found: GET \\"/v2/\\""}'),
    ("GET", "/a%22b", 404, '{"error":"Not Found: GET \\"/a\\\\\\"b\\""}'),
    ("GET", "/v2/models/rank2/infer", 405, '{"error":"Method Not Allowed: GET \\"/v2/models/rank2/infer\\""}'),
    ("POST", "/v2", 405, '{"error":"Method Not Allowed: POST \\"/v2\\""}'),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "status", "body"), PATHS)
def test_path(server: Server, method: str, path: str, status: int, body: str) -> None:
    answer = server.exchange(f"{method} {path} HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n".encode(), method)
    assert (answer.status, answer.body.decode()) == (status, body)
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.headers.get("allow", "").split(", ")) == (
        {""} if status != 405 else {"POST"} if method == "GET" else {"GET", "HEAD"}
    )


@pytest.mark.parametrize(
    "octets",
    [
        make_infer_request("raw_fixed", bytes(16), " \t0 \t"),
        GOOD.replace(b"Inference-Header-Content-Length", b"iNFERENCE-hEADER-cONTENT-lENGTH"),
    ],
    ids=["blanks", "another case"],
)
def test_the_header_may_be_written_otherwise(server: Server, octets: bytes) -> None:
    assert server.exchange(octets).status == 200


def test_small_answers_do_not_wait(server: Server) -> None:
    with server.connection() as connection:
        begin = time.monotonic()
        for _ in range(50):
            connection.sendall(GOOD)
            assert read_answer(connection).status == 200
        assert time.monotonic() - begin < 1  # held back by Nagle's algorithm, 50 answers would take 2 s


@pytest.mark.parametrize("value", ["100-continue", "100-Continue"])
def test_body_held_back_is_asked_for(server: Server, value: str) -> None:
    head, end, body = GOOD.partition(b"\r\n\r\n")
    with server.connection() as connection:
        connection.sendall(head + f"\r\nExpect: {value}".encode() + end)
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert read_answer(connection).status == 200


def test_upgrade_is_refused(server: Server) -> None:
    upgrade = b"\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nHost:"
    answer = server.exchange(GOOD.replace(b"\r\nHost:", upgrade))
    assert (answer.status, answer.headers["connection"]) == (400, "close")
    assert answer.body == b'{"error":"the Upgrade header is not supported in an inference request"}'


CHUNKED = (
    b"POST /v2/models/string_length/infer HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n"
    b"Inference-Header-Content-Length: 96\r\n\r\n"
    b'5a\r\n{"inputs":[{"name":"INPUT","shape":[1],"datatype":"BYTES","parameters":{"binary_data_size"'
    b"\r\n5\r\n:6}}]\r\n2\r\n}\2\r\n3\r\n\0\0\0\r\n2\r\nhi\r\n0\r\n\r\n"
)


@pytest.mark.parametrize("octets", [GOOD, CHUNKED], ids=["length", "chunked"])
def test_body_in_single_bytes(server: Server, octets: bytes) -> None:
    with server.connection() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for octet in octets:
            connection.sendall(bytes([octet]))
        assert read_answer(connection).status == 200


@pytest.mark.parametrize(
    "octets",
    [
        CHUNKED.replace(b"\r\n5\r\n", b'\r\n5;a=b;c="d"\r\n'),
        CHUNKED.replace(b"5a\r\n", b"005A\r\n"),
        CHUNKED.replace(b"0\r\n\r\n", b"0\r\nInference-Header-Content-Length: 0\r\n\r\n"),
        CHUNKED.replace(b"0\r\n\r\n", b"0\r\nContent-Encoding: gzip\r\n\r\n"),
    ],
    ids=["extension", "digits", "inference header behind", "coding behind"],
)
def test_chunks_may_be_written_otherwise_and_trailers_are_no_headers(server: Server, octets: bytes) -> None:
    assert octets != CHUNKED
    assert server.exchange(octets).status == 200


def send_pipelined(server: Server, octets: bytes) -> list[int]:
    """Send everything at once and return the statuses of the answers until the server closes."""
    with server.connection() as connection:
        connection.sendall(octets)
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    return [int(status) for status in STATUS.findall(received)]


LAST = b"GET /v2/health/live HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"


CHUNKED = b"POST /v2/models/identity_int32/infer HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("octets", "status"),
    [
        (b"no HTTP\r\n\r\n", 400),
        (b"GET /v2 HTTP/1.1\r\n\r\n", 400),  # no Host
        (CHUNKED + b"xyz\r\n", 400),
        (CHUNKED + b"FFFFFFFFFFFFFFFF\r\n", 413),
        (CHUNKED + b"0\r\nbad trailer\r\n\r\n", 400),
    ],
)
@pytest.mark.parametrize("before", [1, 2, 3])
def test_requests_before_a_refused_one_are_answered(server: Server, octets: bytes, status: int, before: int) -> None:
    assert send_pipelined(server, GOOD * before + octets) == [200] * before + [status]


@pytest.mark.parametrize("end", [CHUNKED + b"5\r\n12", CHUNKED + b"xyz\r\n", b"no HTTP\r\n\r\n"])
def test_requests_before_the_end_of_the_client_are_answered(server: Server, end: bytes) -> None:
    with server.connection() as connection:
        connection.sendall(GOOD + GOOD + end)
        connection.shutdown(socket.SHUT_WR)
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    assert STATUS.findall(received) == [b"200", b"200", b"400"]


BODY_1001 = b"POST /v2/models/identity_uint8/infer HTTP/1.1\r\nHost: test\r\nInference-Header-Content-Length: 0\r\n"


@pytest.mark.parametrize(
    "octets",
    [
        make_infer_request("identity_uint8", bytes(1001), "0"),
        make_infer_request("identity_uint8", bytes(5_000_000), "0"),
        BODY_1001 + b"Transfer-Encoding: chunked\r\n\r\n" + (b"64\r\n" + bytes(100) + b"\r\n") * 11 + b"0\r\n\r\n",
        BODY_1001 + b"Content-Length: 2000000000\r\n\r\n",
    ],
    ids=["length", "far over", "chunked", "never sent"],
)
def test_body_over_the_limit(small_server: Server, octets: bytes) -> None:
    answer = small_server.exchange(octets)
    assert (answer.status, answer.body) == (413, b'{"error":"the body is over the limit of 1000 bytes"}')
    assert (answer.headers["connection"], answer.headers["content-type"]) == ("close", "application/json")


def test_body_at_the_limit(small_server: Server) -> None:
    assert small_server.exchange(make_infer_request("identity_uint8", bytes(1000), "0")).status == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_prints_one_line_and_ends_cleanly(number: signal.Signals) -> None:
    with run_server("--host", "127.0.0.1") as started:
        assert started.exchange(GOOD).status == 200
        assert started.exchange(BAD).status == 400
        started.process.send_signal(number)
        out, err = started.process.communicate(timeout=10)
        assert (started.process.returncode, out, err) == (0, "", "")


def test_signal_right_after_the_line() -> None:
    for _ in range(3):
        with run_server() as started:
            started.process.send_signal(signal.SIGTERM)
            assert started.process.wait(timeout=10) == 0


def test_port_in_use(server: Server) -> None:
    port = server.address[1]
    done = subprocess.run(
        [sys.executable, "-m", "reference_server", "--port", str(port)],
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"cannot listen on 127.0.0.1 port {port}: ")


def test_only_the_roles_that_are_asked_for_are_served() -> None:
    with run_server("--model", "identity_uint8", "--model=add_sub") as started:
        assert started.infer("identity_uint8", b"\1\2", "0").status == 200
        assert started.infer("identity_int8", b"\1\2", "0").status == 404


@pytest.mark.parametrize(
    ("option", "meant"), [("--model=identity_int", "identity_int8"), ("--fault=x", "--list-faults")]
)
def test_a_name_that_is_none_is_one_line(option: str, meant: str) -> None:
    command = [sys.executable, "-m", "reference_server", option]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert meant in done.stderr.splitlines()[-1]


def test_fault_of_the_server_is_an_error_of_the_protocol() -> None:
    broken = models.make_model("broken", {"inputs": [], "outputs": [], "compute": "no such function"})
    transport = httpx.ASGITransport(app.create({"broken": broken}), raise_app_exceptions=False)

    async def exchange() -> httpx.Response:
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.post("/v2/models/broken/infer", content=b'{"inputs":[]}')

    answer = asyncio.run(exchange())
    assert (answer.status_code, answer.content) == (500, b'{"error":"internal error"}')
    assert answer.headers["content-type"] == "application/json"
