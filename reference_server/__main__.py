"""`python -m reference_server`: serve until SIGTERM or SIGINT.

Prints one line, its URL, when it accepts connections; nothing else unless something goes wrong.
"""

from __future__ import annotations

import argparse
import signal
import socket
import sys

import uvicorn

from reference_server import app, http_body, models
from reference_server.http_protocol import OipHttpProtocol

BACKLOG = 2048
KEEP_ALIVE_SECONDS = 30
SHUTDOWN_SECONDS = 2


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m reference_server", description="Serve every model role over HTTP.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port", type=int, default=8000, help="port to listen on, 0 for a free one (default: %(default)s)"
    )
    parser.add_argument(
        "--max-body",
        type=int,
        default=http_body.DEFAULT_LIMIT,
        metavar="BYTES",
        help="refuse larger request bodies with status 413 (default: %(default)s)",
    )
    return parser.parse_args()


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that accepts connections."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio sets TCP_NODELAY only then; without it every kept connection waits 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        raise SystemExit(f"cannot listen on {host} port {port}: {error}") from None
    return listener


def url(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def main() -> None:
    """Serve."""
    options = arguments()
    # uvicorn handles both signals while it serves and raises them again afterwards: this makes the end a clean one.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    config = uvicorn.Config(
        app.create(models.load(), options.max_body),
        http=OipHttpProtocol,
        ws="none",
        lifespan="off",
        log_level="error",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    listener = listen(options.host, options.port)
    print(url(listener), flush=True)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
