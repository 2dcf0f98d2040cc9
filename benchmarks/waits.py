"""How long the bundled server keeps others waiting while it is about something large, and how it ends.

On a machine that is busy with other things these measure the machine: run them alone.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec

import httpcore

from benchmarks.children import bundled
from benchmarks.ratio import CannotMeasureError, Measured, benchmark
from benchmarks.server import identity

MOMENT = 0.05  # seconds that nobody notices
END = 2.0  # seconds that the end of a server may take
MILLIONS = 10_000_000
INFER = "/inference.GRPCInferenceService/ModelInfer"
CALLS = 8

INTEGERS = b'{"inputs":[{"name":"INPUT","shape":[%d],"datatype":"INT32","data":[%b0]}]}'


def others_waited(place: str, work: Callable[[], object]) -> tuple[float, str]:
    """Return the longest that somebody else waited while `work` was done, and what to remark about the others."""
    command = [sys.executable, "-m", "benchmarks.others", place]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as others:
        assert others.stdout is not None
        others.stdout.readline()
        work()
        said, _ = others.communicate()
    worst, nearly_worst, count = said.split()
    return float(worst), f"99 of 100 within {float(nearly_worst) * 1000:.0f} ms, {count} requests"


def _refused(content: bytes) -> Callable[[str], object]:
    packed, coding = gzip.compress(content, 1), [("Content-Encoding", "gzip")]
    path = "/v2/models/identity_int32/infer"
    return lambda url: httpcore.request("POST", url + path, headers=coding, content=packed)


def _over_http(work: Callable[[str], object]) -> Measured:
    with bundled() as server:
        idle, _ = others_waited(server.url, lambda: time.sleep(1))
        worst, remark = others_waited(server.url, lambda: work(server.url))
    return Measured(worst, MOMENT, remarks=f"{remark}; {idle * 1000:.0f} ms where nothing large is under way")


@benchmark("wait-arrays", "others wait for 60 MB of `[],` in gzip", "50 ms", reach=1)
def arrays() -> Measured:
    """Refused."""
    return _over_http(_refused(b'{"inputs":[' + b"[]," * (2 * MILLIONS) + b"[]]}"))


@benchmark("wait-integers", "others wait for 30 million integers in gzip", "50 ms", reach=1)
def integers() -> Measured:
    """Refused."""
    return _over_http(_refused(INTEGERS % (3 * MILLIONS, b"0," * (3 * MILLIONS))))


@benchmark("wait-valid", "others wait for 60 MB of FP32, binary both ways", "50 ms", reach=1)
def valid() -> Measured:
    """Answered."""
    message = identity(15 << 20)
    return _over_http(
        lambda url: httpcore.request("POST", url + message.path, headers=dict(message.headers), content=message.body)
    )


def _message() -> bytes:
    """Return a call about 60 MB in raw contents."""
    if find_spec("grpc") is None or find_spec("tritonclient") is None:
        raise CannotMeasureError("pip install 'oip-conformance[grpc]'")
    from tritonclient.grpc import service_pb2

    request = service_pb2.ModelInferRequest(model_name="identity_fp32")
    request.inputs.add(name="INPUT", datatype="FP32", shape=[15 << 20])
    request.raw_input_contents.append(bytes(60 << 20))
    return bytes(request.SerializeToString())


@benchmark("wait-grpc", "others wait for 60 MB over gRPC", "50 ms", reach=1)
def over_grpc() -> Measured:
    """Copies that grpc itself makes are a part of it."""
    message = _message()
    import grpc

    with bundled(grpc=True) as server:
        place = str(server.grpc)
        with grpc.insecure_channel(place, [("grpc.max_receive_message_length", -1)]) as channel:
            call = channel.unary_unary(INFER)
            idle, _ = others_waited(place, lambda: time.sleep(1))
            worst, remark = others_waited(place, lambda: call(message, timeout=60))
    return Measured(worst, MOMENT, remarks=f"{remark}; {idle * 1000:.0f} ms where nothing large is under way")


@benchmark("end-grpc", "from SIGTERM to the end, with large calls in flight", "2 s", reach=1)
def end() -> Measured:
    """The server ends with a status of 0 and says nothing: `tests/hostile` holds that."""
    message = _message()
    import grpc

    with bundled(grpc=True) as server, grpc.insecure_channel(str(server.grpc)) as channel:
        calls = [channel.unary_unary(INFER).future(message) for _ in range(CALLS)]
        with suppress(grpc.RpcError):
            channel.unary_unary("/inference.GRPCInferenceService/ServerLive")(b"", timeout=60)
        began = time.perf_counter()
        server.stop()
        took = time.perf_counter() - began
        for one in calls:
            one.cancel()
    return Measured(took, END, remarks=f"{len(calls)} calls of 60 MB")
