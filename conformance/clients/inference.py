"""What a client under judgement is asked to do, and what it says came of it: the words of the adapter protocol.

`schemas/adapter.schema.json` describes the lines, `docs/clients.md` walks through an adapter. Tensors travel as base64
of their binary form (little-endian, row-major, elements of BYTES behind their 4-byte lengths), whatever form the client
is to send them in.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from conformance.wire import tensor as tensors
from conformance.wire.finding import DecodeError
from conformance.wire.tensor import Tensor

PROTOCOL: Final = 1  # of the adapter protocol

# How a tensor travels: over HTTP as binary data or as JSON, over gRPC in raw or in typed contents.
Form = Literal["binary", "json"]


@dataclass(frozen=True, slots=True)
class RequestedOutput:
    """An output that the caller asks for.

    Attributes:
        form: None leaves it to the client's default, or to `Inference.all_outputs`.
        classes: how many; None asks for the tensor.
    """

    name: str
    form: Form | None = None
    classes: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as the adapter protocol has it."""
        given = {"form": self.form, "classes": self.classes}
        return {"name": self.name, **{name: value for name, value in given.items() if value is not None}}


@dataclass(frozen=True, slots=True)
class Inference:
    """One inference that a client is asked to make.

    Attributes:
        inputs: the tensors, in the order in which the caller gives them.
        forms: how each input is to be sent, in the same order; one form for all where it has one entry.
        outputs: None asks for all outputs by naming none.
        all_outputs: what `binary_data_output` says; None leaves it out.
        is_raw: to be sent as a raw binary request.
        coding: content coding of the request, `gzip` or `deflate`; `accepts`: of the answer.
    """

    model: str
    inputs: tuple[Tensor, ...]
    forms: tuple[Form, ...] = ("binary",)
    outputs: tuple[RequestedOutput, ...] | None = None
    all_outputs: Form | None = None
    id: str | None = None
    version: str | None = None
    is_raw: bool = False
    coding: str | None = None
    accepts: str | None = None

    def form_of(self, place: int) -> Form:
        """Return the form in which the input at this place is to be sent."""
        return self.forms[place if len(self.forms) > 1 else 0]

    def to_dict(self) -> dict[str, Any]:
        """Return it as the adapter protocol has it; what is not asked for is left out."""
        given: dict[str, Any] = {
            "version": self.version,
            "id": self.id,
            "outputs": None if self.outputs is None else [output.to_dict() for output in self.outputs],
            "all_outputs": self.all_outputs,
            "raw": self.is_raw or None,
            "coding": self.coding,
            "accepts": self.accepts,
        }
        inputs = [{**tensor_to_dict(one), "form": self.form_of(place)} for place, one in enumerate(self.inputs)]
        asked = {name: value for name, value in given.items() if value is not None}
        return {"model": self.model, "inputs": inputs, **asked}


@dataclass(frozen=True, slots=True)
class Class:
    """One class of a classified output, as a client divides it."""

    value: str
    index: int
    label: str | None = None


@dataclass(frozen=True, slots=True)
class ClientOutput:
    """An output as the client gives it to its caller.

    Attributes:
        tensor: None where its bytes do not fit datatype and shape; `trouble` says how.
        classes: where the client divides them itself; else they are a tensor of BYTES.
    """

    name: str
    tensor: Tensor | None = None
    classes: tuple[Class, ...] | None = None
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What the client gives its caller for one inference: outputs, or an error, or that it cannot do it.

    Attributes:
        outputs: None where there are none because of an error.
        error: the text of the error, or None; `status` is that of HTTP or the name of the code of gRPC, where the
            library tells it.
        cannot: why the client's library has no way to make this inference; empty where it has.
        id: of the answer, where the library tells it.
        elapsed: seconds, measured by the suite.
    """

    outputs: tuple[ClientOutput, ...] | None = None
    error: str | None = None
    status: str = ""
    cannot: str = ""
    id: str | None = None
    elapsed: float = 0.0

    def output(self, name: str) -> ClientOutput | None:
        """Return the output of that name, or None."""
        return next((output for output in self.outputs or () if output.name == name), None)


@dataclass(frozen=True, slots=True)
class Introduction:
    """What an adapter says of its client.

    Attributes:
        transports: those that the client speaks, of `http` and `grpc`.
    """

    name: str
    version: str = ""
    language: str = ""
    transports: tuple[str, ...] = ("http",)
    extra: Mapping[str, str] = field(default_factory=dict)


def tensor_to_dict(one: Tensor) -> dict[str, Any]:
    """Return a tensor as the adapter protocol has it."""
    data = b64encode(bytes(one.to_bytes())).decode()
    return {"name": one.name, "datatype": one.datatype, "shape": list(one.shape), "data": data}


def parse_result(said: Mapping[str, Any], elapsed: float = 0.0) -> Result:
    """Return what a client said of one inference; `said` fits the schema."""
    if "cannot" in said:
        return Result(cannot=said["cannot"], elapsed=elapsed)
    if "error" in said:
        error = said["error"]
        return Result(error=error["message"], status=str(error.get("status", "")), elapsed=elapsed)
    outputs = tuple(_given_output(output) for output in said["outputs"])
    return Result(outputs, id=said.get("id"), elapsed=elapsed)


def _given_output(said: Mapping[str, Any]) -> ClientOutput:
    name = said["name"]
    if "classes" in said:
        classes = [Class(one["value"], one["index"], one.get("label")) for one in said["classes"]]
        return ClientOutput(name, classes=tuple(classes))
    try:
        array = tensors.decode(
            said["datatype"], tuple(said["shape"]), memoryview(b64decode(said["data"], validate=True))
        )
    except (DecodeError, ValueError, KeyError) as error:
        return ClientOutput(name, trouble=str(error))
    return ClientOutput(name, Tensor(name, said["datatype"], tuple(said["shape"]), array))
