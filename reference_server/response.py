"""An inference response: from tensors to JSON, binary data and headers.

Sources: Open Inference Protocol, REST, "Inference"; Triton, Binary Tensor Data Extension, "Binary Tensor Request".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from starlette.responses import Response

from reference_server import classification, tensors
from reference_server.errors import located
from reference_server.framing import HEADER
from reference_server.models import VERSION, Model
from reference_server.request import InferRequest, OutputWish
from reference_server.tensors import Tensor

Octets = bytes | memoryview


def build(model: Model, request: InferRequest, produced: Mapping[str, Tensor]) -> Response:
    """Return the answer: the outputs as wished, in the order of the wishes."""
    parts = [output_part(model, wish, produced[wish.name]) for wish in request.outputs]
    answer: dict[str, Any] = {} if request.id is None else {"id": request.id}
    answer |= {"model_name": model.name, "model_version": VERSION, "outputs": [entry for entry, _ in parts]}
    return frame(encode(answer), [data for _, data in parts if data is not None])


def output_part(model: Model, wish: OutputWish, tensor: Tensor) -> tuple[dict[str, Any], Octets | None]:
    """Return an output's entry in the JSON, and its binary data if it has any."""
    with located(f"output '{wish.name}'"):
        if wish.classes is not None:
            tensor = classification.classify(tensor, wish.classes, model.batching, model.labels.get(wish.name, ()))
        entry = {"name": wish.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}
        if not wish.binary:
            return entry | {"data": tensors.encode_json(tensor)}, None
        data = tensors.encode_binary(tensor)
        return entry | {"parameters": {"binary_data_size": len(data)}}, data


def encode(answer: Mapping[str, Any]) -> bytes:
    """Return the JSON in UTF-8. Its length is counted after encoding: letters beyond ASCII take more than one byte."""
    return json.dumps(answer, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def frame(head: bytes, binary: Sequence[Octets]) -> Response:
    """Put JSON and binary data together; binary data, even of no bytes, call for the header."""
    if not binary:
        return Response(head, media_type="application/json")
    return Response(join(head, binary), media_type="application/octet-stream", headers={HEADER: str(len(head))})


def join(head: bytes, binary: Iterable[Octets]) -> bytes:
    """Return the body: one copy of everything."""
    return b"".join((head, *binary))
