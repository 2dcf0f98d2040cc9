"""The HTTP peer: a thread for each connection, requests read with h11, answers written as the bytes of a script."""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import unquote

from conformance.clients.answers.script import Ending, HttpAnswer
from conformance.clients.peer import peer_metadata
from conformance.clients.peer.received_request import ReceivedRequest
from conformance.clients.peer.request_reader import RequestReader, is_kept_alive
from conformance.clients.peer.scenario import PeerScript, ScriptFault
from conformance.wire.client_request import ClientRequest

MAX_IDLE_S: Final = 30.0  # seconds that a connection waits for a request
MAX_SILENCE_S: Final = 5.0  # seconds that the peer is silent before it closes: more than any caller waits
_MODEL: Final = re.compile(r"/?v2/models/([^/]+)(?:/versions/[^/]+)?(?:/([a-z]+))?/?$")
_NO_LINGER: Final = struct.pack("ii", 1, 0)  # a close that resets the connection


class HttpPeer:
    """A peer on a free port of 127.0.0.1."""

    def __init__(self, stage: PeerScript) -> None:
        self._stage = stage
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._connections: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._is_closing = False
        self._accepting = threading.Thread(target=self._accept)
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._accepting.start()

    def close(self) -> None:
        """Close every connection and wait for every thread."""
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
        reader = RequestReader(connection)
        try:
            with suppress(OSError, ScriptFault):
                while not self._is_closing and (received := reader.read()) is not None:
                    answer = self._answer(received)
                    _write(connection, answer)
                    if not _goes_on(connection, received, answer):
                        break
        finally:
            with self._lock:
                self._connections.discard(connection)
            connection.close()

    # --- what is answered ---

    def _answer(self, received: ClientRequest) -> HttpAnswer:
        found = _MODEL.search(received.path.partition("?")[0])
        model = unquote(found[1]) if found else None
        if received.is_inference or not received.path:
            return self._inferred(received, model)
        document = self._document(received.path, model, (found and found[2]) or "")
        return (
            make_json_answer(404, {"error": "there is no such thing here"})
            if document is None
            else make_json_answer(200, document)
        )

    def _inferred(self, received: ClientRequest, model: str | None) -> HttpAnswer:
        scene = self._stage.scene_of(model)
        if scene is None:
            return make_json_answer(404, {"error": "nothing is asked of this peer"})
        place = scene.place_of(model)
        answer = (
            make_json_answer(400, {"error": received.trouble}) if received.trouble else scene.answer(received, place)
        )
        if not isinstance(answer, HttpAnswer):
            raise TypeError("an answer over gRPC to a request over HTTP")
        scene.keep(place, ReceivedRequest(received, answer, self.address))
        return answer

    def _document(self, path: str, model: str | None, what: str) -> dict[str, Any] | None:
        """Return what is said to a request that asks for no inference; None where nothing is there."""
        if model is None:
            return _OF_SERVER.get(path.partition("?")[0].strip("/"))
        asked = self._stage.inference_of(model)
        if asked is None:
            return None
        inference, script = asked
        match what:
            case "":
                return peer_metadata.make_model_metadata(inference, script)
            case "config":
                return peer_metadata.make_model_config(inference, script)
            case "stats":
                return peer_metadata.make_model_statistics(inference, self._stage.count_of(model))
            case "ready":
                return {"name": inference.model, "ready": True}
        return None


_OF_SERVER: Final[Mapping[str, dict[str, Any]]] = {
    "v2": peer_metadata.SERVER,
    "v2/health/live": {"live": True},
    "v2/health/ready": {"ready": True},
}


def make_json_answer(status: int, document: dict[str, Any]) -> HttpAnswer:
    """Return an answer of JSON alone, in the plainest form."""
    body = json.dumps(document).encode()
    headers = (("Content-Type", "application/json"), ("Content-Length", str(len(body))))
    head = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return HttpAnswer((f"HTTP/1.1 {status} -\r\n{head}\r\n".encode() + body,), status, headers, body)


def _write(connection: socket.socket, answer: HttpAnswer) -> None:
    for number, piece in enumerate(answer.pieces):
        if number and answer.pause:
            time.sleep(answer.pause)
        connection.sendall(piece)


def _goes_on(connection: socket.socket, received: ClientRequest, answer: HttpAnswer) -> bool:
    """Say whether the connection is there for another request; do with it what the answer says otherwise."""
    if answer.ending is Ending.SILENT:
        connection.settimeout(MAX_SILENCE_S)
        connection.recv(1)  # until the client closes, or nobody can be waiting any more
        return False
    if answer.ending is Ending.RESET:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        return False
    return answer.ending is Ending.KEEP and is_kept_alive(received)
