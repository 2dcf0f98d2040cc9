"""Runs long work in one thread beside the event loop, so that it does not delay other requests.

Python runs one thread at a time. Two measures keep the loop responsive: threads switch often
(`shorten_switch_interval`), and no operation holds the interpreter for more than some milliseconds (`sliced_json`,
`join_parts`, and the slices of `tensors` and `response`). There is only one thread, since each further one would take
time from the loop.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from io import BytesIO
from typing import Any, TypeVar

from reference_server.errors import InferenceError

MAX_INLINE_BYTES = 64 * 1024  # bytes; processing that many takes a few milliseconds
JOINED_BYTES = 1024 * 1024  # bytes copied per step, in a fraction of a millisecond
SWITCH_INTERVAL_S = 0.0005

Result = TypeVar("Result")

_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="long")
_shutdown_futures: set[asyncio.Future[None]] = set()
_pending_work: set[Future[Any]] = set()


def shorten_switch_interval() -> None:
    """Make threads switch ten times as often as by default."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)


async def run_in_worker(size: int, work: Callable[[], Result]) -> Result:
    """Return the result of `work`, run in the thread if it processes more than MAX_INLINE_BYTES bytes.

    `size`: bytes that the work processes.

    Raises InferenceError: the server shuts down before the work is done.
    """
    if size <= MAX_INLINE_BYTES:
        return work()
    loop = asyncio.get_running_loop()
    shutdown: asyncio.Future[None] = loop.create_future()
    _shutdown_futures.add(shutdown)
    try:
        future = _thread.submit(work)
        _pending_work.add(future)
        future.add_done_callback(_pending_work.discard)
        result = asyncio.wrap_future(future)
        await asyncio.wait((result, shutdown), return_when=asyncio.FIRST_COMPLETED)
        if shutdown.done():
            result.cancel()
            raise InferenceError("the server is shutting down", status=503)
        return result.result()
    finally:
        _shutdown_futures.discard(shutdown)
        shutdown.cancel()


def track_work(future: Future[Any]) -> None:
    """Let `is_busy` return True until the future of work in another thread is done."""
    _pending_work.add(future)
    future.add_done_callback(_pending_work.discard)


def is_busy() -> bool:
    """Say whether any work is running or queued."""
    return any(not future.done() for future in tuple(_pending_work))


def refuse_waiting_work() -> None:
    """Refuse all requests that wait for work, at shutdown. Call this function from the event loop."""
    for shutdown in _shutdown_futures:
        if not shutdown.done():
            shutdown.set_result(None)


def join_parts(parts: Iterable[bytes | memoryview]) -> bytes:
    """Return the concatenated parts."""
    views = [memoryview(part) for part in parts]
    if sum(map(len, views)) <= JOINED_BYTES:
        return b"".join(views)
    whole = BytesIO()
    for view in views:
        for start in range(0, len(view), JOINED_BYTES):
            whole.write(view[start : start + JOINED_BYTES])
    return whole.getvalue()
