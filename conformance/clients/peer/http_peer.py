"""The HTTP peer: a thread for each connection, requests parsed with h11, answers written as the bytes of a script.

h11 parses the framing and reports its faults; requests are kept unchanged.
"""

from __future__ import annotations

import re
import socket
import struct
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import unquote

import h11

from conformance.clients.answers.script import Ending, HttpAnswer, make_json_answer
from conformance.clients.peer.scenario import (
    SERVER,
    PeerScript,
    ReceivedRequest,
    ScriptFault,
    make_model_config,
    make_model_metadata,
    make_model_statistics,
)
from conformance.clients.recording.masking import mask_request
from conformance.spec.text import escape_text
from conformance.wire.client_request import ClientRequest

MAX_HEAD_BYTES: Final = 64 * 1024  # bytes of a request head
MAX_BODY_BYTES: Final = 64 * 1024 * 1024
_READ: Final = 64 * 1024
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class RequestReader:
    """Reads the requests of one connection, one after the other."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._unread_bytes = b""

    def read(self) -> ClientRequest | None:
        """Return the next request; None if the client closed the connection or sent no request in time.

        An invalid or incomplete request is returned as far as it was received; its `trouble` is the reason.
        """
        parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
        if self._unread_bytes:  # h11 takes empty data for the end of the connection
            parser.receive_data(self._unread_bytes)
        head: h11.Request | None = None
        body = bytearray()
        try:
            while not isinstance(event := self._read_event(parser), h11.EndOfMessage):
                if isinstance(event, h11.Request):
                    head = event
                elif isinstance(event, h11.Data):
                    body += event.data
                elif isinstance(event, h11.ConnectionClosed):
                    return None
                if len(body) > MAX_BODY_BYTES:
                    return build_client_request(head, bytes(body), f"a body of more than {MAX_BODY_BYTES} bytes")
        except h11.RemoteProtocolError as error:
            return build_client_request(head, bytes(body), escape_text(str(error)))
        except OSError:
            return (
                None
                if head is None
                else build_client_request(head, bytes(body), "the rest of the request did not arrive")
            )
        self._unread_bytes = parser.trailing_data[0]
        return build_client_request(head, bytes(body), "")

    def _read_event(self, parser: h11.Connection) -> object:
        """Return the next event of h11 other than NEED_DATA; read from the socket as long as h11 needs data."""
        while (event := parser.next_event()) is h11.NEED_DATA:
            if parser.they_are_waiting_for_100_continue:
                self._socket.sendall(_CONTINUE)
            parser.receive_data(self._socket.recv(_READ))
        return event


def build_client_request(head: h11.Request | None, body: bytes, trouble: str) -> ClientRequest:
    """Build a `ClientRequest` from a request parsed by h11; `head` is None if the head is invalid."""
    if head is None:
        return ClientRequest("", "", body=body, trouble=trouble)
    headers = tuple((_decode_latin1(name), _decode_latin1(value)) for name, value in head.headers.raw_items())
    chunked = any(name.lower() == "transfer-encoding" and value.lower().endswith("chunked") for name, value in headers)
    version = f"HTTP/{_decode_latin1(head.http_version)}"
    return ClientRequest(
        _decode_latin1(head.method), _decode_latin1(head.target), headers, body, version, chunked, trouble
    )


def _decode_latin1(octets: bytes) -> str:
    return bytes(octets).decode("latin-1")


MAX_IDLE_S: Final = 30.0  # seconds that a connection waits for a request
MAX_SILENCE_S: Final = 5.0  # seconds of silence before the peer closes: longer than any caller waits
_CLOSING_DELAY_S: Final = 0.1  # seconds that a connection is idle before the peer closes it unannounced
MAX_CLIENT_CLOSE_S: Final = 0.5  # seconds that a client has to notice that the peer closed a connection
_MODEL: Final = re.compile(r"/?v2/models/([^/]+)(?:/versions/[^/]+)?(?:/([a-z]+))?/?$")
_NO_LINGER: Final = struct.pack("ii", 1, 0)  # a close that resets the connection


class HttpPeer:
    """The scripted HTTP server, on a free port of 127.0.0.1."""

    def __init__(self, peer_script: PeerScript) -> None:
        self._peer_script = peer_script
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._connections: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._is_closing = False
        self._accepting = threading.Thread(target=self._accept)
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._accepting.start()

    def close(self) -> None:
        """Close the port and every connection, and wait until every thread has ended."""
        self._is_closing = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()
        with self._lock:
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection.settimeout(MAX_IDLE_S)
                thread = threading.Thread(target=self._serve, args=(connection,))
                with self._lock:
                    self._connections.add(connection)
                    self._threads = [*filter(threading.Thread.is_alive, self._threads), thread]
                    thread.start()

    def _serve(self, connection: socket.socket) -> None:
        reader, answer = RequestReader(connection), None
        try:
            with suppress(OSError, ScriptFault):
                while not self._is_closing and (received := reader.read()) is not None:
                    answer = self._build_answer(received)
                    _send_answer(connection, answer)
                    if not _end_answer(connection, received, answer):
                        break
        finally:
            with self._lock:
                self._connections.discard(connection)
            connection.close()
            if answer is not None:
                answer.closed.set()

    # --- answers ---

    def _build_answer(self, received: ClientRequest) -> HttpAnswer:
        found = _MODEL.search(received.path.partition("?")[0])
        model = unquote(found[1]) if found else None
        if received.is_inference or not received.path:
            return self._build_inference_answer(received, model)
        document = self._find_document(received.path, model, (found and found[2]) or "")
        return (
            make_json_answer(404, {"error": "this peer has no such path or model"}, received)
            if document is None
            else make_json_answer(200, document, received)
        )

    def _build_inference_answer(self, received: ClientRequest, model: str | None) -> HttpAnswer:
        received = mask_request(received)
        scenario = self._peer_script.find_scenario(model)
        if scenario is None:
            return make_json_answer(404, {"error": "this peer has no script yet"}, received)
        index = scenario.match_inference(model)
        answer = scenario.answer(received, index)
        if not isinstance(answer, HttpAnswer):
            raise TypeError("the script returned a gRPC answer to an HTTP request")
        scenario.store_request(index, ReceivedRequest(received, answer, self.address))
        return answer

    def _find_document(self, path: str, model: str | None, endpoint: str) -> dict[str, Any] | None:
        """Return the JSON for a request other than an inference; None if the path or the model does not exist."""
        if model is None:
            return _SERVER_DOCUMENTS.get(path.partition("?")[0].strip("/"))
        asked = self._peer_script.find_inference(model)
        if asked is None:
            return None
        inference, script = asked
        match endpoint:
            case "":
                return make_model_metadata(inference, script)
            case "config":
                return make_model_config(inference, script)
            case "stats":
                return make_model_statistics(inference, self._peer_script.count_requests(model))
            case "ready":
                return {"name": inference.model, "ready": True}
        return None


_SERVER_DOCUMENTS: Final[Mapping[str, dict[str, Any]]] = {
    "v2": SERVER,
    "v2/health/live": {"live": True},
    "v2/health/ready": {"ready": True},
}


def _send_answer(connection: socket.socket, answer: HttpAnswer) -> None:
    for number, piece in enumerate(answer.pieces):
        if number and answer.pause:
            time.sleep(answer.pause)
        connection.sendall(piece)


def _end_answer(connection: socket.socket, received: ClientRequest, answer: HttpAnswer) -> bool:
    """Put the connection into the state that the answer's `ending` requires; return whether it stays open."""
    if answer.ending is Ending.SILENT:
        connection.settimeout(MAX_SILENCE_S)
        connection.recv(1)  # until the client closes, or the timeout is over
        return False
    if answer.ending is Ending.RESET:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        return False
    if answer.ending is Ending.KEEP:
        return received.keeps_connection
    if answer.ending is Ending.CLOSE_LATER:
        time.sleep(_CLOSING_DELAY_S)
    _close_and_wait_for_client(connection)
    return False


def _close_and_wait_for_client(connection: socket.socket) -> None:
    """Close the peer's side of a connection, and wait at most `MAX_CLIENT_CLOSE_S` for the client to close its side.

    Without this wait, the client might send a POST on the closed connection. No client has to repeat that POST, so that
    the result of the row would depend on chance.
    """
    connection.shutdown(socket.SHUT_WR)
    connection.settimeout(MAX_CLIENT_CLOSE_S)
    connection.recv(_READ)
