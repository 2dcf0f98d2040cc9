"""How uvicorn serves the application: one configuration for the command and for tests."""

from __future__ import annotations

from typing import Any

import uvicorn

from reference_server.http_protocol import make_protocol
from reference_server.limits import DEFAULT, Limits


def make_uvicorn_config(
    application: Any, *, log_level: str, keep_alive_seconds: int, shutdown_seconds: int, limits: Limits = DEFAULT
) -> uvicorn.Config:
    """Return a configuration: HTTP alone, an OIP error for what is none, and no header but those of the application.

    Args:
        application: an ASGI 3 application.
        log_level: of uvicorn's own messages.
        keep_alive_seconds: after which an idle connection is closed.
        shutdown_seconds: that requests in flight have at the end.
        limits: on heads; those on bodies are the application's.
    """
    return uvicorn.Config(
        application,
        interface="asgi3",
        loop="asyncio",  # whatever else is installed: what becomes of clients is tested with this one
        http=make_protocol(limits),
        ws="none",
        lifespan="off",
        log_level=log_level,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=keep_alive_seconds,
        timeout_graceful_shutdown=shutdown_seconds,
    )
