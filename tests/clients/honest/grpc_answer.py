"""An answer over gRPC: ModelInferResponse, field by field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.clients.honest import tensors
from tests.clients.honest.caller import CallerRequest, CallerResult, MalformedError, Tensor
from tests.clients.honest.grpc_request import CONTENTS
from tests.clients.honest.protobuf import fields, signed, unpacked


@dataclass
class Output:
    """An InferOutputTensor as it comes."""

    name: str = ""
    datatype: str = ""
    shape: list[int] = field(default_factory=list)
    contents: bytes = b""


@dataclass
class Response:
    """A ModelInferResponse as it comes."""

    id: str = ""
    outputs: list[Output] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)


def given(asked: CallerRequest, data: bytes) -> CallerResult:
    """Return what an answer gives the caller; raises MalformedError."""
    said = parsed(data)
    outputs = read_outputs(asked, said)
    expect_own(asked, said, outputs)
    return CallerResult(outputs, said.id or None)


def parsed(data: bytes) -> Response:
    said = Response()
    for number, value in fields(data):
        if number == 3:
            said.id = _text(value)
        elif number == 5:
            said.outputs.append(parsed_output(_bytes(value)))
        elif number == 6:
            said.raw.append(_bytes(value))
    return said


def parsed_output(data: bytes) -> Output:
    output = Output()
    for number, value in fields(data):
        if number == 1:
            output.name = _text(value)
        elif number == 2:
            output.datatype = _text(value)
        elif number == 3:
            output.shape += map(signed, unpacked(value))
        elif number == 5:
            output.contents += _bytes(value)
    return output


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise MalformedError("a number where bytes belong")
    return value


def _text(value: int | bytes) -> str:
    try:
        return _bytes(value).decode()
    except UnicodeDecodeError as error:
        raise MalformedError("a string that is no UTF-8") from error


def read_outputs(_asked: CallerRequest, said: Response) -> tuple[Tensor, ...]:
    """Return the outputs, from raw contents where there are any, else from typed ones."""
    if not said.raw:
        return tuple(read_output(output, from_typed(output)) for output in said.outputs)
    if len(said.raw) != len(said.outputs):
        raise MalformedError(f"{len(said.raw)} entries for {len(said.outputs)} outputs")
    if any(output.contents for output in said.outputs):
        raise MalformedError("raw and typed contents")
    return tuple(read_output(output, entry) for output, entry in zip(said.outputs, in_order(said.raw), strict=True))


def in_order(entries: list[bytes]) -> list[bytes]:
    """Return the entries of raw_output_contents, in the order of the outputs."""
    return entries


def read_output(output: Output, data: bytes) -> Tensor:
    if any(size < 0 for size in output.shape):
        raise MalformedError(f"shape {output.shape}")
    expect_fit(output.datatype, output.shape, data)
    return Tensor(output.name, output.datatype, tuple(output.shape), data)


def expect_fit(datatype: str, shape: Sequence[int], data: bytes) -> None:
    """Raise MalformedError unless the data have the elements of the shape."""
    tensors.expect_fit(datatype, shape, data)


def from_typed(output: Output) -> bytes:
    """Return the binary form of typed contents."""
    wanted = CONTENTS.get(output.datatype)
    found = list(fields(output.contents))
    if any(number != wanted for number, _ in found):
        raise MalformedError(f"contents that are not for {output.datatype}")
    if output.datatype == tensors.BYTES:
        return b"".join(tensors.framed(_bytes(value)) for _, value in found)
    if output.datatype in ("FP32", "FP64"):
        return b"".join(_bytes(value) for _, value in found)
    numbers = [signed(number) for _, value in found for number in unpacked(value)]
    return tensors.packed(output.datatype, typed_elements(output.datatype, numbers))


def typed_elements(datatype: str, numbers: list[int]) -> list[int]:
    if datatype == "UINT64":
        return [number % (1 << 64) for number in numbers]
    return numbers


def expect_own(asked: CallerRequest, said: Response, outputs: Sequence[Tensor]) -> None:
    """Raise MalformedError unless the answer is that to the caller's request."""
    names = [output.name for output in outputs]
    missing = [output.name for output in asked.outputs or () if output.name not in names]
    if missing or len(set(names)) != len(names):
        raise MalformedError(f"outputs {names}")
    if asked.id and said.id not in ("", asked.id):
        raise MalformedError(f"the answer to {said.id}")
