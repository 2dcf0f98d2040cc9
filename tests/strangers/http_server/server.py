"""A V2 / Open Inference Protocol server on http.server. `python server.py --port 0`"""

from __future__ import annotations

import argparse
import re
import signal
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from models import MODELS, Model
from protocol import ProtocolError, encode, header_length, infer, metadata

MAX_BODY = 64 << 20
MAX_LINE = 65536


class FramingError(ProtocolError):
    """The request was not read to its end: the connection cannot be used for another one."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message, status, ("Connection", "close"))  # send_header then closes it, too


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.1"  # else an unreadable request line is answered as in HTTP/0.9, without a status
    server_version = "oip-stdlib/1.0"
    timeout = 60  # an idle keep-alive connection holds a thread
    disable_nagle_algorithm = True  # head and body are two writes; Nagle would hold the second back

    def serve(self) -> None:
        try:
            body = self.read_body()  # always, also of a GET: an unread body would be taken for the next request
            answer = self.resolve()
            answer(body)
        except ProtocolError as error:
            self.reply_error(error)
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        except Exception as error:  # the client is owed an answer, the log the reason
            self.log_error("%s: %r", self.requestline, error)
            self.reply(500, encode({"error": "internal error"}))

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = serve

    def resolve(self) -> Callable[[bytes], None]:
        # Split before unescaping, so that an escaped slash stays part of a name.
        parts = [unquote(part) for part in urlsplit(self.path).path.split("/")[1:]]
        method, answer = self.match(parts)
        if self.command != method and (self.command, method) != ("HEAD", "GET"):
            allowed = "GET, HEAD" if method == "GET" else method
            raise ProtocolError(f"{self.command} is not allowed here, use {allowed}", 405, ("Allow", allowed))
        return answer

    def match(self, parts: list[str]) -> tuple[str, Callable[[bytes], None]]:
        match parts:
            case ["v2"] | ["v2", ""]:  # the YAML writes /v2/, the text v2
                return "GET", lambda _: self.reply(200, encode(SERVER_METADATA))
            case ["v2", "health", "live" | "ready"]:  # OIP gives both the member "live"
                return "GET", lambda _: self.reply(200, encode({"live": True}))
            case ["v2", "models", name]:
                model = self.model(name)
                return "GET", lambda _: self.reply(200, encode(metadata(model)))
            case ["v2", "models", name, "ready"]:
                model = self.model(name)
                return "GET", lambda _: self.reply(200, encode({"name": model.name, "ready": True}))
            case ["v2", "models", name, "infer"]:
                model = self.model(name)
                return "POST", lambda body: self.infer(model, body)
            case ["v2", "models", name, "versions", _] | ["v2", "models", name, "versions", _, "ready" | "infer"]:
                self.model(name)
                raise ProtocolError("this server has no model versions, leave /versions/... out", 404)
        raise ProtocolError(f"there is nothing at {self.path!r}", 404)

    @staticmethod
    def model(name: str) -> Model:
        if name not in MODELS:
            raise ProtocolError(f"there is no model {name!r}", 404)
        return MODELS[name]

    def infer(self, model: Model, body: bytes) -> None:
        if (coding := self.headers.get("Content-Encoding", "identity")) != "identity":
            raise ProtocolError(f"the content coding {coding!r} is not taken", 415, ("Accept-Encoding", "identity"))
        length = header_length(self.headers.get_all("Inference-Header-Content-Length", []))
        document, binary = infer(model, body, length)
        if binary is None:
            self.reply(200, document)
        else:
            header = ("Inference-Header-Content-Length", str(len(document)))
            self.reply(200, document + binary, header, content_type="application/octet-stream")

    def framing(self) -> int | None:
        """The length of the body, None for a chunked one. Refuses whatever leaves the length open to dispute."""
        lengths = self.headers.get_all("Content-Length", [])
        codings = self.headers.get_all("Transfer-Encoding", [])
        if codings:
            if lengths:
                raise FramingError("a request cannot have Transfer-Encoding and Content-Length")
            if len(codings) > 1 or codings[0].strip().lower() != "chunked":
                raise FramingError("the only transfer coding taken is chunked", 501)
            return None
        if not lengths:
            return 0
        if len(lengths) > 1 or not re.fullmatch(r"[0-9]+", lengths[0].strip(" \t")):
            raise FramingError("Content-Length must be one decimal number of bytes")
        digits = lengths[0].strip(" \t").lstrip("0") or "0"
        if len(digits) > 18 or int(digits) > MAX_BODY:
            raise FramingError(f"the body is larger than {MAX_BODY} bytes", 413)
        return int(digits)

    def handle_expect_100(self) -> bool:
        try:
            self.framing()  # the point of the expectation: a refusal before the body is sent
        except ProtocolError as error:
            self.reply_error(error)
            return False
        return super().handle_expect_100()

    def read_body(self) -> bytes:
        length = self.framing()
        return self.read_chunks() if length is None else self.read_exactly(length)

    def read_exactly(self, length: int) -> bytes:
        data = self.rfile.read(length)
        if len(data) < length:
            raise ConnectionAbortedError("the client left before the end of its body")
        return data

    def read_line(self) -> bytes:
        line = self.rfile.readline(MAX_LINE + 1)
        if not line:
            raise ConnectionAbortedError("the client left before the end of its body")
        if not line.endswith(b"\r\n") or len(line) > MAX_LINE:
            raise FramingError("the chunked body is malformed")
        return line[:-2]

    def read_chunks(self) -> bytes:
        """http.server leaves the chunked coding to us."""
        body = bytearray()
        while True:
            head = re.fullmatch(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?", self.read_line())
            if not head:
                raise FramingError("the chunked body is malformed")
            if (size := int(head[1], 16)) == 0:
                break
            if len(body) + size > MAX_BODY:
                raise FramingError(f"the body is larger than {MAX_BODY} bytes", 413)
            body += self.read_exactly(size)
            if self.read_line():
                raise FramingError("a chunk is longer than it says")
        for _ in range(100):
            if not self.read_line():  # trailers say nothing we need
                return bytes(body)
        raise FramingError("the chunked body has too many trailers", 431)

    def reply(
        self, status: int, body: bytes, *headers: tuple[str, str], content_type: str = "application/json"
    ) -> None:
        self.send_response(status)
        for name, value in (("Content-Type", content_type), *headers):
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def reply_error(self, error: ProtocolError) -> None:
        self.reply(error.status, encode({"error": str(error)}), *error.headers)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """http.server's own refusals (bad request line, unknown method ...), as JSON instead of HTML."""
        self.reply_error(FramingError(message or HTTPStatus(code).phrase, code))

    def version_string(self) -> str:
        return self.server_version  # and not the interpreter's

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a client that went away is no error of ours
            super().handle_error(request, client_address)


SERVER_METADATA = {
    "name": "oip-stdlib",
    "version": "1.0",
    "extensions": ["binary_tensor_data", "classification"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8000, help="0 for any free port")
    with Server(("127.0.0.1", parser.parse_args().port), Handler) as server:
        # shutdown() waits for serve_forever(), which the handler has interrupted: hence the thread
        signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
