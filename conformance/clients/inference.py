"""Data types of the adapter protocol: the inferences that a client is to make, and their results.

`schemas/adapter.schema.json` describes the lines, `docs/clients.md` walks through an adapter. The lines always hold
tensors as base64 of binary data (little-endian, row-major, BYTES elements with 4-byte length prefixes), whether the
client is to send them as binary data or as JSON.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from conformance.wire import tensor as tensors
from conformance.wire.finding import DecodeError
from conformance.wire.tensor import Tensor

PROTOCOL: Final = 1  # version of the adapter protocol

# How a tensor is encoded in a request or an answer. "binary": over HTTP as binary data, over gRPC in raw contents.
# "json": over HTTP as JSON, over gRPC in typed contents.
Form = Literal["binary", "json"]


@dataclass(frozen=True, slots=True)
class RequestedOutput:
    """An output that the caller requests.

    Attributes:
        form: how the server is to send the output; None: as `Inference.all_outputs` says, or the client's default.
        classes: the number of classes to request; None requests the tensor.
    """

    name: str
    form: Form | None = None
    classes: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return this output as JSON for the `infer` command."""
        given = {"form": self.form, "classes": self.classes}
        return {"name": self.name, **{name: value for name, value in given.items() if value is not None}}


@dataclass(frozen=True, slots=True)
class Inference:
    """One inference that a client is to make.

    Attributes:
        inputs: the tensors, in the caller's order.
        forms: how to encode each input (`binary` or `json`), in the same order; a single entry applies to all inputs.
        outputs: the outputs to request; None omits the list, which requests all outputs.
        all_outputs: the form that the parameter `binary_data_output` requests; None omits the parameter.
        is_raw: whether to send the inference as a raw binary request.
        coding: the content coding of the request, `gzip` or `deflate`, or None.
        accepts: the content coding to accept in the answer, or None.
        unneeded: what the row's claim does not need: "form", that the tensors are in this form, or "id"; a client that
            cannot make this inference is asked for the alternative.
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
    unneeded: Literal["form", "id"] | None = None

    def get_form(self, index: int) -> Form:
        """Return how to encode the input at this index: `binary` or `json`."""
        return self.forms[index if len(self.forms) > 1 else 0]

    def make_alternative(self) -> Inference:
        """Return this inference in the other form than that of the first input, or without id, as the claim allows."""
        if self.unneeded != "form":
            return replace(self, id=None if self.unneeded else self.id, unneeded=None)
        form: Form = "binary" if self.get_form(0) == "json" else "json"
        outputs = self.outputs and tuple(replace(one, form=one.form and form) for one in self.outputs)
        return replace(self, forms=(form,), outputs=outputs, unneeded=None)

    def to_dict(self) -> dict[str, Any]:
        """Return this inference as JSON for the `infer` command, without unset members."""
        given: dict[str, Any] = {
            "version": self.version,
            "id": self.id,
            "outputs": None if self.outputs is None else [output.to_dict() for output in self.outputs],
            "all_outputs": self.all_outputs,
            "raw": self.is_raw or None,
            "coding": self.coding,
            "accepts": self.accepts,
        }
        inputs = [{**tensor_to_dict(one), "form": self.get_form(index)} for index, one in enumerate(self.inputs)]
        set_members = {name: value for name, value in given.items() if value is not None}
        return {"model": self.model, "inputs": inputs, **set_members}


@dataclass(frozen=True, slots=True)
class Class:
    """One class of a classified output, as a client parses it."""

    value: str
    index: int
    label: str | None = None


@dataclass(frozen=True, slots=True)
class ClientOutput:
    """An output that the client returns to its caller.

    Attributes:
        tensor: the decoded tensor; None if there is none.
        classes: the classes that the client parsed; None if the client returns them as a BYTES tensor.
        trouble: why the bytes do not match datatype and shape; empty if they do.
        cannot: why the client's library cannot read this output; empty if the library can.
        unread: the output's entry in the adapter's answer, kept only if the bytes do not match datatype and shape.
    """

    name: str
    tensor: Tensor | None = None
    classes: tuple[Class, ...] | None = None
    trouble: str = ""
    cannot: str = ""
    unread: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one inference: outputs, an error, or the reason why the client cannot make the inference.

    Attributes:
        outputs: None without a successful answer.
        error: the error message, or None.
        status: the HTTP status or the gRPC code of the error, by name or number; empty if the library hides it.
        cannot: why the client's library cannot make this inference; empty if the library can.
        id: the id of the answer; None if the library hides it.
        elapsed: seconds from the command to the adapter's answer, measured by the suite.
    """

    outputs: tuple[ClientOutput, ...] | None = None
    error: str | None = None
    status: str = ""
    cannot: str = ""
    id: str | None = None
    elapsed: float = 0.0

    def output(self, name: str) -> ClientOutput | None:
        """Return the output with this name, or None."""
        return next((output for output in self.outputs or () if output.name == name), None)


@dataclass(frozen=True, slots=True)
class Introduction:
    """An adapter's description of its client.

    `transports`: the transports that the client supports: `http`, `grpc` or both.
    """

    name: str
    version: str = ""
    language: str = ""
    transports: tuple[str, ...] = ("http",)

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Introduction:
        """Rebuild an introduction from the JSON object that `to_dict` returns."""
        name, version, language = (str(entry[key]) for key in ("name", "version", "language"))
        return cls(name, version, language, tuple(map(str, entry["transports"])))

    def to_dict(self) -> dict[str, Any]:
        """Return the introduction as a JSON object."""
        own = {"name": self.name, "version": self.version, "language": self.language}
        return {**own, "transports": list(self.transports)}


def tensor_to_dict(tensor: Tensor) -> dict[str, Any]:
    """Return a tensor as a JSON object of the adapter protocol, with its binary data in base64."""
    data = b64encode(bytes(tensor.to_bytes())).decode()
    return {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape), "data": data}


def parse_result(entry: Mapping[str, Any], elapsed: float = 0.0) -> Result:
    """Parse the result of one inference from an entry that the schema has validated."""
    if "cannot" in entry:
        return Result(cannot=entry["cannot"], elapsed=elapsed)
    if "error" in entry:
        error = entry["error"]
        return Result(error=error["message"], status=str(error.get("status", "")), elapsed=elapsed)
    outputs = tuple(_parse_output(output) for output in entry["outputs"])
    return Result(outputs, id=entry.get("id"), elapsed=elapsed)


def _parse_output(entry: Mapping[str, Any]) -> ClientOutput:
    name = entry["name"]
    if "classes" in entry:
        classes = [Class(one["value"], one["index"], one.get("label")) for one in entry["classes"]]
        return ClientOutput(name, classes=tuple(classes))
    if "cannot" in entry:
        return ClientOutput(name, cannot=entry["cannot"])
    try:
        array = tensors.decode(
            entry["datatype"], tuple(entry["shape"]), memoryview(b64decode(entry["data"], validate=True))
        )
    except (DecodeError, ValueError, KeyError) as error:
        return ClientOutput(name, trouble=str(error), unread=entry)
    return ClientOutput(name, Tensor(name, entry["datatype"], tuple(entry["shape"]), array))
