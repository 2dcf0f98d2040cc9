"""Sends requests in chosen TCP segments, chunks and pipelines, which an HTTP library would normalise."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import zip_longest

from conformance.transport.connection import connect
from conformance.transport.exchange import Exchange, GoAhead
from conformance.transport.http_request import render_head, render_request, split_at_offsets, split_head
from conformance.transport.send_options import PLAIN_CHUNKS, ChunkFormat, SendOptions
from conformance.transport.settings import Settings
from conformance.wire.request import Message

# Offsets of a body that a note names one by one.
MAX_NAMED_OFFSETS = 4
# Segment pauses after each turn of interleaved bodies: a busy server has to read from every connection meanwhile.
PAUSES_PER_TURN = 4
# Maximum wait with a held-back body, in seconds: a server should request it immediately (RFC 9110, 10.1.1).
MAX_GO_AHEAD_WAIT_S = 5.0
# The seconds for which an answer that has begun is left unread, and the size of the receive buffer meanwhile and later:
# the server cannot hand over as much before the client reads, but the rest comes in larger windows over a slow network.
READ_PAUSE_S, UNREAD_BUFFER_BYTES, RECEIVE_BUFFER_BYTES = 0.3, 4096, 65_536


def send_in_pieces(
    settings: Settings, message: Message, offsets: Sequence[int], chunks: ChunkFormat | None, *, at_once: bool
) -> Exchange:
    """Send the body in TCP segments, or in chunks, cut at the given offsets; see `Target.send_in_pieces`."""
    inner = [offset for offset in offsets if offset > 0]
    pieces = split_at_offsets(message.body, inner)
    note = _describe_pieces(pieces, inner, "chunk" if chunks else "TCP segment")
    note += (chunks.described if chunks else "") + (", all in one write" if at_once else "")
    sent = pieces if chunks is None else list(chunks.format_chunks(pieces))
    heads = split_head(render_head(settings, message, chunked=chunks is not None), offsets)
    note += f", head in {len(heads)} TCP segments" if len(heads) > 1 else ""
    options = SendOptions(segments=tuple(offsets)) if chunks is None else SendOptions("1.1", tuple(offsets), chunks)
    with connect(settings) as connection:
        connection.send([b"".join([*heads, *sent])] if at_once else [*heads, *sent])
        return connection.receive(message, note=note, send_options=options)


def _describe_pieces(pieces: Sequence[bytes], offsets: Sequence[int], kind: str) -> str:
    """Return a phrase for the pieces of a body: how many they are, and where it is cut, or how long they are."""
    if not offsets:
        return f"body in one {kind}"
    if len(offsets) <= MAX_NAMED_OFFSETS:
        return f"body in {len(pieces)} {kind}s, cut at {' and '.join(map(str, offsets))}"
    least, most = min(map(len, pieces)), max(map(len, pieces))
    sizes = f"{most}" if least == most else f"{least} to {most}"
    return f"body in {len(pieces):,} {kind}s of {sizes} byte{'s' if most > 1 else ''}"


def send_interleaved(
    settings: Settings, messages: Sequence[Message], offsets: Sequence[int], chunks: ChunkFormat | None
) -> list[Exchange]:
    """Send each message on its own connection, with interleaved bodies; see `Target.send_interleaved`."""
    bodies = [split_at_offsets(message.body, offsets) for message in messages]
    pieces = bodies if chunks is None else [list(chunks.format_chunks(body)) for body in bodies]
    heads = [[render_head(settings, message, chunked=chunks is not None)] for message in messages]
    options = SendOptions(segments=tuple(offsets)) if chunks is None else SendOptions("1.1", tuple(offsets), chunks)
    note = f"body in {'chunks' if chunks else 'TCP segments'}, interleaved with {len(messages) - 1} other bodies"
    answers = []
    with ExitStack() as stack:
        opened = [stack.enter_context(ExitStack()) for _ in messages]
        connections = [own.enter_context(connect(settings)) for own in opened]
        for turn in zip_longest(*[head + body for head, body in zip(heads, pieces, strict=True)], fillvalue=b""):
            for connection, piece in zip(connections, turn, strict=True):
                connection.send([piece] if piece else [])
            time.sleep(PAUSES_PER_TURN * settings.segment_pause)
        for own, connection, message in zip(opened, connections, messages, strict=True):
            answers.append(connection.receive(message, note=note, send_options=options))
            own.close()  # a server may serve one connection after the other
    return answers


def send_after_go_ahead(settings: Settings, message: Message, chunks: ChunkFormat | None) -> Exchange:
    """Send the body after the server requests it or the wait ends, but not after a final answer.

    See `Target.send_after_go_ahead`.
    """
    body = [message.body] if chunks is None else list(chunks.format_chunks([message.body]))
    options = SendOptions(chunked=None if chunks is None else (), chunk_format=chunks or PLAIN_CHUNKS)
    with connect(settings) as connection:
        connection.send([render_head(settings, message, chunked=chunks is not None)])
        go_ahead = connection.await_go_ahead(message, min(MAX_GO_AHEAD_WAIT_S, settings.timeout))
        if go_ahead is not GoAhead.NOT_NEEDED:
            connection.send(body)
        answer = connection.receive(message, note="body held back after Expect: 100-continue", send_options=options)
    return replace(answer, go_ahead=go_ahead)


def send_and_read_late(settings: Settings, message: Message) -> Exchange:
    """Send a message, and read the answer after a pause, with a small receive buffer."""
    with connect(settings, UNREAD_BUFFER_BYTES) as connection:
        connection.send([render_request(settings, message)])
        connection.delay_reading(READ_PAUSE_S)
        connection.set_receive_buffer(RECEIVE_BUFFER_BYTES)
        return connection.receive(message, note="answer read after a pause")


def send_on_one_connection(
    settings: Settings, messages: Sequence[Message], *, pipelined: bool, chunked: Collection[int], pause_s: float = 0.0
) -> list[Exchange]:
    """Send messages on one connection, until the server closes it; see `Target.send_on_one_connection`.

    Pause for `pause_s` seconds before each message but the first, unless they are pipelined.
    """
    texts = [render_request(settings, message, chunked=place in chunked) for place, message in enumerate(messages)]
    note = f"{'pipelined' if pipelined else 'one after the other'} on one connection"
    answers: list[Exchange] = []
    with connect(settings) as connection:
        if pipelined:
            connection.send([b"".join(texts)])
        for place, (text, message) in enumerate(zip(texts, messages, strict=True)):
            if not pipelined:
                time.sleep(pause_s if place else 0)
                connection.send([text])
            options = SendOptions(chunked=() if place in chunked else None, pipelined=pipelined)
            answers.append(connection.receive(message, note=note, send_options=options))
            if answers[-1].status is None or not connection.is_kept:
                break
    return answers
