"""Both transports lead to the same models: one tensor, over HTTP and over gRPC, raw and typed, classified and not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import grpc
import ml_dtypes
import numpy as np
import pytest
from tritonclient.grpc import service_pb2
from tritonclient.utils import serialize_byte_tensor

from reference_server.models import MAX_BATCH, VARIABLE, Model, load
from reference_server.tensors import TensorSpec
from tests.support.grpc_serving import GrpcConnection, connect
from tests.support.serving import HEADER, Server, run_server
from tests.support.tables import on_each

MODELS = load()
TYPES: dict[str, Any] = {"BOOL": np.bool_, "BF16": ml_dtypes.bfloat16, "FP16": "<f2", "FP32": "<f4", "FP64": "<f8"}
# The others are named for the datatype without its size. The 16-bit floats have none, and this one is wrong for them.
FIELDS = {"INT64": "int64", "UINT64": "uint64", "FP32": "fp32", "FP64": "fp64", "FP16": "fp32", "BF16": "fp32"}

Tensors = dict[str, tuple[str, list[int], bytes]]  # datatype, shape and binary data by name
Refusal = str


@pytest.fixture(scope="module")
def transports() -> Iterator[tuple[Server, GrpcConnection]]:
    with run_server("--grpc-port", "0") as server:
        assert server.process.stdout is not None
        with connect(server.process.stdout.readline().split()[1]) as connection:
            yield server, connection


def values(spec: TensorSpec, shape: list[int]) -> Any:
    """Return an array that a model takes: small numbers, 1 to 4, not in order."""
    places = np.array([2, 4, 1, 3, 2], np.int64)[np.arange(int(np.prod(shape))) % 5].reshape(shape)
    if spec.datatype == "BYTES":
        return np.array([b"%d" % (10**place) for place in places.flat], object).reshape(shape)
    return places.astype(TYPES.get(spec.datatype, spec.datatype.lower()))


def arrays(model: Model) -> dict[str, tuple[str, Any]]:
    """Return datatype and array of each input; variable dimensions are 3, a batch is 2."""
    batch = [min(2, MAX_BATCH)] if model.batching else []
    return {
        spec.name: (spec.datatype, values(spec, batch + [3 if extent == VARIABLE else extent for extent in spec.shape]))
        for spec in model.inputs
    }


def binary(array: Any) -> bytes:
    """Return an array's binary data, written by other people for BYTES."""
    octets: bytes = serialize_byte_tensor(array).item() if array.dtype == object else array.tobytes()
    return octets


def over_http(server: Server, model: Model, classes: dict[str, int]) -> Tensors | Refusal:
    """Infer with binary data both ways."""
    inputs, tail = [], b""
    for name, (datatype, array) in arrays(model).items():
        octets = binary(array)
        parameters = {"binary_data_size": len(octets)}
        inputs.append({"name": name, "datatype": datatype, "shape": array.shape, "parameters": parameters})
        tail += octets
    outputs = [
        {"name": spec.name, "parameters": {"binary_data": True} | counted(classes, spec.name)} for spec in model.outputs
    ]
    answer = server.infer_binary(model.name, json.dumps({"inputs": inputs, "outputs": outputs}).encode(), tail)
    length = int(answer.headers.get(HEADER, len(answer.body)))
    head, rest = json.loads(answer.body[:length]), answer.body[length:]
    if answer.status != 200:
        return Refusal(head["error"])
    found: Tensors = {}
    for entry in head["outputs"]:
        size = entry["parameters"]["binary_data_size"]
        found[entry["name"]] = (entry["datatype"], entry["shape"], rest[:size])
        rest = rest[size:]
    return found


def counted(classes: dict[str, int], name: str) -> dict[str, int]:
    """Return the parameter classification of an output, if it is to have one."""
    return {"classification": classes[name]} if name in classes else {}


def over_grpc(connection: GrpcConnection, model: Model, classes: dict[str, int], typed: bool) -> Tensors | Refusal:
    """Infer with typed contents or raw ones."""
    request = service_pb2.ModelInferRequest(model_name=model.name)
    for name, (datatype, array) in arrays(model).items():
        tensor = request.inputs.add(name=name, datatype=datatype, shape=array.shape)
        if typed:
            field = FIELDS.get(datatype, datatype.rstrip("0123456789").lower()) + "_contents"
            getattr(tensor.contents, field).extend(array.ravel().tolist())
        else:
            request.raw_input_contents.append(binary(array))
    for spec in model.outputs:
        wish = request.outputs.add(name=spec.name)
        if spec.name in classes:
            wish.parameters["classification"].int64_param = classes[spec.name]
    try:
        answer = connection.call("ModelInfer", request)
    except grpc.RpcError as error:
        return Refusal(error.details())
    return tensors_of(answer)


def tensors_of(answer: Any) -> Tensors:
    """Return the outputs of a response message, which has one form for all of them."""
    found: Tensors = {}
    for index, tensor in enumerate(answer.outputs):
        if answer.raw_output_contents:
            assert not tensor.HasField("contents")
            octets = answer.raw_output_contents[index]
        else:
            ((_, elements),) = tensor.contents.ListFields()
            kind = object if tensor.datatype == "BYTES" else TYPES.get(tensor.datatype, tensor.datatype.lower())
            octets = binary(np.array(list(elements), kind))
        found[tensor.name] = (tensor.datatype, list(tensor.shape), octets)
    return found


@on_each(list(product(MODELS, [False, True])))
def test_same_answer(name: str, typed: bool, *, transports: tuple[Server, GrpcConnection]) -> None:
    server, connection = transports
    model = MODELS[name]
    expected = over_http(server, model, {})
    assert isinstance(expected, dict)
    assert list(expected) == [spec.name for spec in model.outputs]
    actual = over_grpc(connection, model, {}, typed)
    if typed and {spec.datatype for spec in model.inputs} & {"FP16", "BF16"}:
        assert isinstance(actual, Refusal)
        assert "has no typed contents" in actual
    else:
        assert actual == expected


@on_each([(name, spec.name, n) for name, model in MODELS.items() for spec in model.outputs for n in (1, 3, 1000)])
def test_same_classes(name: str, output: str, count: int, *, transports: tuple[Server, GrpcConnection]) -> None:
    server, connection = transports
    model = MODELS[name]
    expected = over_http(server, model, {output: count})
    assert over_grpc(connection, model, {output: count}, typed=False) == expected
    (datatype,) = (spec.datatype for spec in model.outputs if spec.name == output)
    if datatype in ("BOOL", "BYTES"):
        assert expected == f"output '{output}': {datatype} cannot be classified, only numbers can"
    else:
        assert isinstance(expected, dict)
        assert expected[output][0] == "BYTES"
    if not {spec.datatype for spec in model.inputs} & {"FP16", "BF16"}:
        assert over_grpc(connection, model, {output: count}, typed=True) == expected
