"""Ends a connection whose client does not take what is sent to it."""

from __future__ import annotations

import asyncio


class Unsent:
    """Looks now and then whether what waits to be sent becomes less; a connection where it does not is at its end."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, patience: float) -> None:
        self._transport = transport
        self._loop = loop
        self._patience = patience
        self._size = transport.get_write_buffer_size()
        self._timer = loop.call_later(patience, self._look)

    def stop(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def _look(self) -> None:
        size = self._transport.get_write_buffer_size()
        if size >= self._size:
            self._transport.abort()
            return
        self._size = size
        self._timer = self._loop.call_later(self._patience, self._look)
