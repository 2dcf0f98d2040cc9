"""`python -m reference_server`: serve until SIGTERM or SIGINT.

Prints one line, its URL, when it accepts connections; nothing else unless something goes wrong.
"""

from __future__ import annotations

import argparse
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from difflib import get_close_matches

import uvicorn

from reference_server import app, faults, http_body, models
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
    parser.add_argument("--fault", metavar="NAME", help="serve with this fault, to see a check fail")
    parser.add_argument("--list-faults", action="store_true", help="print every fault with the requirements it breaks")
    options = parser.parse_args()
    if options.fault is not None and options.fault not in faults.load():
        near = get_close_matches(options.fault, faults.load(), n=3)
        hint = f", did you mean {', '.join(near)}?" if near else ""
        parser.error(f"no fault {options.fault!r}{hint} (--list-faults prints all)")
    return options


def fault_lines() -> Iterator[str]:
    """Yield a line for each fault."""
    for found in faults.load().values():
        yield f"{found.name:44} {', '.join(found.breaks) or 'everything'}: {found.summary}"


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
    if options.list_faults:
        print("\n".join(fault_lines()))
        return
    # uvicorn handles both signals while it serves and raises them again afterwards: this makes the end a clean one.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    with faults.switched_on(faults.load()[options.fault]) if options.fault else nullcontext():
        serve(listen(options.host, options.port), options.max_body)


def serve(listener: socket.socket, max_body: int) -> None:
    """Serve on a listening socket until a signal comes."""
    config = uvicorn.Config(
        app.create(models.load(), max_body),
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
    print(url(listener), flush=True)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
