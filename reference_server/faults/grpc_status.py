"""gRPC: accepted calls that should be refused, wrong statuses, and effects that outlast a refusal."""

from __future__ import annotations

import math
import socket
import threading
from contextlib import suppress
from typing import Any

import numpy as np

from reference_server.errors import InferenceError
from reference_server.faults import fault, steps
from reference_server.tensors import NUMPY, Tensor

Message = Any


def _resize_contents(data: bytes, datatype: str, shape: Any) -> bytes:
    """Return raw contents, truncated or zero-padded to the size of the tensor; BYTES are unchanged."""
    size = 0 if datatype == "BYTES" else math.prod(shape) * NUMPY[datatype].itemsize
    return data if datatype == "BYTES" else data[:size].ljust(size, b"\0")


def _shorten_length(data: bytes) -> bytes:
    """Return raw contents of one BYTES element whose length is at most the rest of the contents."""
    length = min(int.from_bytes(data[:4], "little"), len(data) - 4)
    return length.to_bytes(4, "little") + data[4:]


# --- contents ---------------------------------------------------------------------------------------------------------

grpc_raw_contents_are_made_to_fit = steps.DECODE_RAW.before("GRPC-SIZE-WRONG", data=_resize_contents).says(
    "The server truncates raw contents that are too long and fills short ones with zeros."
)
grpc_strings_past_the_end_are_cut = steps.DECODE_RAW.before(
    "GRPC-RAW-BYTES-MISFRAMED",
    data=_shorten_length,
    when=lambda datatype, shape, data: datatype == "BYTES" and len(data) > 4 and math.prod(shape) == 1,
).says("If the length of a BYTES element exceeds the rest of the raw contents, the server reads only this rest.")
grpc_inputs_without_contents_are_zeros = steps.PARSE_CALL_INPUT.instead(
    "GRPC-CONTENTS-MISSING",
    lambda entry: Tensor("INT32", tuple(entry.shape), np.zeros(math.prod(entry.shape), "<i4")),
    when=lambda spec, entry, raw: raw is None and not entry.contents.ByteSize() and spec.datatype == "INT32",
).says("The server reads an INT32 input without contents, or with empty contents, as zeros.")


@fault(steps.LIST_RAW_CONTENTS, breaks="GRPC-RAW-EXTRA")
def grpc_further_raw_entries_are_ignored(original: Any, message: Message) -> Any:
    """The server ignores raw entries that exceed the number of inputs."""
    del message.raw_input_contents[len(message.inputs) :]
    return original(message)


@fault(steps.LIST_RAW_CONTENTS, breaks="GRPC-RAW-AND-TYPED")
def grpc_raw_contents_win(original: Any, message: Message) -> Any:
    """The server ignores typed contents if the request also has raw contents."""
    if len(message.raw_input_contents) == len(message.inputs):
        for entry in message.inputs:
            entry.ClearField("contents")
    return original(message)


grpc_typed_integers_keep_their_low_bits = steps.NARROW_INTEGERS.instead(
    "OIP-RANGE/grpc", lambda datatype, elements: elements.astype(NUMPY[datatype])
).says("The server keeps only the low bits of typed integers that exceed the range of their datatype.")
grpc_bits_of_another_field_are_taken_over = steps.DECODE_TYPED.instead(
    "GRPC-OTHER-FIELD",
    lambda datatype, shape, contents: Tensor(datatype, shape, np.array(contents.int_contents, "<i4").view("<f4")),
    when=lambda datatype, contents: datatype == "FP32" and contents.int_contents,
).says("The server accepts FP32 inputs in `int_contents` and reads the integers as the bits of floats.")


# --- inputs, and bytes after them -------------------------------------------------------------------------------------


@fault(steps.PARSE_CALL_INPUTS, breaks="OIP-SIGNATURE/grpc")
def grpc_inputs_taken_by_position(original: Any, model: Any, message: Any) -> Any:
    """The server takes an input with an unknown name for the first declared input that the request lacks."""
    names = [spec.name for spec in model.inputs]
    free = [name for name in names if name not in {item.name for item in message.inputs}]
    for item in message.inputs:
        if item.name not in names and free:
            item.name = free.pop(0)
    return original(model, message)


@fault(steps.PARSE_CALL_INPUTS, steps.PARSE_CALL_OUTPUTS, breaks=("OIP-REFUSAL/grpc", "OIP-SIGNATURE/grpc"))
def grpc_names_found_in_any_case(original: Any, model: Any, message: Message) -> Any:
    """The server ignores the case of the names of inputs and outputs, and uses the last typed input of a name."""
    names = {spec.name.lower(): spec.name for spec in (*model.inputs, *model.outputs)}
    for entry in (*message.inputs, *message.outputs):
        entry.name = names.get(entry.name.lower(), entry.name)
    if not message.raw_input_contents:
        last = {entry.name: entry for entry in message.inputs}
        del message.inputs[:]
        message.inputs.extend(last.values())
    return original(model, message)


@fault(steps.PARSE_CALL_INPUTS, breaks="OIP-SIGNATURE/grpc")
def grpc_further_inputs_are_ignored(original: Any, model: Any, message: Message) -> Any:
    """The server ignores additional typed inputs that the model does not have."""
    names = [spec.name for spec in model.inputs]
    if not message.raw_input_contents and len(message.inputs) > len(names):
        kept = [entry for entry in message.inputs if entry.name in names]
        del message.inputs[:]
        message.inputs.extend(kept)
    return original(model, message)


@fault(steps.PARSE_CALL_INPUT, breaks="OIP-SIGNATURE-SAFE/grpc")
def grpc_raw_inputs_read_in_the_models_datatype(original: Any, model: Any, spec: Any, entry: Any, raw: Any) -> Any:
    """The server reads raw contents of another datatype in the one that the model declares, if their size fits."""
    if raw is not None:
        entry.datatype = spec.datatype
    return original(model, spec, entry, raw)


@fault(steps.PARSE_CALL_INPUTS, breaks="OIP-TWICE-SAFE/grpc")
def grpc_repeated_inputs_shift_raw_contents(original: Any, model: Any, message: Message) -> Any:
    """The server passes over an input that repeats a name, but not over its raw contents."""
    kept = list({entry.name: entry for entry in reversed(message.inputs)}.values())[::-1]
    if len(kept) < len(message.inputs):
        raw = list(message.raw_input_contents)[: len(kept)]
        del message.inputs[:], message.raw_input_contents[:]
        message.inputs.extend(kept)
        message.raw_input_contents.extend(raw)
    return original(model, message)


@fault(steps.GET_STATUS, breaks="OIP-ERROR-STATUS/grpc")
def grpc_errors_are_unknown(original: Any, error: Any) -> Any:
    """The server gives every refused call the status UNKNOWN, like an uncaught exception."""
    from grpc import StatusCode

    return StatusCode.UNKNOWN, original(error)[1]


_refused = {"last": False}


@fault(steps.GET_STATUS, steps.BUILD_RESPONSE, breaks="OIP-ALIVE/grpc")
def grpc_answer_after_a_refusal_is_empty(original: Any, *arguments: Any) -> Any:
    """After a refused call, the server answers the next inference without outputs."""
    result = original(*arguments)
    if len(arguments) == 1:
        _refused["last"] = True
    elif _refused["last"]:
        _refused["last"] = False
        del result.outputs[:], result.raw_output_contents[:]
    return result


LOST_CALLS = ("the model is not ready",) * 2
_calls_lost: list[str] = []


@fault(steps.ANSWER_CALL, breaks="OIP-ALIVE-LEGAL/grpc")
def grpc_strings_that_are_to_be_ranked_end_the_model(original: Any, models: Any, method: Any, octets: bytes) -> bytes:
    """After a request to classify a BYTES output, the server refuses the next two calls to the model."""
    if b"identity_bytes" in octets:
        if _calls_lost:
            raise InferenceError(_calls_lost.pop())
        if b"classification" in octets:
            _calls_lost.extend(LOST_CALLS)
    return original(models, method, octets)


_places_lost: list[str] = []


@fault(steps.ANSWER_CALL, steps.BUILD_RESPONSE, breaks="OIP-ALIVE-LEGAL/grpc")
def grpc_outputs_without_elements_end_the_model(original: Any, *arguments: Any) -> Any:
    """After an FP32 output without elements, the server refuses the next two calls to the model."""
    if isinstance(arguments[2], bytes):
        if _places_lost and b"identity_fp32" in arguments[2]:
            raise InferenceError(_places_lost.pop())
        return original(*arguments)
    model, _, produced = arguments
    if model.name == "identity_fp32" and not all(tensor.elements.size for tensor in produced.values()):
        _places_lost.extend(LOST_CALLS)
    return original(*arguments)


# --- calls with endings that no gRPC library produces: a bare HTTP/2 proxy in front of the server ---------------------

INTERNAL_ERROR = 2  # HTTP/2 error code (RFC 9113, 7)
MAX_FRAME_BYTES, WINDOW_BYTES = 16 * 1024, 64 * 1024 * 1024
HEADERS = ((":status", "200"), ("content-type", "application/grpc"))


@fault("grpc_server.GrpcServer.__init__", steps.ANSWER_CALL, breaks="GRPC-STATUS")
def grpc_refused_streams_are_reset(original: Any, *arguments: Any) -> Any:
    """The server resets the stream of a refused call with INTERNAL_ERROR instead of sending a status."""
    made = original(*arguments)
    if len(arguments) == 5:  # the constructor of the server; otherwise, a call
        server = arguments[0]
        listener = socket.create_server(("127.0.0.1", 0))
        inner, server.address = server.address, f"127.0.0.1:{listener.getsockname()[1]}"
        threading.Thread(target=_accept_connections, args=(listener, inner), daemon=True).start()
    return made


def _accept_connections(listener: socket.socket, inner: str) -> None:
    import grpc

    options = [("grpc.max_receive_message_length", -1), ("grpc.enable_retries", 0)]
    channel = grpc.insecure_channel(inner, options)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_serve_connection, args=(connection, channel), daemon=True).start()


def _serve_connection(connection: socket.socket, channel: Any) -> None:
    """Answer the calls of a connection one after the other."""
    from h2.config import H2Configuration
    from h2.connection import H2Connection
    from h2.exceptions import ProtocolError
    from h2.settings import SettingCodes, Settings

    http2 = H2Connection(H2Configuration(client_side=False))
    http2.local_settings = Settings(client=False, initial_values={SettingCodes.INITIAL_WINDOW_SIZE: WINDOW_BYTES})
    http2.initiate_connection()
    http2.increment_flow_control_window(WINDOW_BYTES)
    calls: dict[int, tuple[str, bytearray]] = {}
    with connection, suppress(OSError, ProtocolError):
        connection.sendall(http2.data_to_send())
        while octets := connection.recv(256 * 1024):
            for event in http2.receive_data(octets):
                _handle_event(http2, event, calls, channel)
            connection.sendall(http2.data_to_send())


def _handle_event(http2: Any, event: Any, calls: dict[int, tuple[str, bytearray]], channel: Any) -> None:
    from h2.events import DataReceived, RequestReceived, StreamEnded

    if isinstance(event, RequestReceived):
        named: bytes = dict(event.headers)[b":path"]
        calls[event.stream_id] = (named.decode(), bytearray())
    elif isinstance(event, DataReceived):
        calls[event.stream_id][1].extend(event.data)
        http2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
    elif isinstance(event, StreamEnded):
        path, data = calls.pop(event.stream_id)
        _forward_call(http2, event.stream_id, channel.unary_unary(path), bytes(data[5:]))


def _forward_call(http2: Any, stream: int, call: Any, message: bytes) -> None:
    import grpc

    try:
        found = call(message)
    except grpc.RpcError:
        http2.reset_stream(stream, INTERNAL_ERROR)
        return
    http2.send_headers(stream, HEADERS)
    data = b"\0" + len(found).to_bytes(4, "big") + found
    for start in range(0, len(data), MAX_FRAME_BYTES):
        http2.send_data(stream, data[start : start + MAX_FRAME_BYTES])
    http2.send_headers(stream, (("grpc-status", "0"),), end_stream=True)
