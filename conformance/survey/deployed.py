"""A deployed model that fills no role: its signature is what its metadata say, and what it computes is its own affair.

It can still be judged by relations: the same tensors in two forms get the same answer. For that the survey finds inputs
that it takes (`roles.guessed_inputs`), once, and sees whether it gives one answer twice. What JSON cannot carry, FP16
by definition, NaN and strings that are not UTF-8 in the model's own outputs, travels as binary data throughout.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from conformance.expect.unmet import Blocked, NotApplicable
from conformance.roles.model import Model
from conformance.roles.roles import BINARY_ONLY, Role, TensorSpec
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.datatypes import DATATYPES, INTEGERS
from conformance.wire.request import ABSENT, InferRequest, Output
from conformance.wire.response import Output as Found
from conformance.wire.tensor import Tensor, decode, first_difference

# The answers that relations look at again and again, and hold others against.
PLAIN, FULL, MIXED = "plain", "full", "mixed"
# What a user has to say of a model's inputs: the elements alone, or the whole tensors, which no metadata list.
DATA, TENSORS = "data", "tensors"
SCORED = (*INTEGERS, "FP32", "FP64")
MOST_SCORES = 1_000_000  # in an output that is classified
FAR = "é猫"  # two characters, five bytes


@dataclass(frozen=True, slots=True)
class Deployed(Model):
    """A model with inputs that it takes. Its role is nobody's, and computes what nobody knows.

    Attributes:
        tensors: one for each input that is sent.
        declared: name -> datatype of the outputs by the metadata; the outputs of the role are those that really come.
        binary_only: outputs that JSON does not carry.
        unsteady: outputs that differ between two equal requests.
        trouble: why no plain request is answered, and what to do; empty where one is.
        refusal: why no plain request is answered, alone.
        missing: what a user has to say of its inputs; empty where nothing, or where that is no help.
        json_trouble: why none is answered in JSON, though binary data are; empty where one is.
        replies: the answers to `plain`, `full` and `mixed`, once they have been asked for.
    """

    tensors: tuple[Tensor, ...] = ()
    declared: Mapping[str, str] = field(default_factory=dict)
    binary_only: tuple[str, ...] = ()
    unsteady: tuple[str, ...] = ()
    trouble: str = ""
    refusal: str = ""
    missing: str = ""
    json_trouble: str = ""
    replies: dict[str, Reply] = field(default_factory=dict, compare=False, repr=False)

    # --- the plain request ---

    def sample(self, batch: int = 2) -> tuple[Tensor, ...]:
        """Return the inputs; `batch` is that of a role, and of no meaning here."""
        del batch
        return self.tensors

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs that are sent."""
        return tuple(tensor.name for tensor in self.tensors)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs."""
        return tuple(spec.name for spec in self.role.outputs)

    @property
    def json_capable(self) -> tuple[str, ...]:
        """The outputs that have a JSON form."""
        return tuple(name for name in self.outputs if name not in self.binary_only)

    @property
    def json_capable_inputs(self) -> tuple[str, ...]:
        """The inputs that have a JSON form."""
        return tuple(tensor.name for tensor in self.tensors if is_json_capable(tensor.datatype, tensor.array))

    @property
    def sends(self) -> tuple[str, ...]:
        """The inputs that have to travel as binary data."""
        kept = () if self.json_trouble else self.json_capable_inputs
        return tuple(tensor.name for tensor in self.tensors if tensor.name not in kept)

    @property
    def kept_binary(self) -> tuple[str, ...]:
        """The outputs that have to come as binary data."""
        return self.outputs if self.json_trouble else self.binary_only

    def listed(self) -> list[Output] | None:
        """Return the outputs as a plain request lists them: not at all, unless one has to be binary data."""
        kept = self.kept_binary
        return [Output(name, True if name in kept else ABSENT) for name in self.outputs] if kept else None

    def plain(self) -> InferRequest:
        """Return the plain request: JSON both ways, as far as JSON goes."""
        return self.request(send=self.sends, outputs=self.listed())

    def full(self) -> InferRequest:
        """Return the plain request with every output as binary data."""
        return self.request(send=self.sends, want="binary")

    def items(self) -> list[Tensor]:
        """Return the only input as a raw request may hold it: one item of a batch, wherever there may be one.

        Of several the first that is served will do; none is right where metadata do not tell a batch from a length.
        """
        (tensor,), shape = self.tensors, self.role.inputs[0].shape
        if len(tensor.shape) > len(shape) or (shape[:1] == (-1,) and len(shape) > 1):
            return [_first_item(tensor)]
        return [tensor, _first_item(tensor)] if shape == (-1,) else [tensor]

    def mixed(self) -> InferRequest:
        """Return a request for binary data beside JSON, which has letters beyond ASCII as far as the outputs allow.

        A model of one output that JSON carries is asked for that as binary data.
        """
        texts = [spec.name for spec in self.role.outputs if spec.datatype == "BYTES"]
        wanted = [name for name in self.json_capable if name not in texts]
        wanted = wanted if 0 < len(wanted) < len(self.json_capable) else list(self.json_capable[::2])
        outputs = [Output(name, name in (*wanted, *self.kept_binary)) for name in self.outputs]
        return self.request(send=self.sends, outputs=outputs, request_id=FAR)

    # --- the plain answer ---

    def answer(self, target: Target, name: str) -> Reply:
        """Return the answer to the request `plain`, `full` or `mixed`; it is asked for once."""
        if name not in self.replies:
            request = {PLAIN: self.plain, FULL: self.full, MIXED: self.mixed}[name]
            self.replies[name] = target.infer(request())
        return self.replies[name]

    def reference(self, target: Target, name: str) -> Tensor:
        """Return an output of the plain answer.

        Raises:
            Blocked: it cannot be read there.
        """
        reply = self.answer(target, PLAIN)
        output = reply.answer.output(name) if reply.succeeded else None
        if output is None or (tensor := as_tensor(output)) is None:
            found = "; ".join(map(str, output.findings)) if output else reply.outcome()
            raise Blocked(f"{name} cannot be read in the answer to a plain request: {found}")
        return tensor

    def steady(self, names: Sequence[str] | None = None) -> tuple[str, ...]:
        """Return the outputs, of these or of all, whose values can be compared.

        Raises:
            NotApplicable: there are none, because the model is not deterministic.
        """
        wanted = self.outputs if names is None else names
        found = tuple(name for name in wanted if name not in self.unsteady)
        if not found:
            raise NotApplicable(unsteadiness(wanted))
        return found

    def require_steady(self, target: Target, names: Sequence[str], *replies: Reply) -> None:
        """Ask once more for answers that should agree and do not, and for the plain one.

        Raises:
            NotApplicable: an output is not what it was, so that the model is not deterministic.
        """
        for first in (*replies, self.answer(target, PLAIN)):
            again = target.send(first.exchange.message, fresh=True)
            if first.succeeded and again.succeeded and (found := differing(first, again, names)):
                raise NotApplicable(unsteadiness(found))

    # --- as plain data ---

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as workers take it."""
        return {
            "name": self.name,
            "inputs": [_plain_spec(spec) for spec in self.role.inputs],
            "outputs": [_plain_spec(spec) for spec in self.role.outputs],
            "sent": [
                {**_plain_spec(tensor), "bytes": b64encode(tensor.to_bytes()).decode()} for tensor in self.tensors
            ],
            "declared": dict(self.declared),
            "binary_only": list(self.binary_only),
            "unsteady": list(self.unsteady),
            "trouble": self.trouble,
            "refusal": self.refusal,
            "missing": self.missing,
            "json_trouble": self.json_trouble,
        }


def of_dict(data: Mapping[str, Any]) -> Deployed:
    """Return the model that `to_dict` made plain."""
    return Deployed(
        role_of(data["name"], map(_spec, data["inputs"]), map(_spec, data["outputs"])),
        data["name"],
        tensors=tuple(map(_tensor, data["sent"])),
        declared=data["declared"],
        binary_only=tuple(data["binary_only"]),
        unsteady=tuple(data["unsteady"]),
        trouble=data["trouble"],
        refusal=data["refusal"],
        missing=data["missing"],
        json_trouble=data["json_trouble"],
    )


def role_of(name: str, inputs: Any, outputs: Any) -> Role:
    """Return the role that a model plays for itself."""
    return Role(name, "what its metadata say", "unknown", tuple(inputs), tuple(outputs))


def _plain_spec(spec: TensorSpec | Tensor) -> dict[str, Any]:
    return {"name": spec.name, "datatype": spec.datatype, "shape": list(spec.shape)}


def _spec(data: Mapping[str, Any]) -> TensorSpec:
    return TensorSpec(data["name"], data["datatype"], tuple(data["shape"]))


def _tensor(data: Mapping[str, Any]) -> Tensor:
    shape = tuple(data["shape"])
    array = decode(data["datatype"], shape, b64decode(data["bytes"]))
    return Tensor(data["name"], data["datatype"], shape, array)


def _first_item(tensor: Tensor) -> Tensor:
    return Tensor.of(tensor.name, tensor.datatype, tensor.array[:1])


def raw_body(tensor: Tensor) -> bytes:
    """Return a tensor as the body of a raw request; that of one string is the string itself."""
    return bytes(tensor.array.reshape(-1)[0]) if tensor.datatype == "BYTES" else bytes(tensor.to_bytes())


# --- outputs ------------------------------------------------------------------------------------------------------


def as_tensor(output: Found) -> Tensor | None:
    """Return an output as a tensor, None where it cannot be read."""
    if output.array is None or output.shape is None:
        return None
    return Tensor(output.name, output.datatype, output.shape, output.array)


def is_json_capable(datatype: str, array: np.ndarray[Any, Any] | None = None) -> bool:
    """Say whether JSON carries elements of a datatype; and these, where they are given."""
    return datatype not in BINARY_ONLY and (array is None or is_ordinary(array))


def is_ordinary(array: np.ndarray[Any, Any]) -> bool:
    """Say whether there is no NaN, no infinity and no string that is not UTF-8 among the elements."""
    if array.dtype.kind == "O":
        return all(_is_utf8(element) for element in array.reshape(-1).tolist())
    return bool(array.dtype.kind != "f" or np.isfinite(array).all())


def has_classes(tensor: Tensor) -> bool:
    """Say whether an output may be classified: strings, NaN and empty outputs have ended servers, some are too long."""
    return tensor.datatype in SCORED and 0 < tensor.elements <= MOST_SCORES and is_ordinary(tensor.array)


def _is_utf8(element: bytes) -> bool:
    try:
        element.decode()
    except UnicodeDecodeError:
        return False
    return True


def differing(first: Reply, second: Reply, names: Sequence[str] | None = None) -> list[str]:
    """Return the outputs, of these or of all, that are not the same bit by bit in two answers to one request."""
    every = dict.fromkeys((*first.answer.names(), *second.answer.names()))
    return [name for name in every if (names is None or name in names) and not _alike(first, second, name)]


def _alike(first: Reply, second: Reply, name: str) -> bool:
    a, b = first.answer.output(name), second.answer.output(name)
    if a is None or b is None or (a.datatype, a.shape) != (b.datatype, b.shape):
        return False
    if a.array is None or b.array is None or a.datatype not in DATATYPES:
        return a.array is b.array
    return first_difference(a.array, b.array, a.datatype) is None


def unsteadiness(names: Sequence[str]) -> str:
    """Return the sentence that says so of a model."""
    verb = "differ" if len(names) > 1 else "differs"
    return f"the model is not deterministic: {', '.join(names)} {verb} between two equal requests"
