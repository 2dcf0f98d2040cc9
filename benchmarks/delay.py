"""A proxy that holds back every answer for as long as a network would, and loses no speed otherwise."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

PIECE = 1 << 16


@contextmanager
def delayed(url: str, latency: float) -> Iterator[str]:
    """Yield the address of a proxy in front of a server.

    Args:
        url: of the server.
        latency: seconds from a request to its answer, there and back.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    parts = urlsplit(url)

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind = await asyncio.open_connection(parts.hostname, parts.port)
        await asyncio.gather(_piped(reader, behind[1], 0), _piped(behind[0], writer, latency))

    listening = asyncio.run_coroutine_threadsafe(asyncio.start_server(pass_on, "127.0.0.1", 0), loop).result()
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        loop.call_soon_threadsafe(listening.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


async def _piped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, wait: float) -> None:
    """Pass everything on, each piece as long after it came as `wait` says."""
    loop = asyncio.get_running_loop()
    under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def deliver() -> None:
        while True:
            due, piece = await under_way.get()
            await asyncio.sleep(max(0.0, due - loop.time()))
            if not piece:
                break
            writer.write(piece)
            await writer.drain()

    delivery = asyncio.create_task(deliver())
    try:
        while piece := await reader.read(PIECE):
            under_way.put_nowait((loop.time() + wait, piece))
    except ConnectionError:
        pass
    under_way.put_nowait((loop.time() + wait, b""))
    try:
        await delivery
    except ConnectionError:
        delivery.cancel()
    writer.close()
