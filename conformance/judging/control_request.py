"""Control requests: simple requests with the same shapes, number of elements and id length as a request of a row.

A control request consists of JSON (over gRPC: of typed contents) with harmless values. It lists no outputs and uses no
extension. A server that refuses both a row's request and its control request refuses the request for its size.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from conformance.discovery.deployed_model import DeployedModel
from conformance.roles.model import Model
from conformance.transport.target import Target
from conformance.wire import strings
from conformance.wire.datatypes import DATATYPES
from conformance.wire.grpc_request import GRPC_METHOD, parse_request
from conformance.wire.json_text import parse_json
from conformance.wire.request import INFERENCE_HEADER, Form, InferRequest, Input, Message
from conformance.wire.tensor import Tensor, decode

MAX_ELEMENTS = 1 << 23  # in a control request; a request that claims more is malformed
HARMLESS_VALUES = {1: 1, 2: 11, 4: 1001, 8: 10_000_001}  # by element size in bytes
MAX_JSON_ELEMENTS = 1 << 15  # in JSON
VALUE_DEPENDENT = ("emit", "table")  # computations of models that need the original values
# For a model whose tensors cannot be JSON; and the bytes of each of their elements.
STAND_IN_ROLES, STAND_IN_BYTES = ("identity_fp32", "identity_int32"), 4


@dataclass(frozen=True, slots=True)
class RequestContent:
    """The contents of a request that determine its size, as declared in its JSON or gRPC message.

    Attributes:
        tensors: the inputs, with harmless values.
        class_counts: the outputs requested as classifications, each with the number of classes.
        size: the size of the body in bytes.
        returned_elements: the number of elements that the inputs tell the model to return; 0 if the model returns as
            many elements as it receives.
        returns_empty: whether the inputs tell the model to return a tensor without elements.
        json_strings: the BYTES inputs sent as JSON, with their original values.
        is_binary: whether inputs are binary data or raw contents.
        outputs: the names of the outputs that the request lists.
        binary_flags: the parameters of a request over HTTP that are true or false, which are those for binary outputs.
    """

    tensors: tuple[Tensor, ...]
    id: str
    class_counts: Mapping[str, int]
    size: int
    returned_elements: int = 0
    returns_empty: bool = False
    json_strings: tuple[Tensor, ...] = ()
    is_binary: bool = False
    outputs: tuple[str, ...] = ()
    binary_flags: frozenset[tuple[str, bool]] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether an input has no elements, or the request asks for an output without elements."""
        return self.returns_empty or any(not tensor.elements for tensor in self.tensors)

    @property
    def max_elements(self) -> int:
        """The number of elements of the largest tensor."""
        return max((self.returned_elements, *(tensor.elements for tensor in self.tensors)))

    @property
    def max_dimension(self) -> int:
        """The largest dimension of a tensor."""
        return max((size for tensor in self.tensors for size in tensor.shape), default=0)

    @property
    def max_batch_size(self) -> int:
        """The largest first dimension of a tensor, which is the batch size of models with batches."""
        return max((tensor.shape[0] for tensor in self.tensors if tensor.shape), default=0)

    @property
    def max_string_bytes(self) -> int:
        """The number of bytes of the longest BYTES element."""
        return max(map(_measure_longest_string, self.tensors), default=0)


def _measure_longest_string(tensor: Tensor) -> int:
    return max(map(len, tensor.array.reshape(-1).tolist()), default=0) if tensor.datatype == "BYTES" else 0


# --- reading a request ------------------------------------------------------------------------------------------------


def read_request_content(message: Message, model: Model) -> RequestContent | None:
    """Parse the contents of a request to a model; return None if its bytes cannot be parsed."""
    try:
        found = (
            _read_grpc_request(message, model) if message.method == GRPC_METHOD else _read_http_request(message, model)
        )
        if model.role.compute != "emit":
            return found
        counts = [int(count) for tensor in found.tensors for count in tensor.array.reshape(-1)]
        return replace(found, returned_elements=max(counts, default=0), returns_empty=0 in counts)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, OSError, EOFError, zlib.error):
        return None


def _decompress_body(message: Message) -> bytes:
    coding = message.header("Content-Encoding")
    if coding == "gzip":
        return gzip.decompress(message.body)  # unlike zlib, it reads every member
    return zlib.decompress(message.body) if coding == "deflate" else message.body


def _read_http_request(message: Message, model: Model) -> RequestContent:
    body = _decompress_body(message)
    if message.header(INFERENCE_HEADER) == "0":
        return RequestContent((_build_raw_input(body, model),), "", {}, len(message.body), is_binary=True)
    length = message.header(INFERENCE_HEADER)
    end = int(length) if length else len(body)
    document: Any = parse_json(body[:end]).value
    tensors, texts, start = [], [], end
    for item in document["inputs"]:
        size = (item.get("parameters") or {}).get("binary_data_size")
        data = None if size is None else body[start : start + size]
        start += size or 0
        tensors.append(_build_input(item["name"], item["datatype"], item["shape"], data, item.get("data"), model))
        if item["datatype"] == "BYTES" and data is None:
            texts.append(
                Tensor.from_values(item["name"], "BYTES", _flatten_strings(item.get("data")), tuple(item["shape"]))
            )
    options = {item["name"]: item.get("parameters") or {} for item in document.get("outputs") or ()}
    classified = {name: int(given["classification"]) for name, given in options.items() if "classification" in given}
    flags = [document.get("parameters") or {}, *options.values()]
    return RequestContent(
        tuple(tensors),
        str(document.get("id") or ""),
        classified,
        len(message.body),
        json_strings=tuple(texts),
        is_binary=start > end,
        outputs=tuple(options),
        binary_flags=frozenset(flag for given in flags for flag in given.items() if isinstance(flag[1], bool)),
    )


def _read_grpc_request(message: Message, model: Model) -> RequestContent:
    request: Any = parse_request(message)
    raw = list(request.raw_input_contents)
    tensors = []
    for place, item in enumerate(request.inputs):
        typed = [element for _, field in item.contents.ListFields() for element in field]
        data = raw[place] if place < len(raw) else None
        tensors.append(_build_input(item.name, item.datatype, item.shape, data, typed, model))
    classified = {
        output.name: int(output.parameters["classification"].int64_param)
        for output in request.outputs
        if "classification" in output.parameters
    }
    outputs = tuple(output.name for output in request.outputs)
    size, is_binary = len(message.body), bool(raw)
    return RequestContent(tuple(tensors), request.id, classified, size, is_binary=is_binary, outputs=outputs)


def _build_input(
    name: str, datatype: str, shape: Sequence[int], data: bytes | None, elements: Any, model: Model
) -> Tensor:
    """Return an input with harmless values, or with the original values if the model is value-dependent."""
    sizes = tuple(shape)
    room = prod(max(1, size) for size in sizes)  # a size of 0 counts as 1, because `enlarge_content` may increase it
    if room > MAX_ELEMENTS or datatype not in DATATYPES:
        raise ValueError(f"cannot build an input of {room} {datatype} elements")
    if model.role.compute in VALUE_DEPENDENT:
        array = decode(datatype, sizes, data) if data is not None else np.array(elements).reshape(sizes)
        return Tensor.from_values(name, datatype, array, sizes)
    if isinstance(model, DeployedModel):
        return _build_accepted_tensor(name, datatype, sizes, model)
    return _build_harmless_tensor(
        name, datatype, sizes, _measure_strings(data, elements) if datatype == "BYTES" else ()
    )


def _build_accepted_tensor(name: str, datatype: str, shape: tuple[int, ...], model: DeployedModel) -> Tensor:
    """Return a tensor of values that a deployed model is known to accept."""
    return Tensor.from_values(name, datatype, model.build_ramp(model.inputs.index(name), prod(shape), 0), shape)


def _build_harmless_tensor(name: str, datatype: str, shape: tuple[int, ...], lengths: Sequence[int] = ()) -> Tensor:
    """Return a tensor filled with one number, whose JSON text is at least as long as its bytes in binary data.

    BYTES elements consist of letters. `lengths` are the lengths of the first elements; all others have length 1.
    """
    if datatype != "BYTES":
        dtype = DATATYPES[datatype].dtype
        return Tensor.from_values(name, datatype, np.full(shape, HARMLESS_VALUES.get(dtype.itemsize, 1), dtype), shape)
    count = prod(shape)
    return Tensor.from_values(name, datatype, [b"a" * length for length in ([*lengths] + [1] * count)[:count]], shape)


def _measure_strings(data: bytes | None, elements: Any) -> list[int]:
    """Return the length of each BYTES element.

    Raises:
        ValueError: the strings are longer than the data.
    """
    if data is not None:
        found = [int(strings.PREFIX.unpack_from(data, start)[0]) for start in strings.find_offsets(data)]
        if sum(found) > len(data):
            raise ValueError(f"strings of {sum(found)} bytes in data of {len(data)} bytes")
        return found
    return list(map(len, _flatten_strings(elements)))


def _flatten_strings(elements: Any) -> list[bytes]:
    """Return the bytes of each element of a flat or nested list of strings."""
    flat: list[Any] = list(elements or ())
    while any(isinstance(element, list) for element in flat):
        flat = [part for element in flat for part in (element if isinstance(element, list) else [element])]
    return [text if isinstance(text, bytes) else text.encode() for text in flat]


def _build_raw_input(body: bytes, model: Model) -> Tensor:
    """Return the single input of a raw request; a batch dimension has size 1."""
    (spec,) = model.role.inputs
    name = model.names.inputs.get(spec.name, spec.name)
    if spec.datatype == "BYTES":
        return _build_harmless_tensor(name, "BYTES", (1,), (len(body),))
    count = len(body) // DATATYPES[spec.datatype].dtype.itemsize
    fixed = prod(size for size in spec.shape if size >= 0)
    shape = tuple(count // fixed if size < 0 else size for size in spec.shape)
    return _build_input(name, spec.datatype, (1, *shape) if model.role.batching else shape, None, None, model)


# --- making control requests ------------------------------------------------------------------------------------------


def build_control_request(content: RequestContent, target: Target, model: Model) -> InferRequest | None:
    """Return the control request of a request to a model, or None if no model can receive one."""
    if not model.is_json_capable:
        return (
            None
            if isinstance(model, DeployedModel)
            else build_stand_in_request(content.max_elements, target, request_id=content.id)
        )
    inputs = tuple(Input(tensor, binary=False) for tensor in content.tensors)
    return InferRequest(model.infer_path, inputs, id=content.id or None, model=model.name, version=model.version)


def build_harmless_inputs(model: Model) -> tuple[Tensor, ...]:
    """Return inputs of a role with the shapes of samples and harmless values, unless the model is value-dependent."""
    sample = replace(model, salt=0).sample()
    if model.role.compute in VALUE_DEPENDENT:
        return sample
    return tuple(_build_harmless_tensor(tensor.name, tensor.datatype, tensor.shape) for tensor in sample)


def build_stand_in_request(
    count: int, target: Target, form: Form = "json", request_id: str = ""
) -> InferRequest | None:
    """Return a request to another model, with `count` elements of 4 bytes; None without such a model."""
    model = find_stand_in(target)
    if model is None:
        return None
    want: Form | None = "binary" if form == "binary" else None
    return model.request([model.tensor([1] * count)], send=form, want=want, request_id=request_id or None)


def find_stand_in(target: Target) -> Model | None:
    """Return the model that stands in for one whose tensors cannot be JSON; None without such a model."""
    return next(filter(None, map(target.model, STAND_IN_ROLES)), None)


def enlarge_content(content: RequestContent, model: Model) -> RequestContent:
    """Return slightly larger contents; if a server accepts these, the original contents exceed no limit."""
    tensors = tuple(_enlarge_tensor(tensor, model) for tensor in content.tensors)
    return replace(content, tensors=tensors, id=content.id and content.id + "a")


def _enlarge_tensor(tensor: Tensor, model: Model) -> Tensor:
    if model.role.compute in VALUE_DEPENDENT:
        return tensor
    is_open = model.role.batching or all(spec.shape[:1] == (-1,) for spec in model.role.inputs)
    shape = (tensor.shape[0] + 1, *tensor.shape[1:]) if is_open and tensor.shape else tensor.shape
    if isinstance(model, DeployedModel):
        return _build_accepted_tensor(tensor.name, tensor.datatype, shape, model)
    return _build_harmless_tensor(
        tensor.name, tensor.datatype, shape, [_measure_longest_string(tensor) + 1] * prod(shape)
    )


def shrink_content(content: RequestContent, model: Model) -> RequestContent:
    """Return contents with about `MAX_JSON_ELEMENTS` elements at most, which can quickly be written as JSON.

    Smaller contents are returned unchanged, and so are contents for deployed models and value-dependent models.
    """
    if (
        content.max_elements <= MAX_JSON_ELEMENTS
        or model.role.compute in VALUE_DEPENDENT
        or isinstance(model, DeployedModel)
    ):
        return content
    tensors = []
    for tensor in content.tensors:
        first, *others = tensor.shape or (1,)
        rows = max(1, min(first, MAX_JSON_ELEMENTS // max(1, prod(others))))
        tensors.append(
            _build_harmless_tensor(
                tensor.name, tensor.datatype, (rows, *others), [_measure_longest_string(tensor)] * rows * prod(others)
            )
        )
    return replace(content, tensors=tuple(tensors))


def pad_message(message: Message, size: int) -> Message:
    """Pad the JSON of a message with white space until its body has `size` bytes."""
    space = b" " * max(0, size - len(message.body))
    return message.with_body(message.body[:-1] + space + message.body[-1:])
