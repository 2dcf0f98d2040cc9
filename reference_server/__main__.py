"""`python -m reference_server`: serve until SIGTERM or SIGINT.

Prints its URL on one line when it accepts connections, and with `--grpc-port` a second line, `grpc HOST:PORT`. It
prints nothing else unless an error occurs.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from difflib import get_close_matches
from typing import NoReturn

from reference_server import app, faults, models, steps, workers
from reference_server.limits import Limits, add_options, read_limits, set_limits
from reference_server.uvicorn_server import QuietServer, make_uvicorn_config

BACKLOG = 2048
KEEP_ALIVE_SECONDS = 30
SHUTDOWN_SECONDS = 2
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Parser(argparse.ArgumentParser):
    """An argument parser whose usage errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print the message with the command that explains the options, and exit."""
        self.exit(2, f"{self.prog}: error: {message}; see `{self.prog} --help`\n")


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = Parser(prog="oip-conformance serve", description="Serve every model role over HTTP and gRPC.")
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    add("--port", type=int, default=8000, help="port to listen on, 0 for a free one (default: %(default)s)")
    add("--grpc-port", type=int, metavar="PORT", help="serve gRPC as well, on this port, 0 for a free one")
    add_options(parser)
    add(
        "--with-stdin",
        action="store_true",
        help="exit when standard input ends, for example when the parent process exits",
    )
    add("--model", action="append", metavar="ROLE", help="serve only this model role (repeatable; default: all)")
    add("--pack", action="append", default=[], metavar="NAME", help="serve the roles of this installed pack as well")
    add("--fault", action="append", default=[], metavar="NAME", help="serve with this fault (repeatable)")
    add(
        "--list-faults",
        nargs="?",
        const="text",
        choices=("text", "json"),
        help="print every fault with the requirements that it breaks, as text or JSON (default: %(const)s)",
    )
    add("--list-steps", action="store_true", help="print every step of the server that a fault can replace")
    options = parser.parse_args()
    for name in options.fault:
        if name not in faults.load():
            parser.error(f"no fault {name!r}{_suggest_names(name, faults.load())} (--list-faults prints all)")
    try:
        known = models.load(*options.pack)
    except ValueError as error:
        parser.error(str(error))
    for role in options.model or ():
        if role not in known:
            parser.error(f"no model role {role!r}{_suggest_names(role, known)} (`oip-conformance roles` prints all)")
    return options


def _suggest_names(name: str, known: Iterable[str]) -> str:
    """Return suggestions for a misspelled name, as the end of a message."""
    near = get_close_matches(name, known, n=3)
    return f", did you mean {', '.join(near)}?" if near else ""


def format_faults() -> Iterator[str]:
    """Yield a line for each fault: its name, the requirements that it breaks, and what the server does."""
    for found in faults.load().values():
        yield f"{found.name:44} {', '.join(found.breaks) or 'everything'}: {found.summary}"


def dump_faults() -> str:
    """Return every fault as a JSON array, in the order of `faults.load`."""
    kept = ("name", "summary", "area", "steps", "breaks", "walks", "over_grpc")
    return json.dumps([{name: getattr(found, name) for name in kept} for found in faults.load().values()], indent=1)


def format_steps() -> Iterator[str]:
    """Yield a line for each step that a fault can replace."""
    yield from map(steps.describe_step, steps.list_names())


def end_with_stdin() -> None:
    """Wait for the end of standard input, then send SIGTERM to this process."""
    while sys.stdin.buffer.read(65536):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


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


def get_url(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def require_grpc(option: str) -> None:
    """Exit with status 4 if gRPC, which an option needs, is not installed."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # grpc would log the errors that are reported here
    try:
        for name in ("grpc", "tritonclient.grpc"):
            importlib.import_module(name)
    except Exception as error:  # incompatible package versions raise errors of many types
        print(f"{option} needs the extra grpc: pip install 'oip-conformance[grpc]' ({error})", file=sys.stderr)
        raise SystemExit(4) from None


@contextmanager
def serve_grpc(served_models: Mapping[str, models.Model], host: str, port: int, max_body: int) -> Iterator[str]:
    """Serve over gRPC until the end of the block; yield the line that announces the address."""
    from reference_server.grpc_server import GrpcServer  # needs the extra `grpc`

    try:
        server = GrpcServer(served_models, host, port, max_body)
    except OSError as error:
        raise SystemExit(f"cannot listen on {host} port {port}: {error}") from None
    with server:
        yield f"grpc {server.address}"


def main() -> None:
    """Run the command."""
    options = parse_arguments()
    if options.list_faults:
        print(dump_faults() if options.list_faults == "json" else "\n".join(format_faults()))
        return
    if options.list_steps:
        require_grpc("--list-steps")
        print("\n".join(format_steps()))
        return
    if options.grpc_port is not None:
        require_grpc("--grpc-port")
    # uvicorn handles both signals while it serves and raises them again afterwards: exit cleanly then.
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: sys.exit(0))
    with ExitStack() as stack:
        for name in options.fault:
            stack.enter_context(faults.switch_on(faults.load()[name]))
        if options.with_stdin:
            threading.Thread(target=end_with_stdin, daemon=True).start()
        limits = read_limits(options)
        set_limits(limits)
        # Loaded once the faults are switched on.
        loaded = models.load(*options.pack)
        served = loaded if options.model is None else {name: loaded[name] for name in loaded if name in options.model}
        serve(served, listen(options.host, options.port), limits, options.grpc_port)
    # Work that nobody waits for may still run and cannot be stopped, and grpc would wait for it at interpreter exit.
    if options.grpc_port is not None or workers.is_busy():
        os._exit(0)


def serve(served: Mapping[str, models.Model], listener: socket.socket, limits: Limits, grpc_port: int | None) -> None:
    """Serve models until a signal: over HTTP, and over gRPC if `grpc_port` is given."""
    config = make_uvicorn_config(
        app.create(served, limits),
        log_level="error",
        keep_alive_seconds=KEEP_ALIVE_SECONDS,
        shutdown_seconds=SHUTDOWN_SECONDS,
        limits=limits,
    )
    host = listener.getsockname()[0]
    server = QuietServer(config)
    # uvicorn handles signals only once it serves. An earlier signal sets a flag, since an exception could get lost.
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: setattr(server, "should_exit", True))
    with nullcontext() if grpc_port is None else serve_grpc(served, host, grpc_port, limits.body) as line:
        print(get_url(listener), *([line] if line else []), sep="\n", flush=True)
        server.run(sockets=[listener])


if __name__ == "__main__":
    main()
