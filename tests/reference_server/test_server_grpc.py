"""The gRPC connection itself: its methods, limits and failures, and the command line that opens it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from tritonclient.grpc import service_pb2

from conformance import __version__
from reference_server import compute
from tests.support.grpc_serving import MAX_MESSAGE_BYTES, PATH, GrpcConnection, connect, parse_message, read_status
from tests.support.serving import TIMEOUT, run_server

# (method, request, response)
METHODS = [
    ("ServerLive", "", "live: true"),
    ("ServerReady", "", "ready: true"),
    ("ModelReady", 'name: "scores"', "ready: true"),
    ("ModelReady", 'name: "scores" version: "1"', "ready: true"),
    ("ServerMetadata", "",
     f'name: "oip-reference-server" version: "{__version__}" extensions: ["binary_tensor_data", '
     '"model_configuration", "statistics", "classification"]'),
    ("ModelConfig", 'name: "scores_batching"',
     'config { name: "scores_batching" platform: "reference" max_batch_size: 64 '
     'input { name: "INPUT" data_type: TYPE_FP32 dims: 4 } output { name: "SCORES" data_type: TYPE_FP32 dims: 4 } }'),
    ("ModelMetadata", 'name: "scores_batching"',
     'name: "scores_batching" versions: "1" platform: "reference"'
     'inputs { name: "INPUT" datatype: "FP32" shape: [-1, 4] }'
     'outputs { name: "SCORES" datatype: "FP32" shape: [-1, 4] }'),
]  # fmt: skip


@pytest.mark.parametrize(("method", "request_text", "expected"), METHODS)
def test_method(opened: GrpcConnection, method: str, request_text: str, expected: str) -> None:
    answer = opened.call(method, parse_message(f"{method}Request", request_text))
    assert answer == parse_message(f"{method}Response", expected)


@pytest.mark.parametrize("method", ["ModelReady", "ModelMetadata", "ModelConfig", "ModelStatistics"])
@pytest.mark.parametrize(
    ("request_text", "message"),
    [
        ('name: "nope"', 'there is no model "nope"'),
        ('name: "scores" version: "2"', 'model "scores" has no version "2", only "1"'),
    ],
)
def test_unknown_model(opened: GrpcConnection, method: str, request_text: str, message: str) -> None:
    with pytest.raises(grpc.RpcError) as error:
        opened.call(method, parse_message(f"{method}Request", request_text))
    assert read_status(error) == ("NOT_FOUND", message)


@pytest.mark.parametrize("path", [f"{PATH}TraceSetting", f"{PATH}modelInfer", "/other.Service/ModelInfer"])
def test_unknown_method(opened: GrpcConnection, path: str) -> None:
    with pytest.raises(grpc.RpcError) as error:
        opened.exchange(path, b"")
    assert read_status(error) == (
        "UNIMPLEMENTED",
        f'no method "{path}"; inference.GRPCInferenceService has ServerLive, ServerReady, ModelReady, ServerMetadata, '
        "ModelMetadata, ModelConfig, ModelStatistics, ModelInfer",
    )


def test_unknown_method_with_a_stream_that_sends_nothing(opened: GrpcConnection) -> None:
    with pytest.raises(grpc.RpcError) as error:
        list(opened.channel.stream_stream(f"{PATH}ModelStreamInfer")(iter(()), timeout=TIMEOUT))
    assert read_status(error)[0] == "UNIMPLEMENTED"


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_limit(opened: GrpcConnection, compression: grpc.Compression) -> None:
    spec = service_pb2.ModelInferRequest.InferInputTensor(name="INPUT", datatype="UINT8", shape=[MAX_MESSAGE_BYTES])
    request = service_pb2.ModelInferRequest(model_name="identity_uint8", inputs=[spec])
    request.raw_input_contents.append(bytes(MAX_MESSAGE_BYTES))
    with pytest.raises(grpc.RpcError) as error:
        opened.call("ModelInfer", request, compression=compression)
    assert read_status(error)[0] == "RESOURCE_EXHAUSTED"
    spec.shape[0] = MAX_MESSAGE_BYTES - 100
    del request.inputs[:], request.raw_input_contents[:]
    request.inputs.append(spec)
    request.raw_input_contents.append(bytes(MAX_MESSAGE_BYTES - 100))
    answer = opened.call("ModelInfer", request, compression=compression)
    assert answer.raw_output_contents[0] == bytes(MAX_MESSAGE_BYTES - 100)


def test_failure_is_told_to_the_operator_alone(
    opened: GrpcConnection, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(compute.FUNCTIONS, "identity", lambda *_: 1 // 0)
    with pytest.raises(grpc.RpcError) as error:
        opened.infer('model_name: "rank0" inputs { name: "INPUT" datatype: "INT32" contents { int_contents: 5 } }')
    assert read_status(error) == ("INTERNAL", "internal error")
    assert "ZeroDivisionError" in capfd.readouterr().err


# --- the command line ------------------------------------------------------------------------------------------------


def refused_start(*options: str, **environment: str) -> tuple[int, str, str]:
    """Start a server that does not start: exit status, standard output and error."""
    ended = subprocess.run(
        [sys.executable, "-m", "reference_server", "--port", "0", *options],
        capture_output=True,
        text=True,
        timeout=30,
        env=os.environ | environment,
        check=False,
    )
    return ended.returncode, ended.stdout, ended.stderr


def test_two_lines_and_a_clean_end() -> None:
    with run_server("--grpc-port", "0") as server:
        assert server.process.stdout is not None
        assert server.url.startswith("http://127.0.0.1:")
        word, address = server.process.stdout.readline().split()
        assert word == "grpc"
        with connect(address) as opened:
            assert opened.call("ServerLive", service_pb2.ServerLiveRequest()).live
        code, output, error = refused_start("--grpc-port", address.rpartition(":")[2])
        assert (code, output) == (1, "")
        assert error.startswith(f"cannot listen on 127.0.0.1 port {address.rpartition(':')[2]}: ")
        assert error.count("\n") == 1
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(TIMEOUT) == 0
        assert server.process.stdout.read() == ""


def test_the_limit_of_the_command_line() -> None:
    with run_server("--grpc-port", "0", "--max-body", "1000") as server:
        assert server.process.stdout is not None
        with connect(server.process.stdout.readline().split()[1]) as opened, pytest.raises(grpc.RpcError) as error:
            opened.exchange(f"{PATH}ServerLive", bytes(1001))
        assert read_status(error)[0] == "RESOURCE_EXHAUSTED"


def test_without_the_extra(tmp_path: Path) -> None:
    (tmp_path / "grpc.py").write_text('raise ImportError("not here")')
    code, output, error = refused_start("--grpc-port", "0", PYTHONPATH=str(tmp_path))
    assert (code, output) == (4, "")
    assert error == "--grpc-port needs the extra grpc: pip install 'oip-conformance[grpc]' (not here)\n"


def test_http_alone_needs_no_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "grpc.py").write_text('raise ImportError("not here")')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with run_server() as server:
        assert server.infer("raw_fixed", bytes(16), "0").status == 200
