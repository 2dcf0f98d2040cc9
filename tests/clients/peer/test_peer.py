"""The peers: what they keep of a request, how they end a connection, and what they say of themselves."""

from __future__ import annotations

import json
import socket
import threading
from http.client import HTTPConnection
from typing import Any

import grpc
import pytest
from tritonclient.grpc import InferenceServerClient
from tritonclient.utils import InferenceServerException

from conformance.checks.support.client_rows import (
    derive_model_name,
    make_script,
    make_small_inference,
    make_small_script,
    make_tensor,
)
from conformance.clients.answers.errors import PLACES, make_truncated_script
from conformance.clients.answers.script import Ending
from conformance.clients.peer.peer import Peer
from conformance.clients.peer.scenario import Scenario
from conformance.wire.client_request import ClientRequest

INFERENCE = make_small_inference("peer", "json")
MODEL = f"/v2/models/{derive_model_name('peer')}"
HEAD = f"POST {MODEL}/infer HTTP/1.1\r\nHost: h\r\n".encode()
REQUEST = HEAD + b"Content-Length: 2\r\n\r\n{}"


@pytest.fixture
def scene(peer: Peer) -> Scenario:
    return peer.start_scenario([INFERENCE], make_small_script(INFERENCE))


def connected(peer: Peer) -> socket.socket:
    host, port = peer.http_address.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)))
    connection.settimeout(10)
    return connection


def send_and_read(peer: Peer, octets: bytes) -> bytes:
    """Return everything that comes back before the peer closes."""
    with connected(peer) as connection:
        connection.sendall(octets)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def got(peer: Peer, path: str) -> Any:
    connection = HTTPConnection(peer.http_address.removeprefix("http://"))
    connection.request("GET", path)
    response = connection.getresponse()
    document = json.loads(response.read())
    connection.close()
    return response.status, document


# --- what is kept of a request ----------------------------------------------------------------------------------------


def test_a_request_is_kept_as_it_came(peer: Peer, scene: Scenario) -> None:
    answer = send_and_read(
        peer, f"POST {MODEL}/infer?x=1 HTTP/1.1\r\nHOST: h\r\nX-own:  a \r\ncontent-LENGTH: 2\r\n\r\n{{}}".encode()
    )
    assert answer.startswith(b"HTTP/1.1 200 ")
    (_, heard) = scene.list_requests()[0]
    assert heard.received == ClientRequest(
        "POST", f"{MODEL}/infer?x=1", (("HOST", "h"), ("X-own", "a"), ("content-LENGTH", "2")), b"{}"
    )


def test_credentials_are_masked_before_a_request_is_kept(peer: Peer, scene: Scenario) -> None:
    credential = "Bearer sesame-open-4711-zq7"
    body = b'{"a": "sesame-open-4711-zq7"}'
    head = f"POST {MODEL}/infer?api_key=sesame HTTP/1.1\r\nHost: h\r\nAuthorization: {credential}\r\n"
    send_and_read(peer, f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    received = scene.list_requests()[0][1].received
    assert "sesame" not in repr(received)
    assert len(received.body) == len(body)


def test_a_request_that_comes_late_is_not_kept(peer: Peer, scene: Scenario) -> None:
    send_and_read(peer, REQUEST)
    assert len(scene.end()) == 1
    send_and_read(peer, REQUEST)
    assert len(scene.list_requests()) == 1


def test_chunks_are_kept_as_one_body(peer: Peer, scene: Scenario) -> None:
    send_and_read(peer, HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n")
    received = scene.list_requests()[0][1].received
    assert (received.body, received.is_chunked, received.trouble) == (b"{}", True, "")


def test_requests_that_are_sent_together_are_told_apart(peer: Peer, scene: Scenario) -> None:
    assert send_and_read(peer, REQUEST + REQUEST).count(b"HTTP/1.1 200") == 2
    assert [heard.received.body for _, heard in scene.list_requests()] == [b"{}", b"{}"]


def test_http_1_0_is_answered_and_closed(peer: Peer, scene: Scenario) -> None:
    with connected(peer) as connection:
        connection.sendall(f"POST {MODEL}/infer HTTP/1.0\r\nContent-Length: 2\r\n\r\n{{}}".encode())
        assert b"".join(iter(lambda: connection.recv(65536), b"")).startswith(b"HTTP/1.1 200")
    assert scene.list_requests()[0][1].received.version == "HTTP/1.0"


def test_a_body_that_waits_for_leave_is_asked_for(peer: Peer, scene: Scenario) -> None:
    with connected(peer) as connection:
        head = f"POST {MODEL}/infer HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
        connection.sendall(head.encode())
        assert connection.recv(1024) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"{}")
        assert connection.recv(1024).startswith(b"HTTP/1.1 200")
    assert scene.list_requests()[0][1].received.body == b"{}"


@pytest.mark.parametrize(
    "octets",
    [
        b"POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n{}",
        b"POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n{}",
        b"POST %s HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"this is no HTTP\r\n\r\n",
    ],
)
def test_what_is_no_whole_request_is_kept_with_its_trouble(peer: Peer, scene: Scenario, octets: bytes) -> None:
    assert send_and_read(peer, octets.replace(b"%s", f"{MODEL}/infer".encode())).startswith(b"HTTP/1.1 400")
    assert scene.list_requests()[0][1].received.trouble != ""


# --- how connections end ----------------------------------------------------------------------------------------------


def test_a_connection_is_reset(peer: Peer) -> None:
    peer.start_scenario(
        [INFERENCE],
        make_script(
            (make_tensor("r", "OUT0", "INT32", (2,)),), make_truncated_script(PLACES["in-the-head"], Ending.RESET)
        ),
    )
    with connected(peer) as connection:
        connection.sendall(REQUEST)
        with pytest.raises(ConnectionResetError):
            list(iter(lambda: connection.recv(1024), b""))


def test_silence_ends_when_the_client_goes(peer: Peer) -> None:
    scene = peer.start_scenario(
        [INFERENCE], make_script((), make_truncated_script(PLACES["before-anything"], Ending.SILENT))
    )
    before = threading.active_count()
    with connected(peer) as connection:
        connection.sendall(REQUEST)
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(1)
    assert len(scene.list_requests()) == 1
    assert threading.active_count() <= before + 1


def test_no_thread_is_left_behind_a_connection_that_stays_open() -> None:
    before = set(threading.enumerate())
    with Peer() as peer:
        peer.start_scenario([INFERENCE], make_small_script(INFERENCE))
        connection = connected(peer)
        connection.sendall(b"POST /v2/models/x/infer HTTP/1.1\r\n")
    left = [thread.name for thread in threading.enumerate() if thread not in before and not thread.daemon]
    assert left == []
    connection.close()


# --- beside inference -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "status", "member", "value"),
    [
        ("/v2", 200, "name", "scripted-peer"),
        ("/v2/health/live", 200, "live", True),
        ("/v2/health/ready", 200, "ready", True),
        (MODEL, 200, "inputs", [{"name": "IN0", "datatype": "INT32", "shape": [2]}]),
        (f"{MODEL}/versions/1", 200, "outputs", [{"name": "OUT0", "datatype": "INT32", "shape": [2]}]),
        (f"{MODEL}/ready", 200, "ready", True),
        (f"{MODEL}/config", 200, "max_batch_size", 0),
        (
            f"{MODEL}/stats",
            200,
            "model_stats",
            [{"name": derive_model_name("peer"), "version": "1", "inference_count": 0, "execution_count": 0}],
        ),
        ("/v2/models/another", 404, "error", "this peer has no such path or model"),
        ("/metrics", 404, "error", "this peer has no such path or model"),
    ],
)
def test_peer_answers_health_and_metadata(
    peer: Peer, scene: Scenario, path: str, status: int, member: str, value: Any
) -> None:
    found, document = got(peer, path)
    assert (found, document[member]) == (status, value)
    assert scene.list_requests() == []


def test_the_same_over_grpc(peer: Peer, scene: Scenario) -> None:
    client = InferenceServerClient(peer.grpc_address)
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready(INFERENCE.model)
    assert client.get_server_metadata().name == "scripted-peer"
    assert [one.name for one in client.get_model_metadata(INFERENCE.model).inputs] == ["IN0"]
    assert client.get_model_config(INFERENCE.model).config.input[0].dims == [2]
    assert client.get_inference_statistics(INFERENCE.model).model_stats[0].inference_count == 0
    assert not client.is_model_ready("another")
    with pytest.raises(InferenceServerException, match="there is no such model"):
        client.get_model_metadata("another")
    client.close()
    assert scene.list_requests() == []


def test_a_method_that_nobody_has_is_not_implemented(peer: Peer) -> None:
    with grpc.insecure_channel(peer.grpc_address) as channel, pytest.raises(grpc.RpcError) as raised:
        channel.unary_unary("/inference.GRPCInferenceService/NoSuchMethod")(b"", timeout=10)
    assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED
