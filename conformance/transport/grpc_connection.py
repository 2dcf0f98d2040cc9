"""One HTTP/2 connection on which gRPC calls are made: what comes of each is kept as it came, stream by stream.

`grpcio` gives every call a status: where the server sent none, because it reset the stream or closed the connection, it
makes one up, and no field says so. Here the two cannot be mixed up: a status is what stands in a header of the server's
(gRPC over HTTP2, "Responses").
"""

from __future__ import annotations

import socket
import ssl
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RemoteSettingsChanged,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import ProtocolError, StreamClosedError
from h2.settings import SettingCodes
from h2.settings import Settings as H2Settings

from conformance.transport.exchange import FailureKind, TransportFailure
from conformance.transport.grpc_stream import Header, Stream
from conformance.transport.settings import Settings
from conformance.transport.unreachable import Unreachable, is_about_trust

WINDOW = 16 * 1024 * 1024  # bytes that a server may send before it has to be told to go on
HEAD = 9  # bytes in front of a frame, of which the first three are its length
FRAME = 16 * 1024  # bytes of data that every peer takes in one frame


class Connection:
    """A connection, open until something goes wrong with it.

    Attributes:
        is_usable: whether further calls can be made on it.
    """

    def __init__(self, settings: Settings) -> None:
        """Connect, and wait for the server's first frame.

        Raises:
            Unreachable: nobody takes the connection.
        """
        self._settings = settings
        self._socket = _connected(settings)
        self._http2 = H2Connection(
            H2Configuration(client_side=True, header_encoding="latin-1", validate_inbound_headers=False)
        )
        self._streams: dict[int, Stream] = {}
        self._waiting: deque[Stream] = deque()
        self._unread = bytearray()
        self._is_ready = False  # whether the server has said how many streams it takes
        self.is_usable = True
        given = {SettingCodes.INITIAL_WINDOW_SIZE: WINDOW, SettingCodes.ENABLE_PUSH: 0}
        self._http2.local_settings = H2Settings(client=True, initial_values=given)
        self._http2.initiate_connection()
        self._http2.increment_flow_control_window(WINDOW)

    def close(self) -> None:
        """Close the connection."""
        self.is_usable = False
        with suppress(OSError, ProtocolError):
            self._http2.close_connection()
            self._flush()
        with suppress(OSError):
            self._socket.close()

    def call(self, streams: Sequence[Stream], limit: int) -> None:
        """Make calls, all in flight together as far as the server lets them, and wait for the end of each.

        Args:
            streams: with what is to be sent; what came is found in them.
            limit: bytes of an answer that are read before it counts as endless.
        """
        started = time.monotonic()
        self._waiting.extend(streams)
        try:
            self._flush()
            while not all(stream.is_done for stream in streams):
                self._open_waiting()
                self._send_bodies()
                self._flush()
                self._receive(started + self._settings.timeout, limit)
                for stream in streams:
                    stream.elapsed = stream.elapsed or (time.monotonic() - started if stream.is_done else 0.0)
        except TimeoutError:
            late = f"no answer within {self._settings.timeout:g} s"
            self._give_up(streams, TransportFailure(FailureKind.TIMEOUT, late))
        except OSError as error:
            text = f"connection broken ({str(error) or type(error).__name__})"
            self._give_up(streams, TransportFailure(FailureKind.BROKEN, text))
        except ProtocolError as error:  # a call that had ended before has its answer nevertheless
            text = f"what came is no HTTP/2 ({type(error).__name__})"
            self._give_up(streams, TransportFailure(FailureKind.MALFORMED, text))
        self._streams.clear()

    def _give_up(self, streams: Sequence[Stream], failure: TransportFailure) -> None:
        self.is_usable = False
        self._waiting.clear()
        for stream in streams:
            if not stream.is_done:
                stream.failure = failure

    # --- sending ---

    def _open_waiting(self) -> None:
        """Open as many streams as the server takes at once."""
        while self._is_ready and self._waiting and self.is_usable and self._has_room():
            stream = self._waiting.popleft()
            stream.number = self._http2.get_next_available_stream_id()
            self._streams[stream.number] = stream
            self._http2.send_headers(stream.number, stream.sent)

    def _has_room(self) -> bool:
        return self._http2.open_outbound_streams < self._http2.remote_settings.max_concurrent_streams

    def _send_bodies(self) -> None:
        """Send of each stream what the server has room for, in turn, a frame of each."""
        while [number for number, stream in self._streams.items() if self._send_frame(stream)]:
            pass

    def _send_frame(self, stream: Stream) -> bool:
        """Send a frame of a stream's body; say whether there may be room for another."""
        if stream.is_done or stream.at > len(stream.body):
            return False
        room = min(FRAME, self._http2.local_flow_control_window(stream.number))
        if room <= 0:
            return False
        piece = stream.body[stream.at : stream.at + room]
        is_last = stream.at + len(piece) == len(stream.body)
        self._http2.send_data(stream.number, piece, end_stream=is_last)
        stream.at += len(piece) + is_last  # one past the end says that the end is sent, too
        return not is_last

    def _flush(self) -> None:
        if octets := self._http2.data_to_send():
            self._socket.settimeout(self._settings.timeout)
            self._socket.sendall(octets)

    # --- receiving ---

    def _receive(self, until: float, limit: int) -> None:
        """Take what has come, and wait for it where nothing has.

        Raises:
            TimeoutError: it did not come in time.
            OSError: the connection broke, or was closed.
        """
        if all(stream.is_done for stream in self._streams.values()) and self._streams and not self._waiting:
            return
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
        octets = self._socket.recv(256 * 1024)
        if not octets:
            raise ConnectionError("closed by the server")
        self._unread += octets
        for frame in _frames(self._unread):
            for event in self._http2.receive_data(frame):
                self._take(event, limit)
        self._flush()

    def _take(self, event: Event, limit: int) -> None:
        if isinstance(event, RemoteSettingsChanged):
            self._is_ready = True
        elif isinstance(event, ConnectionTerminated):
            self._go_away(event)
        stream = self._streams.get(getattr(event, "stream_id", None) or 0)
        if stream is None:
            return
        if isinstance(event, ResponseReceived):
            stream.headers = _decoded(event.headers)
        elif isinstance(event, TrailersReceived):
            stream.trailers = _decoded(event.headers)
        elif isinstance(event, DataReceived):
            self._take_data(stream, event, limit)
        elif isinstance(event, StreamEnded):
            stream.has_ended = True
            self._stop_sending(stream)
        elif isinstance(event, StreamReset) and not stream.has_ended:
            stream.reset = int(event.error_code or 0)
            stream.unprocessed = stream.reset == 7  # REFUSED_STREAM (RFC 9113, 8.7)

    def _take_data(self, stream: Stream, event: DataReceived, limit: int) -> None:
        stream.data += event.data or b""
        with suppress(StreamClosedError):
            self._http2.acknowledge_received_data(event.flow_controlled_length or 0, stream.number)
        if len(stream.data) > limit:
            stream.failure = TransportFailure(FailureKind.ENDLESS, f"answer longer than {limit} bytes")
            self.is_usable = False

    def _stop_sending(self, stream: Stream) -> None:
        """End a stream of which the server did not want to read everything."""
        if stream.at <= len(stream.body):
            with suppress(ProtocolError):
                self._http2.reset_stream(stream.number)

    def _go_away(self, event: ConnectionTerminated) -> None:
        """Take no further calls; those that the server has not begun will never be answered (RFC 9113, 6.8)."""
        self.is_usable = False
        last = event.last_stream_id if event.last_stream_id is not None else 2**31
        failure = TransportFailure(
            FailureKind.BROKEN, f"connection broken (GOAWAY, error code {int(event.error_code or 0)})"
        )
        for stream in (*self._waiting, *self._streams.values()):
            if not stream.is_done and (stream.number == 0 or stream.number > last):
                stream.failure, stream.unprocessed = failure, True
        self._waiting.clear()


def _frames(octets: bytearray) -> Iterator[bytes]:
    """Take whole frames off the front, one at a time: what is wrong with one says nothing of those before it."""
    while len(octets) >= HEAD and len(octets) >= (size := HEAD + int.from_bytes(octets[:3], "big")):
        frame = bytes(octets[:size])
        del octets[:size]
        yield frame


def _decoded(headers: object) -> tuple[Header, ...]:
    """Return a block of headers as texts."""
    pairs: list[tuple[str | bytes, str | bytes]] = list(headers or ())  # type: ignore[call-overload]
    return tuple((_text(name), _text(value)) for name, value in pairs)


def _text(octets: str | bytes) -> str:
    return octets if isinstance(octets, str) else octets.decode("latin-1")


# --- the socket ------------------------------------------------------------------------------------------------------


def _connected(settings: Settings) -> socket.socket:
    """Return a socket that is connected, through TLS where the target has that.

    Raises:
        Unreachable: it cannot be connected, or whoever answers cannot be trusted.
    """
    address = settings.grpc_address
    try:
        plain = socket.create_connection((address.host, address.port), settings.timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return _context(settings).wrap_socket(plain, server_hostname=address.host) if address.tls else plain
    except OSError as error:
        raise Unreachable(
            f"cannot connect to {address.url}: {error}",
            is_untrusted=is_about_trust(error),
            is_refused=isinstance(error, ConnectionRefusedError),
        ) from error


def _context(settings: Settings) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.ca_file)
    context.set_alpn_protocols(["h2"])
    if settings.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
