"""What one request leaves behind for the next: buffers that were not given back, a worker that has ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from reference_server.faults import fault
from reference_server.models import Model
from reference_server.request import InferRequest
from reference_server.tensors import Tensor

_buffers: dict[str, dict[str, Tensor]] = {}


@fault("request.parse", breaks=("OIP-ISOLATION", "HTTP-PIPELINE"))
def binary_inputs_used_again_for_json(original: Any, model: Model, values: Sequence[str], body: bytes) -> InferRequest:
    """JSON inputs of a request with an id begin with what the binary inputs before left in their buffers."""
    found: InferRequest = original(model, values, body)
    before = _buffers.pop(model.name, None)
    if found.id is None:
        return found
    if values:
        _buffers[model.name] = dict(found.inputs)
    elif before is not None:
        return replace(found, inputs={name: _written_over(found.inputs[name], before[name]) for name in found.inputs})
    return found


def _written_over(tensor: Tensor, before: Tensor) -> Tensor:
    elements = tensor.elements.copy()
    count = min(elements.size, before.elements.size)
    elements[:count] = before.elements[:count]
    return replace(tensor, elements=elements)


_strings: set[int] = set()  # connections on which strings are under way


@fault("http_protocol.OipHttpProtocol.data_received", breaks="OIP-ERROR")
def strings_that_are_to_be_ranked_end_the_connection(original: Any, protocol: Any, data: bytes) -> None:
    """Who asks for the classes of strings gets no answer: the worker has ended."""
    if data.startswith(b"POST "):
        _strings.discard(id(protocol))
        _strings.update({id(protocol)} if b"/identity_bytes/" in data else ())
    if id(protocol) in _strings and b'"classification"' in data:
        _strings.discard(id(protocol))
        protocol.transport.close()
        return
    original(protocol, data)
