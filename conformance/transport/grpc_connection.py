"""An HTTP/2 connection for gRPC calls, which records each stream unchanged.

The library `grpcio` gives every call a status. If the server sent no status, because it reset the stream or closed the
connection, `grpcio` invents a status, and the caller cannot tell. Here a status is always a header that the server sent
(gRPC over HTTP2, "Responses").
"""

from __future__ import annotations

import socket
import ssl
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    Event,
    InformationalResponseReceived,
    RemoteSettingsChanged,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import DenialOfServiceError, ProtocolError, StreamClosedError
from h2.settings import SettingCodes
from h2.settings import Settings as H2Settings

from conformance.spec.extensions import GRPC
from conformance.transport.exchange import FailureKind, TransportFailure
from conformance.transport.grpc_stream import (
    MAX_FRAME_BYTES,
    PREFIX_BYTES,
    FrameError,
    GoAway,
    Header,
    Stream,
    cut_frames,
    parse_goaway,
    read_declared_length,
)
from conformance.transport.settings import Settings
from conformance.transport.unreachable import UnreachableError, describe_missing_tls, is_certificate_error


def connect(settings: Settings) -> socket.socket:
    """Return a connected socket, with TLS if the target uses it.

    Raises UnreachableError: the connection fails, or the certificate is not trusted.
    """
    address = settings.grpc_address
    try:
        context = _build_tls_context(settings) if address.tls else None
        plain = socket.create_connection((address.host, address.port), settings.timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return context.wrap_socket(plain, server_hostname=address.host) if context else plain
    except OSError as error:
        raise UnreachableError(
            f"cannot connect to {address.url}: {error}{describe_missing_tls(error, GRPC)}",
            is_untrusted=is_certificate_error(error),
            is_refused=isinstance(error, ConnectionRefusedError),
            transport=GRPC,
        ) from error


def _build_tls_context(settings: Settings) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.ca_file)
    context.set_alpn_protocols(["h2"])
    if settings.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def send_until(connection: socket.socket, octets: bytes, until: float) -> None:
    """Send all bytes before a deadline.

    `socket.sendall` is not used, because it restarts its timeout with each TLS record.

    `octets`: the bytes to send.
    `until`: the deadline, on the clock of `time.monotonic`.

    Raises:
        TimeoutError: the peer does not read the bytes in time.
        OSError: the connection broke.
    """
    left = memoryview(octets)
    while left:
        connection.settimeout(compute_seconds_until(until))
        left = left[connection.send(left) :]


def compute_seconds_until(until: float) -> float:
    """Return the seconds until a deadline on the clock of `time.monotonic`.

    Raises TimeoutError: the deadline has passed.
    """
    seconds = until - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


WINDOW_BYTES = 16 * 1024 * 1024  # flow control window: bytes that a server may send before an update
CANCEL_PAUSE_S = 0.005  # seconds between a call and its reset, in which the server begins the call
# The events that count as progress of an answer; without them the server counts as silent.
ANSWER_EVENTS = (InformationalResponseReceived, ResponseReceived, TrailersReceived, StreamReset, StreamEnded)


class GrpcConnection:
    """An HTTP/2 connection for gRPC calls, which stays open until an error.

    `is_usable`: whether the connection accepts further calls.
    """

    def __init__(self, settings: Settings, window_bytes: int | None = None) -> None:
        """Connect, and prepare the first frames; they are sent with the first call.

        `window_bytes` is the flow control window of each stream; by default it is that of the connection.

        Raises UnreachableError: the connection fails.
        """
        self._settings = settings
        self._socket = connect(settings)
        self._http2 = H2Connection(
            H2Configuration(client_side=True, header_encoding="latin-1", validate_inbound_headers=False)
        )
        self._streams: dict[int, Stream] = {}
        self._waiting: deque[Stream] = deque()
        self._unread = bytearray()
        self._is_ready = False  # whether the server has announced its limit of streams
        self._silence_deadline = self._calls_deadline = 0.0  # see `call`
        self.is_usable = True
        initial_settings = {SettingCodes.INITIAL_WINDOW_SIZE: window_bytes or WINDOW_BYTES, SettingCodes.ENABLE_PUSH: 0}
        self._http2.local_settings = H2Settings(client=True, initial_values=initial_settings)
        self._http2.initiate_connection()
        self._http2.increment_flow_control_window(WINDOW_BYTES)

    def close(self) -> None:
        """Close the connection."""
        self.is_usable = False
        with suppress(OSError, ProtocolError):
            self._http2.close_connection()
            self._socket.settimeout(0)
            self._socket.send(self._http2.data_to_send())
        with suppress(OSError):
            self._socket.close()

    def call(self, streams: Sequence[Stream], limit: int, until: float) -> None:
        """Make calls, as many concurrently as the server allows, and wait for the end of each.

        The calls fail after `Settings.answer_timeout` seconds without progress on any stream; frames that are not part
        of a stream, such as PING, do not count as progress.

        Args:
            streams: the calls with the data to send; they receive the answers.
            limit: the maximum number of bytes of all answers together; longer answers count as endless.
            until: the deadline of all calls, on the clock of `time.monotonic`.
        """
        started = time.monotonic()
        self._calls_deadline = until
        self._restart_silence_timeout()
        self._waiting.extend(streams)
        try:
            while not all(stream.is_done for stream in streams):
                self._open_waiting()
                self._send_bodies()
                self._flush_output()
                self._receive_frames(limit)
                for stream in streams:
                    stream.elapsed = stream.elapsed or (time.monotonic() - started if stream.is_done else 0.0)
        except (OSError, FrameError, ProtocolError) as error:
            self._fail_streams(streams, self._classify_error(error))  # a finished call keeps its answer
        self._streams.clear()

    def cancel(self, stream: Stream, until: float) -> None:
        """Start a call, send as much of its message as flow control allows, and reset the stream.

        A short pause before the reset lets the server begin to process the call. The stream gets a failure only if the
        connection breaks.
        """
        self._calls_deadline = until
        self._restart_silence_timeout()
        self._waiting.append(stream)
        try:
            self._open_waiting()
            while self._waiting and self.is_usable:
                self._receive_frames(0)
                self._open_waiting()
            self._send_bodies()
            self._flush_output()
            time.sleep(CANCEL_PAUSE_S)
            if stream.number and self.is_usable:
                self._http2.reset_stream(stream.number, ErrorCodes.CANCEL)
                self._flush_output()
        except (OSError, FrameError, ProtocolError) as error:
            self._fail_streams([stream], self._classify_error(error))
        self._streams.clear()

    def _restart_silence_timeout(self) -> None:
        """Allow `Settings.answer_timeout` seconds from now until the next progress."""
        self._silence_deadline = time.monotonic() + self._settings.answer_timeout

    def _classify_error(self, error: Exception) -> TransportFailure:
        """Return the failure of calls that this error has ended."""
        if isinstance(error, TimeoutError):
            if self._silence_deadline < self._calls_deadline:  # not by the clock: many frames may take long to process
                return TransportFailure(
                    FailureKind.TIMEOUT, f"no answer within {round(self._settings.answer_timeout, 3):g} s"
                )
            late = f"answer not complete within {self._settings.deadline:g} s"
            return TransportFailure(FailureKind.ENDLESS, late)
        if isinstance(error, OSError):
            text = f"connection broken ({str(error) or type(error).__name__})"
            return TransportFailure(FailureKind.BROKEN, text)
        text = str(error) if isinstance(error, FrameError) else type(error).__name__
        if isinstance(error, DenialOfServiceError):
            text = "more headers than the suite reads"
        return TransportFailure(FailureKind.MALFORMED, f"the server does not speak HTTP/2 ({text})")

    def _fail_streams(self, streams: Sequence[Stream], failure: TransportFailure) -> None:
        self.is_usable = False
        self._waiting.clear()
        for stream in streams:
            if not stream.is_done:
                stream.failure = failure

    # --- sending ---

    def _open_waiting(self) -> None:
        """Open as many waiting streams as the server allows."""
        while self._is_ready and self._waiting and self.is_usable and self._allows_another_stream():
            stream = self._waiting.popleft()
            stream.number = self._http2.get_next_available_stream_id()
            self._streams[stream.number] = stream
            self._http2.send_headers(stream.number, stream.sent)

    def _allows_another_stream(self) -> bool:
        return self._http2.open_outbound_streams < self._http2.remote_settings.max_concurrent_streams

    def _send_bodies(self) -> None:
        """Send frames of all streams in turn, as far as flow control allows."""
        while [number for number, stream in self._streams.items() if self._send_frame(stream)]:
            pass

    def _send_frame(self, stream: Stream) -> bool:
        """Send one frame of a stream's body; return whether flow control may allow another frame."""
        if stream.is_done or stream.at > len(stream.body):
            return False
        room = min(MAX_FRAME_BYTES, self._http2.local_flow_control_window(stream.number))
        if room <= 0:
            return False
        piece = stream.body[stream.at : stream.at + room]
        is_last = stream.at + len(piece) == len(stream.body)
        self._http2.send_data(stream.number, piece, end_stream=is_last)
        stream.at += len(piece) + is_last  # one past the end means that the end of the stream is sent
        self._restart_silence_timeout()
        return not is_last

    def _flush_output(self) -> None:
        if octets := self._http2.data_to_send():
            send_until(self._socket, octets, min(self._silence_deadline, self._calls_deadline))

    # --- receiving ---

    def _receive_frames(self, limit: int) -> None:
        """Wait for data, and process the complete frames.

        Raises:
            TimeoutError: no data came in time.
            OSError: the connection broke, or was closed.
            FrameError, ProtocolError: the data are not HTTP/2.
        """
        if all(stream.is_done for stream in self._streams.values()) and self._streams and not self._waiting:
            return
        self._socket.settimeout(compute_seconds_until(min(self._silence_deadline, self._calls_deadline)))
        octets = self._socket.recv(256 * 1024)
        if not octets:
            raise ConnectionError("closed by the server")
        self._unread += octets
        for frame in cut_frames(self._unread):
            if goaway := parse_goaway(frame):
                self._handle_goaway(goaway)  # h2 would reject further frames, but calls that were begun continue
                continue
            for event in self._http2.receive_data(frame):
                self._handle_event(event, limit)
        self._flush_output()

    def _handle_event(self, event: Event, limit: int) -> None:
        if isinstance(event, RemoteSettingsChanged):
            self._is_ready = True
        stream = self._streams.get(getattr(event, "stream_id", None) or 0)
        if stream is None:
            return
        if isinstance(event, ANSWER_EVENTS):
            self._restart_silence_timeout()
        if isinstance(event, ResponseReceived):
            stream.headers = _decode_headers(event.headers)
        elif isinstance(event, TrailersReceived):
            stream.trailers = _decode_headers(event.headers)
        elif isinstance(event, DataReceived):
            self._handle_data(stream, event, limit)
        elif isinstance(event, StreamEnded):
            stream.has_ended = True
            self._stop_sending(stream)
        elif isinstance(event, StreamReset) and not stream.has_ended:
            stream.reset = int(event.error_code or 0)
            stream.unprocessed = stream.reset == 7  # REFUSED_STREAM (RFC 9113, 8.7)

    def _handle_data(self, stream: Stream, event: DataReceived, limit: int) -> None:
        if event.data:
            self._restart_silence_timeout()
        stream.data += event.data or b""
        with suppress(StreamClosedError):
            self._http2.acknowledge_received_data(event.flow_controlled_length or 0, stream.number)
        if (
            stream.has_messages
            and len(stream.data) >= PREFIX_BYTES
            and (length := read_declared_length(stream.data)) > limit
        ):
            self._stop_reading(stream, f"a message of {length} bytes; the suite reads at most {limit}")
        elif sum(len(one.data) - PREFIX_BYTES for one in self._streams.values()) > limit:
            self._stop_reading(stream, f"answer longer than {limit} bytes")

    def _stop_reading(self, stream: Stream, text: str) -> None:
        """End a call whose answer is too long: set its failure, and discard its data."""
        stream.failure = TransportFailure(FailureKind.ENDLESS, text)
        stream.data.clear()
        self.is_usable = False

    def _stop_sending(self, stream: Stream) -> None:
        """Reset a stream whose request the server did not read completely."""
        if stream.at <= len(stream.body):
            with suppress(ProtocolError):
                self._http2.reset_stream(stream.number)

    def _handle_goaway(self, goaway: GoAway) -> None:
        """Mark the connection as unusable; end calls that the server has not processed (RFC 9113, 6.8)."""
        self.is_usable = False
        failure = TransportFailure(FailureKind.BROKEN, f"connection broken (GOAWAY, error code {goaway.code})")
        for stream in (*self._waiting, *self._streams.values()):
            if not stream.is_done and (stream.number == 0 or stream.number > goaway.last):
                stream.failure, stream.unprocessed = failure, True
        self._waiting.clear()


def _decode_headers(headers: object) -> tuple[Header, ...]:
    """Return the names and values of a header block as text."""
    pairs: list[tuple[str | bytes, str | bytes]] = list(headers or ())  # type: ignore[call-overload]
    return tuple((_decode_text(name), _decode_text(value)) for name, value in pairs)


def _decode_text(octets: str | bytes) -> str:
    return octets if isinstance(octets, str) else octets.decode("latin-1")
