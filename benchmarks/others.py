"""`python -m benchmarks.others PLACE`: small requests, one after the other, until standard input ends.

PLACE is a URL, or `host:port` for gRPC. This is a process of its own, so that nothing but the server holds it up. It
prints in seconds how long the slowest answer took and the 99th of a hundred, and how many there were.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

PAUSE = 0.005
FEWEST = 20


def main(place: str) -> None:
    """Ask, and say how long it took."""
    ask = _over_http(place) if place.startswith("http") else _over_grpc(place)
    ask()
    ended = threading.Event()
    threading.Thread(target=_wait_for_the_end, args=(ended,), daemon=True).start()
    print("asking", flush=True)
    times: list[float] = []
    while not ended.wait(PAUSE) or len(times) < FEWEST:
        began = time.perf_counter()
        ask()
        times.append(time.perf_counter() - began)
    times.sort()
    print(times[-1], times[len(times) * 99 // 100], len(times))


def _wait_for_the_end(ended: threading.Event) -> None:
    sys.stdin.read()
    ended.set()


def _over_http(url: str) -> Callable[[], object]:
    import httpcore

    pool = httpcore.ConnectionPool()
    return lambda: pool.request("GET", f"{url}/v2/health/live")


def _over_grpc(address: str) -> Callable[[], object]:
    import grpc

    call = grpc.insecure_channel(address).unary_unary("/inference.GRPCInferenceService/ServerLive")
    return lambda: call(b"", timeout=60)


if __name__ == "__main__":
    main(sys.argv[1])
