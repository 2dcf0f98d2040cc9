"""A V2 / Open Inference Protocol server: Starlette, uvicorn, numpy. `python server.py --port 0`

Quotations are from oip-inference_rest.md (OIP), triton-binary-tensor-data.md (BIN), triton-classification.md (CLS).
"""

from __future__ import annotations

import argparse
import json
import math
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from models import DTYPES, MAX_BATCH, MODELS, Array, Model, Refused, TensorSpec
from tensors import classify, from_binary, from_json, to_binary, to_json

MAX_BODY = 64 * 1024 * 1024
VERSION = "1"
LENGTH_HEADER = "Inference-Header-Content-Length"
REQUIRED = object()


@contextmanager
def concerning(what: str) -> Iterator[None]:
    try:
        yield
    except Refused as refusal:
        raise Refused(f"{what}: {refusal}") from None


def take(owner: dict[str, Any], key: str, kind: type, default: Any = REQUIRED) -> Any:
    if key not in owner and default is REQUIRED:
        raise Refused(f"{key!r} is missing")
    if key in owner and type(owner[key]) is not kind:  # not isinstance: True is no integer here
        raise Refused(f"{key!r} is not of JSON type {kind.__name__}")
    return owner.get(key, default)


def take_parameters(owner: dict[str, Any]) -> dict[str, Any]:
    """Unknown parameters are none of our business, but OIP says each is "$string | $number | $boolean"."""
    parameters: dict[str, Any] = take(owner, "parameters", dict, {})
    if not {type(value) for value in parameters.values()} <= {str, int, float, bool}:
        raise Refused("a parameter is neither string nor number nor boolean")
    return parameters


def take_named(owner: dict[str, Any], key: str, of: Sequence[TensorSpec]) -> Iterator[tuple[Any, TensorSpec]]:
    """The entries of "inputs" or "outputs" with the tensors of the model they name."""
    specs, seen = {spec.name: spec for spec in of}, set()
    for entry in take(owner, key, list, []):
        if type(entry) is not dict:
            raise Refused(f"an entry of {key!r} is not an object")
        name = take(entry, "name", str)
        if name not in specs or name in seen:
            raise Refused(f"{name!r} in {key!r} is {'there twice' if name in seen else 'unknown to the model'}")
        seen.add(name)
        yield entry, specs[name]


def load_object(raw: bytes) -> dict[str, Any]:
    def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(members := dict(pairs)) < len(pairs):
            raise Refused("a name occurs twice in a JSON object")
        return members

    def no_constants(name: str) -> float:
        raise Refused(f"{name} is not JSON")

    try:
        document = json.loads(raw.decode(), object_pairs_hook=no_duplicates, parse_constant=no_constants)
        if rb"\u" in raw:  # only an escape can bring in a lone surrogate, which no answer could repeat in UTF-8
            json.dumps(document, ensure_ascii=False).encode()
    except Refused:
        raise
    except (ValueError, RecursionError) as error:
        raise Refused(f"the inference request is not valid JSON: {error}") from None
    if type(document) is not dict:
        raise Refused("the inference request is not a JSON object")
    return document


@dataclass
class Wanted:
    """A requested output with its settings."""

    spec: TensorSpec
    binary: bool
    classes: Any = None


@dataclass
class Inference:
    """An inference request, read but not yet computed."""

    inputs: dict[str, Array]
    wanted: list[Wanted]
    id: str | None = None


def read_shape(entry: dict[str, Any], spec: TensorSpec, batching: bool) -> tuple[int, ...]:
    shape = take(entry, "shape", list)
    if not all(type(dim) is int and 0 <= dim < 1 << 64 for dim in shape):
        raise Refused("a dimension of 'shape' is not an unsigned 64-bit integer")
    if len(shape) != len(spec.shape) or not all(want in (-1, dim) for want, dim in zip(spec.shape, shape, strict=True)):
        raise Refused(f"shape {shape} does not match the model's {list(spec.shape)}")
    if batching and not 1 <= shape[0] <= MAX_BATCH:
        raise Refused(f"a batch of {shape[0]}, the model takes 1 to {MAX_BATCH}")
    return tuple(shape)


def read_request(model: Model, raw: bytes, tail: memoryview) -> Inference:
    document = load_object(raw)
    everything_binary = take(take_parameters(document), "binary_data_output", bool, False)
    inputs: dict[str, Array] = {}
    take(document, "inputs", list)
    for entry, spec in take_named(document, "inputs", model.inputs):
        with concerning(f"input {spec.name!r}"):
            if (datatype := take(entry, "datatype", str)) != spec.datatype:
                raise Refused(f"datatype {datatype!r}, the model takes {spec.datatype}")
            shape = read_shape(entry, spec, model.batching)
            size = take(take_parameters(entry), "binary_data_size", int, None)
            if size is None:
                inputs[spec.name] = from_json(take(entry, "data", list), datatype, shape)
                continue
            if "data" in entry:
                raise Refused("both 'data' and 'binary_data_size' are given")
            if not 0 <= size <= len(tail):
                raise Refused(f"'binary_data_size' is {size}, the body has {len(tail)} bytes left")
            # BIN: the binary data follow "in the same order as the order of the input ... tensors"
            inputs[spec.name] = from_binary(tail[:size], datatype, shape)
            tail = tail[size:]
    if missing := [spec.name for spec in model.inputs if spec.name not in inputs]:
        raise Refused(f"no data for the inputs {missing}")
    if tail:
        raise Refused(f"the body has {len(tail)} bytes more than its inputs say")
    if model.batching and len({array.shape[0] for array in inputs.values()}) != 1:
        raise Refused("the inputs are batches of different sizes")

    wanted = []
    for entry, spec in take_named(document, "outputs", model.outputs):
        with concerning(f"output {spec.name!r}"):
            parameters = take_parameters(entry)
            binary = take(parameters, "binary_data", bool, everything_binary)  # BIN: "it overrides this setting"
            wanted.append(Wanted(spec, binary, take(parameters, "classification", int, None)))
    if not wanted:
        if "outputs" in document:
            raise Refused("'outputs' asks for nothing; leave it out to get all outputs")
        wanted = [Wanted(spec, everything_binary) for spec in model.outputs]
    return Inference(inputs, wanted, take(document, "id", str, None))


def read_raw(model: Model, body: memoryview) -> Inference:
    """BIN, "Raw Binary Request": the body is one input, all outputs are binary, a batch has one item."""
    if len(model.inputs) != 1:
        raise Refused("a raw binary request is for models with one input")
    (spec,) = model.inputs
    batch, shape = ([1], list(spec.shape[1:])) if model.batching else ([], list(spec.shape))
    if spec.datatype == "BYTES":
        # The element keeps its 4-byte length: the body is "the binary data of the tensor", as defined above there.
        if shape != [1]:
            raise Refused("a raw binary request for BYTES is for models that take the shape [1]")
    elif shape.count(-1) > 1:
        raise Refused("a raw binary request is for models with at most one variable dimension")
    elif -1 in shape:
        row = -math.prod(shape) * DTYPES[spec.datatype].itemsize
        if len(body) % row:
            raise Refused(f"{len(body)} bytes are no multiple of {row}, the size the model's {list(spec.shape)} takes")
        shape[shape.index(-1)] = len(body) // row
    inputs = {spec.name: from_binary(body, spec.datatype, (*batch, *shape))}
    return Inference(inputs, [Wanted(spec, binary=True) for spec in model.outputs])


def json_length(values: list[str], body_size: int) -> int:
    """How much of the body is the JSON object: all of it, unless the header says less. 0 is a raw binary request."""
    if not values:
        return body_size
    # A strict pattern, as int() has a wider taste: "+5", "1_0", digits of other scripts.
    if len(values) > 1 or not re.fullmatch("[0-9]+", text := values[0].strip(" \t")) or len(text) > 18:
        raise Refused(f"{LENGTH_HEADER} is not one decimal number")
    if int(text) > body_size:
        raise Refused(f"{LENGTH_HEADER} is {int(text)}, the body has {body_size} bytes")
    return int(text)


def run(name: str, body: bytes, length_header: list[str]) -> Response:
    model = MODELS[name]
    view = memoryview(body)
    length = json_length(length_header, len(body))
    if length_header and length == 0:
        inference = read_raw(model, view)
    else:
        inference = read_request(model, body[:length], view[length:])

    with np.errstate(over="ignore", invalid="ignore"):  # infinities and NaNs are results, not accidents
        arrays = model.compute(*(inference.inputs[spec.name] for spec in model.inputs))
    results = {spec.name: array for spec, array in zip(model.outputs, arrays, strict=True)}

    outputs: list[dict[str, Any]] = []
    tail: list[bytes] = []
    for wanted in inference.wanted:
        name_, datatype, array = wanted.spec.name, wanted.spec.datatype, results[wanted.spec.name]
        with concerning(f"output {name_!r}"):
            if wanted.classes is not None:
                array = classify(array, datatype, wanted.classes, model.labels.get(name_, ()), model.batching)
                datatype = "BYTES"  # CLS says BYTES in its text and STRING in its examples; only BYTES is a datatype
            output: dict[str, Any] = {"name": name_, "shape": list(array.shape), "datatype": datatype}
            if wanted.binary:
                tail.append(to_binary(array, datatype))
                output["parameters"] = {"binary_data_size": len(tail[-1])}
            else:
                output["data"] = to_json(array, datatype)
        outputs.append(output)

    identified = {} if inference.id is None else {"id": inference.id}
    answer = JSONResponse({"model_name": name, "model_version": VERSION, **identified, "outputs": outputs})
    if not any(wanted.binary for wanted in inference.wanted):
        return answer
    head = bytes(answer.body)
    return Response(
        head + b"".join(tail), headers={LENGTH_HEADER: str(len(head))}, media_type="application/octet-stream"
    )


def model_of(request: Request) -> tuple[str, Model]:
    name, version = request.path_params["name"], request.path_params.get("version", VERSION)
    if name not in MODELS:
        raise HTTPException(404, f"unknown model {name!r}")
    if version != VERSION:
        raise HTTPException(404, f"model {name!r} has no version {version!r}, only {VERSION!r}")
    return name, MODELS[name]


async def read_body(request: Request) -> bytes:
    # Connection: close, as uvicorn would otherwise go on reading what it has no use for
    too_large = HTTPException(413, f"the body is larger than {MAX_BODY} bytes", {"Connection": "close"})
    if int(request.headers.get("content-length", "0")) > MAX_BODY:  # already a number, or uvicorn had refused it
        raise too_large
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise too_large
    return bytes(body)


async def infer(request: Request) -> Response:
    body = await read_body(request)  # before any refusal: uvicorn answers "Expect: 100-continue" by it
    name, _ = model_of(request)
    if request.headers.get("content-encoding", "identity") != "identity":
        raise HTTPException(415, "content codings are not supported", {"Accept-Encoding": "identity"})
    return await run_in_threadpool(run, name, body, request.headers.getlist(LENGTH_HEADER))


async def model_metadata(request: Request) -> Response:
    def described(specs: Any) -> list[dict[str, Any]]:
        return [{"name": spec.name, "datatype": spec.datatype, "shape": list(spec.shape)} for spec in specs]

    name, model = model_of(request)
    return JSONResponse(
        {
            "name": name,
            "versions": [VERSION],
            "platform": "numpy_python",  # OIP's list has none for numpy; this keeps to its "<project>_<format>"
            "inputs": described(model.inputs),
            "outputs": described(model.outputs),
        }
    )


async def model_ready(request: Request) -> Response:
    return JSONResponse({"name": model_of(request)[0], "ready": True})


async def server_metadata(request: Request) -> Response:
    extensions = ["binary_tensor_data", "classification"]
    return JSONResponse({"name": "oip-starlette", "version": "1.0.0", "extensions": extensions})


async def health(request: Request) -> Response:
    return JSONResponse({"live": True})  # OIP shows this object for "live" and for "ready"


async def on_error(request: Request, error: Exception) -> Response:
    match error:
        case HTTPException():
            headers = dict(error.headers or {})
            if "expect" in request.headers:  # the body it announced may never come, and no next request is told from it
                headers["Connection"] = "close"
            return JSONResponse({"error": error.detail}, error.status_code, headers=headers)
        case Refused() | ClientDisconnect():
            return JSONResponse({"error": str(error)}, 400)
    return JSONResponse({"error": "internal server error"}, 500)


MODEL_PATHS = ("/v2/models/{name}", "/v2/models/{name}/versions/{version}")
app = Starlette(
    routes=[
        Route("/v2", server_metadata),
        Route("/v2/", server_metadata),  # as the YAML has it
        Route("/v2/health/live", health),
        Route("/v2/health/ready", health),
        *(Route(path, model_metadata) for path in MODEL_PATHS),
        *(Route(path + "/ready", model_ready) for path in MODEL_PATHS),
        *(Route(path + "/infer", infer, methods=["POST"]) for path in MODEL_PATHS),
    ],
    exception_handlers=dict.fromkeys((HTTPException, Refused, ClientDisconnect, Exception), on_error),
)
app.router.redirect_slashes = False  # a redirect is no answer of this protocol


class Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if sockets and self.started:
            print("http://{}:{}".format(*sockets[0].getsockname()), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8000, help="0 for any free port")
    # Named as TCP, so that asyncio turns Nagle's algorithm off: else each answer waits 40 ms for an acknowledgement.
    listener = socket.socket(proto=socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", parser.parse_args().port))
    config = uvicorn.Config(app, log_level="warning", timeout_keep_alive=60, timeout_graceful_shutdown=5)
    Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
