"""Answers to clients that do not read at once."""

from __future__ import annotations

import asyncio
from typing import Any

from reference_server.faults import fault
from reference_server.faults.connections import CONNECTION_MADE, Transport

MAX_STALL_S = 0.1


class _Impatient(Transport):
    """A connection that ends where none of what waits to be sent goes out for a while."""

    def write(self, data: bytes | memoryview) -> None:
        """Write data, and look after them twice."""
        super().write(data)
        asyncio.get_running_loop().call_later(MAX_STALL_S, self._look)

    def _look(self) -> None:
        asyncio.get_running_loop().call_later(MAX_STALL_S, self._give_up, self.get_write_buffer_size())

    def _give_up(self, unsent: int) -> None:
        if unsent and self.get_write_buffer_size() >= unsent:
            self.abort()


@fault(CONNECTION_MADE, breaks="HTTP-SLOW-READER", large=True)
def answer_cut_short_where_nobody_reads(original: Any, protocol: Any, transport: Any) -> None:
    """An answer of which nothing goes out for a tenth of a second is given up."""
    original(protocol, _Impatient(transport, lambda _wrapped, data: data))
