"""Manners of sending over a bare socket: in pieces, held back, read late, one behind the other."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from conformance.transport import chunk_format, sockets
from conformance.transport.chunk_format import ChunkFormat
from conformance.transport.exchange import Exchange, GoAhead
from conformance.transport.settings import Settings
from conformance.wire.request import Message

# How long a body is held back, in seconds: a server is to ask for it at once (RFC 9110, 10.1.1).
MAX_GO_AHEAD_WAIT_S = 5.0
# For how many seconds an answer that has begun is left unread, and how many bytes of it the system takes in meanwhile.
READ_PAUSE_S, RECEIVE_BUFFER_BYTES = 0.3, 65_536


def render_request(settings: Settings, message: Message, *, chunked: bool = False) -> bytes:
    """Return a request as it goes out, its body in one chunk or as it is."""
    body = b"".join(chunk_format.PLAIN.written([message.body])) if chunked else message.body
    return sockets.render_head(settings, message, chunked=chunked) + body


def send_in_pieces(
    settings: Settings, message: Message, places: Sequence[int], written: ChunkFormat | None, *, at_once: bool
) -> Exchange:
    """Send the body in TCP segments, or in chunks, cut at the given offsets; see `Target.send_in_pieces`."""
    pieces = sockets.cut(message.body, places)
    kind = "chunk" if written else "TCP segment"
    note = f"body in {len(pieces)} {kind}s, cut at {list(places)}" if places else f"body in one {kind}"
    note += (written.described if written else "") + (", all in one write" if at_once else "")
    sent = pieces if written is None else list(written.written(pieces))
    head = sockets.render_head(settings, message, chunked=written is not None)
    with sockets.connect(settings) as connection:
        broken = connection.send([b"".join([head, *sent])] if at_once else [head, *sent])
        answer = connection.receive(message)
    return replace(answer, failure=answer.failure if answer.status else broken or answer.failure, note=note)


def send_after_go_ahead(settings: Settings, message: Message, written: ChunkFormat | None) -> Exchange:
    """Hold the body back until the server asks for it or for long enough; a final answer ends it, the body unsent."""
    body = [message.body] if written is None else list(written.written([message.body]))
    broken = None
    with sockets.connect(settings) as connection:
        connection.send([sockets.render_head(settings, message, chunked=written is not None)])
        go_ahead = connection.await_go_ahead(message, min(MAX_GO_AHEAD_WAIT_S, settings.timeout))
        if go_ahead is not GoAhead.NOT_NEEDED:
            broken = connection.send(body)
        answer = connection.receive(message)
    failure = answer.failure if answer.status else broken or answer.failure
    return replace(answer, failure=failure, go_ahead=go_ahead, note="body held back")


def send_and_read_late(settings: Settings, message: Message) -> Exchange:
    """Send a message, and leave its answer unread for a moment, with little room for it on this side."""
    with sockets.connect(settings) as connection:
        connection.set_receive_buffer(RECEIVE_BUFFER_BYTES)
        connection.send([render_request(settings, message)])
        connection.dawdle(READ_PAUSE_S)
        return replace(connection.receive(message), note="answer left unread for a moment")


def send_on_one_connection(
    settings: Settings, messages: Sequence[Message], *, pipelined: bool, chunked: Collection[int]
) -> list[Exchange]:
    """Send messages on one connection, until the server closes it; see `Target.send_on_one_connection`."""
    texts = [render_request(settings, message, chunked=place in chunked) for place, message in enumerate(messages)]
    note = f"{'pipelined' if pipelined else 'one after the other'} on one connection"
    answers: list[Exchange] = []
    with sockets.connect(settings) as connection:
        if pipelined:
            connection.send([b"".join(texts)])
        for text, message in zip(texts, messages, strict=True):
            if not pipelined:
                connection.send([text])
            answers.append(replace(connection.receive(message), note=note))
            if answers[-1].status is None or not connection.is_kept:
                break
    return answers
