"""V2 inference requests to tensors and back: JSON, binary tensor data, raw binary requests, classification.

Quotations name the document they stand in: OIP is oip-inference_rest.md, BIN triton-binary-tensor-data.md,
CLS triton-classification.md.
"""

from __future__ import annotations

import json
import math
import re
import struct
import sys
from array import array
from collections.abc import Iterator
from itertools import chain
from typing import Any

from models import MAX_BATCH, TYPECODES, Model, ModelError, Spec, Tensor, Values, brains_to_floats, halves_to_floats

Json = dict[str, Any]
JSON_TYPES: dict[str, set[type]] = {"BOOL": {bool}, "BYTES": {str}, "FP32": {int, float}, "FP64": {int, float}}
KINDS: dict[Any, str] = {str: "a string", list: "an array", dict: "an object"}


class ProtocolError(Exception):
    """A request the documents call wrong, with the HTTP status and any headers of its own for the answer."""

    def __init__(self, message: str, status: int = 400, *headers: tuple[str, str]) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


def unique(pairs: list[tuple[str, Any]]) -> Json:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ProtocolError("a JSON object repeats a name")  # whichever one we took could be the wrong one
    return result


def no_constant(text: str) -> float:
    raise ProtocolError(f"{text} is not JSON")  # json.loads would take NaN and Infinity


def parse_json(raw: bytes) -> Json:
    try:
        # Decoded here because json.loads would guess UTF-16 and UTF-32 as well.
        document = json.loads(raw.decode("utf-8"), parse_constant=no_constant, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"the inference request is not JSON: {error}") from None
    if type(document) is not dict:
        raise ProtocolError("the inference request must be a JSON object")
    return document


def member(owner: Any, name: str, kind: type, where: str, default: Any = None) -> Any:
    """The member `name` of the JSON object `owner`, of the given kind; required if there is no default."""
    if type(owner) is not dict:
        raise ProtocolError(f"{where} must be an object")
    if name not in owner and default is not None:
        return default
    if type(value := owner.get(name)) is not kind:
        raise ProtocolError(f"{where}: {name!r} must be {KINDS[kind]}")
    return value


def parameters(owner: Json, where: str) -> Json:
    """OIP: "$parameter = $string : $string | $number | $boolean". Parameters we do not know are let be."""
    found: Json = member(owner, "parameters", dict, where, {})
    if bad := [name for name, value in found.items() if type(value) not in (str, int, float, bool)]:
        raise ProtocolError(f"{where}: parameter {bad[0]!r} must be a string, a number or a boolean")
    return found


def flag(params: Json, name: str, default: bool, where: str) -> bool:
    value = params.get(name, default)
    if type(value) is not bool:
        raise ProtocolError(f"{where}: parameter {name!r} must be a boolean")
    return value


def json_values(data: list[Any], datatype: str, shape: tuple[int, ...], where: str) -> Values:
    if datatype in ("FP16", "BF16"):
        raise ProtocolError(f"{where}: {datatype} has no JSON representation, send it as binary data")
    if data and type(data[0]) is list:  # OIP: "in their nature multi-dimensional representation, or ... flattened"
        level = [data]
        for dim in shape:
            if any(type(row) is not list or len(row) != dim for row in level):
                raise ProtocolError(f"{where}: the nested data do not have the shape {list(shape)}")
            level = list(chain.from_iterable(level))
        data = level
    if len(data) != math.prod(shape):
        raise ProtocolError(f"{where}: {len(data)} elements of data do not fill the shape {list(shape)}")
    # OIP: "coerce each element ... or return an error". We do not coerce; note that type(True) is not int here.
    if not set(map(type, data)) <= JSON_TYPES.get(datatype, {int}):
        raise ProtocolError(f"{where}: the data hold an element that is not a {datatype} value")
    if datatype == "BYTES":
        try:
            return [text.encode("utf-8") for text in data]
        except UnicodeEncodeError:
            raise ProtocolError(f"{where}: a string holds a lone surrogate, it has no bytes") from None
    try:
        values = array(TYPECODES[datatype], data)
    except OverflowError:
        values = None
    if values is None or (datatype in ("FP32", "FP64") and (math.inf in values or -math.inf in values)):
        raise ProtocolError(f"{where}: an element of the data is out of the range of {datatype}")
    return values


def split_bytes(raw: memoryview, where: str) -> Iterator[bytes]:
    """BIN: "a 4-byte unsigned integer giving the length followed by the actual bytes"."""
    position = 0
    while position < len(raw):
        start = position + 4
        position = start + int.from_bytes(raw[position:start], "little")
        if start > len(raw) or position > len(raw):
            raise ProtocolError(f"{where}: a BYTES element runs past the end of the binary data")
        yield bytes(raw[start:position])


def binary_values(raw: memoryview, datatype: str, shape: tuple[int, ...], where: str) -> Values:
    count = math.prod(shape)
    if datatype == "BYTES":
        texts = list(split_bytes(raw, where))
        if len(texts) != count:
            raise ProtocolError(f"{where}: {len(texts)} BYTES elements do not fill the shape {list(shape)}")
        return texts
    values = array(TYPECODES[datatype])
    if len(raw) != count * values.itemsize:
        raise ProtocolError(f"{where}: {len(raw)} bytes are not a {datatype} tensor of shape {list(shape)}")
    values.frombytes(raw)
    if datatype == "BOOL" and max(values, default=0) > 1:
        raise ProtocolError(f"{where}: the bytes of a BOOL tensor must be 0 or 1")
    if sys.byteorder == "big":
        values.byteswap()
    return values


def read_shape(entry: Json, model: Model, spec: Spec, where: str) -> tuple[int, ...]:
    shape: list[Any] = member(entry, "shape", list, where)
    if not all(type(dim) is int and 0 <= dim < 2**64 for dim in shape):
        raise ProtocolError(f"{where}: the dimensions of 'shape' must be unsigned 64-bit integers")
    expected = model.full_shape(spec)
    if len(shape) != len(expected) or any(e not in (-1, d) for d, e in zip(shape, expected, strict=True)):
        raise ProtocolError(f"{where}: the model takes the shape {list(expected)}, not {shape}")
    if model.batching and not 1 <= shape[0] <= MAX_BATCH:
        raise ProtocolError(f"{where}: a batch has 1 to {MAX_BATCH} items, not {shape[0]}")
    return tuple(shape)


def read_inputs(request: Json, binary: memoryview, model: Model) -> list[Tensor]:
    specs = {spec.name: spec for spec in model.inputs}
    tensors: dict[str, Tensor] = {}
    position = 0  # BIN: binary data stand "in the same order as the order of the input ... tensors ... in the JSON"
    for entry in member(request, "inputs", list, "the inference request"):
        name = member(entry, "name", str, "an input")
        where = f"input {name!r}"
        if name in tensors or name not in specs:
            raise ProtocolError(f"{where} is given twice" if name in tensors else f"the model has no {where}")
        if (datatype := member(entry, "datatype", str, where)) != specs[name].datatype:
            raise ProtocolError(f"{where}: the model takes {specs[name].datatype}, not {datatype!r}")
        shape = read_shape(entry, model, specs[name], where)
        params = parameters(entry, where)
        if "binary_data_size" not in params:
            values = json_values(member(entry, "data", list, where), datatype, shape, where)
        else:
            size = params["binary_data_size"]
            if "data" in entry:
                raise ProtocolError(f"{where} has both 'data' and 'binary_data_size'")
            if type(size) is not int or not 0 <= size <= len(binary) - position:
                raise ProtocolError(f"{where}: 'binary_data_size' is no size, or more than the body holds")
            values = binary_values(binary[position : position + size], datatype, shape, where)
            position += size
        tensors[name] = Tensor(shape, values)
    if missing := specs.keys() - tensors.keys():
        raise ProtocolError(f"the inputs {sorted(missing)} are missing")
    if position != len(binary):
        raise ProtocolError(f"{len(binary) - position} bytes of binary data belong to no input")
    if model.batching and len({tensor.shape[0] for tensor in tensors.values()}) > 1:
        raise ProtocolError("the inputs differ in their batch size")
    return [tensors[spec.name] for spec in model.inputs]


def read_raw(body: memoryview, model: Model) -> list[Tensor]:
    """BIN, "Raw Binary Request": shape and datatype come from the model, one variable dimension from the size."""
    if len(model.inputs) != 1:
        raise ProtocolError("a raw binary request needs a model with exactly one input")
    spec = model.inputs[0]
    shape = list(spec.shape)
    if shape.count(-1) > 1 or (spec.datatype == "BYTES" and shape != [1]):
        raise ProtocolError(f"a raw binary request cannot tell the shape of {spec.datatype} {shape}")
    if -1 in shape:
        row = array(TYPECODES[spec.datatype]).itemsize * math.prod(dim for dim in shape if dim != -1)
        shape[shape.index(-1)] = len(body) // row  # a remainder is refused below, as a size that does not fit
    full = (1, *shape) if model.batching else tuple(shape)  # "treated as batch-1 request"
    # A BYTES body keeps its length: it is "the binary data of the tensor", and these begin with the 4 bytes.
    return [Tensor(full, binary_values(body, spec.datatype, full, f"input {spec.name!r}"))]


def number_text(value: float, datatype: str) -> str:
    """The shortest decimal that reads back as the same value of its datatype: FP32 3.3 is "3.3", 10 is "10"."""
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e15):
        return str(int(value))
    code, digits = {"FP16": ("e", 3), "FP64": ("d", 15)}.get(datatype, ("f", 6))
    packed = struct.pack(code, value)
    texts = (f"{value:.{count}g}" for count in range(digits, 18))
    return next(text for text in texts if struct.pack(code, float(text)) == packed)


def classify(tensor: Tensor, spec: Spec, model: Model, count: Any) -> Tensor:
    where = f"output {spec.name!r}"
    if spec.datatype in ("BYTES", "BOOL"):
        raise ProtocolError(f"{where}: {spec.datatype} elements have no rank, they cannot be classified")
    if type(count) is not int or count < 1:
        raise ProtocolError(f"{where}: 'classification' must be a whole number of classes, at least 1")
    values: Any = tensor.values
    if spec.datatype in ("FP16", "BF16"):
        values = (halves_to_floats if spec.datatype == "FP16" else brains_to_floats)(values)
    if any(value != value for value in values):
        raise ProtocolError(f"{where} holds a NaN, its elements cannot be ranked")
    batch = tensor.shape[0] if model.batching else 1
    size = len(values) // batch
    if count > size:  # CLS: "The <count> dimension ... will equal the “count” value", so fewer would be wrong
        raise ProtocolError(f"{where} has {size} classes, {count} cannot be returned")
    labels = model.labels.get(spec.name, ())
    texts = []
    for start in range(0, len(values), size):
        item = values[start : start + size]
        for index in sorted(range(size), key=lambda k: (-item[k], k))[:count]:
            label = f":{labels[index]}" if index < len(labels) else ""
            texts.append(f"{number_text(item[index], spec.datatype)}:{index}{label}".encode())
    # CLS contradicts itself: type BYTES in the text, STRING in the examples. OIP has no STRING.
    return Tensor((batch, count) if model.batching else (count,), texts)


def to_json(values: Values, datatype: str, where: str) -> list[Any]:
    if datatype in ("FP16", "BF16"):
        raise ProtocolError(f"{where}: {datatype} has no JSON representation, ask for binary_data")
    if datatype == "BYTES":
        try:
            return [text.decode("utf-8") for text in values]
        except UnicodeDecodeError:
            raise ProtocolError(f"{where} holds bytes that are not UTF-8, ask for binary_data") from None
    if datatype in ("FP32", "FP64") and not all(map(math.isfinite, values)):
        raise ProtocolError(f"{where} holds NaN or Infinity, which JSON does not have, ask for binary_data")
    return list(map(bool, values)) if datatype == "BOOL" else list(values)


def to_binary(values: Values) -> bytes:
    if isinstance(values, list):
        return b"".join(chain.from_iterable((len(text).to_bytes(4, "little"), text) for text in values))
    little = array(values.typecode, values)
    if sys.byteorder == "big":
        little.byteswap()
    return little.tobytes()


def read_outputs(request: Json, model: Model) -> list[tuple[Spec, bool, Any]]:
    """The outputs to return, in order: each with whether it is binary, and its classification count or None."""
    all_binary = flag(parameters(request, "the inference request"), "binary_data_output", False, "the request")
    specs = {spec.name: spec for spec in model.outputs}
    chosen: dict[str, tuple[Spec, bool, Any]] = {}
    for entry in member(request, "outputs", list, "the inference request", []):
        name = member(entry, "name", str, "a requested output")
        where = f"output {name!r}"
        if name in chosen or name not in specs:
            raise ProtocolError(f"{where} is requested twice" if name in chosen else f"the model has no {where}")
        params = parameters(entry, where)
        chosen[name] = (specs[name], flag(params, "binary_data", all_binary, where), params.get("classification"))
    # OIP: "if not specified all outputs ... will be returned"; an empty list specifies none either.
    return list(chosen.values()) or [(spec, all_binary, None) for spec in model.outputs]


def infer(model: Model, body: bytes, header_length: int | None) -> tuple[bytes, bytes | None]:
    """The answer as its JSON part and its binary part, the latter None if no output is binary."""
    view = memoryview(body)
    response: Json = {"model_name": model.name}
    if header_length == 0:
        inputs = read_raw(view, model)
        wanted: list[tuple[Spec, bool, Any]] = [(spec, True, None) for spec in model.outputs]
    else:
        end = len(body) if header_length is None else header_length
        if end > len(body):
            raise ProtocolError(f"Inference-Header-Content-Length is {end}, the body has only {len(body)} bytes")
        request = parse_json(bytes(view[:end]))
        if "id" in request:  # OIP: "if specified this identifier must be returned in the response"
            response["id"] = member(request, "id", str, "the inference request")
        wanted = read_outputs(request, model)
        inputs = read_inputs(request, view[end:], model)
    try:
        results = dict(zip(model.outputs, model.compute(*inputs), strict=True))
    except ModelError as error:
        raise ProtocolError(str(error)) from None
    binary: list[bytes] = []
    response["outputs"] = []
    for spec, is_binary, count in wanted:
        tensor, datatype = results[spec], spec.datatype
        if count is not None:
            tensor, datatype = classify(tensor, spec, model, count), "BYTES"
        entry: Json = {"name": spec.name, "shape": tensor.shape, "datatype": datatype}
        if is_binary:
            binary.append(to_binary(tensor.values))
            entry["parameters"] = {"binary_data_size": len(binary[-1])}
        else:
            entry["data"] = to_json(tensor.values, datatype, f"output {spec.name!r}")
        response["outputs"].append(entry)
    any_binary = any(is_binary for _, is_binary, _ in wanted)
    return encode(response), b"".join(binary) if any_binary else None


def encode(document: Json) -> bytes:
    # ASCII escapes, so that an "id" or a name with a lone surrogate can still be written
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii")


def header_length(values: list[str]) -> int | None:
    """Inference-Header-Content-Length, strictly: int() alone would take "+5", "1_0" and digits beyond ASCII."""
    if not values:
        return None
    text = values[0].strip(" \t")
    if len(values) > 1 or not re.fullmatch(r"[0-9]{1,18}", text):
        raise ProtocolError("Inference-Header-Content-Length must be one decimal number of bytes")
    return int(text)


def metadata(model: Model) -> Json:
    def tensors(specs: tuple[Spec, ...]) -> list[Json]:
        return [{"name": s.name, "datatype": s.datatype, "shape": model.full_shape(s)} for s in specs]

    # No "versions": optional for servers that do not version. No allowed platform is true of plain Python, so the
    # name only keeps the form "<project>_<format>".
    return {
        "name": model.name,
        "platform": "python_stdlib",
        "inputs": tensors(model.inputs),
        "outputs": tensors(model.outputs),
    }
