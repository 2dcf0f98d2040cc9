"""A deployed model that fills no role: its signature is what its metadata say, and its own answers are the oracle.

The checks of the roles are judged on it, as far as they need a signature alone (`spec.fit`): what a plain request with
the same inputs is answered is right (`discovery.control_oracle`). The survey finds inputs that it takes
(`roles.guessed_inputs`), once, and sees whether it takes others like them and gives one answer twice. What JSON cannot
carry, FP16 by definition, NaN and strings that are not UTF-8 in the model's own outputs, travels as binary data.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Protocol

import numpy as np

from conformance.expect.unmet import BlockedError, NotApplicableError
from conformance.roles.guessed_inputs import vary
from conformance.roles.model import Model
from conformance.roles.roles import Role, TensorSpec
from conformance.spec.fit import SCORE_DATATYPES
from conformance.wire.datatypes import lookup
from conformance.wire.request import ABSENT, Form, InferRequest, RequestedOutput
from conformance.wire.tensor import Tensor, decode, find_first_difference

# What a user has to say of a model's inputs: the elements alone, or the whole tensors, which no metadata list.
DATA, TENSORS = "data", "tensors"
MAX_DRAWS = 6  # of inputs that a row tries, until one is telling
FEW_ELEMENTS = 16  # a row that asks for no more does not care how many there are
MAX_CLASSES = 100  # of a model that has more, where all are wanted
MAX_SCORES = 1_000_000  # in an output that is classified
# Attributes of a model that are plain data as they are.
PLAIN_FIELDS = (
    *("is_described", "binary_only", "unsteady", "trouble", "refusal", "missing", "json_trouble"),
    *("demands", "varies", "takes_counts", "by_place"),
)


class DeclinedError(NotApplicableError):
    """The model takes no such inputs, in the plainest request either."""


class Oracle(Protocol):
    """What tells the right outputs of deployed models: their control requests (`discovery.control_oracle`)."""

    @property
    def is_over_grpc(self) -> bool:
        """Whether it asks by gRPC calls."""

    def outputs(self, model: DeployedModel, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the steady outputs of a model for inputs, which stand in any order."""

    def begin_row(self) -> None:
        """Forget which requests the row before rested on."""

    def has_changed(self, model: DeployedModel) -> bool:
        """Say whether a model answers one of the row's control requests otherwise now."""


@dataclass(frozen=True, slots=True)
class DeployedModel(Model):
    """A model with inputs that it takes. Its role is its own signature; what it computes its control requests tell.

    Attributes:
        tensors: one for each input that is sent.
        declared: name -> datatype of the outputs by the metadata; the outputs of the role are those that really come.
        is_described: the metadata list its inputs.
        binary_only: outputs that JSON does not carry.
        unsteady: outputs that differ between two equal requests.
        trouble: why no plain request is answered, and what to do; empty where one is. There are `tensors` nevertheless
            where it takes them: with `demands`, or for an answer that cannot be read.
        refusal: why no plain request is answered, alone.
        missing: what a user has to say of its inputs; empty where nothing, or where that is no help.
        json_trouble: why none is answered in JSON, though binary data are; empty where one is.
        demands: the optional part of a request without which none is answered, in JSON or at all; empty for none.
        samples: inputs that a user gives, where there are several of them.
        varies: it takes other inputs of the same shapes, and answers some of them otherwise.
        takes_counts: it takes inputs of another size along the first variable dimension.
        by_place: it takes its inputs in the order of the request, whatever their names, in plain requests.
        control: answers for it; None where nobody is asked.
    """

    tensors: tuple[Tensor, ...] = ()
    declared: Mapping[str, str] = field(default_factory=dict)
    is_described: bool = True
    binary_only: tuple[str, ...] = ()
    unsteady: tuple[str, ...] = ()
    trouble: str = ""
    refusal: str = ""
    missing: str = ""
    json_trouble: str = ""
    demands: str = ""
    samples: tuple[tuple[Tensor, ...], ...] = ()
    varies: bool = False
    takes_counts: bool = False
    by_place: bool = False
    control: Oracle | None = field(default=None, compare=False, repr=False)

    # --- inputs ---

    def sample(self, batch: int = 2) -> tuple[Tensor, ...]:
        """Return inputs that the model takes, others for each salt; `batch` is for roles."""
        del batch
        return self.draw(self.salt)

    def fill(self, values: Any) -> list[Tensor]:
        """Return inputs that the model takes: only it knows which values these are."""
        del values
        return list(self.sample())

    def draw(self, salt: int) -> tuple[Tensor, ...]:
        """Return inputs that the model takes; others for each salt where it takes others."""
        if not self.varies:
            return self.tensors
        return self.samples[salt % len(self.samples)] if self.samples else vary(self.tensors, salt)

    def draw_several(self) -> Iterator[tuple[Tensor, ...]]:
        """Yield a few inputs that the model takes; one where it takes no others."""
        for step in range(MAX_DRAWS if self.varies else 1):
            yield self.draw(self.salt + step)

    def limit_length(self, length: int) -> int:
        """Return how many elements to send: no more than the inputs have that it is known to take."""
        if not self.takes_counts:
            return min(length, FEW_ELEMENTS)
        specs = {spec.name: spec.shape for spec in self.role.inputs}
        variable = [(tensor.shape, specs[tensor.name].index(-1)) for tensor in self.tensors if -1 in specs[tensor.name]]
        return min([length, *(shape[at] for shape, at in variable if at < len(shape))])

    def salted(self, length: int, salt: int) -> list[Tensor]:
        """Return inputs of so many elements along their first variable dimension; few are as many as the model takes.

        Raises:
            NotApplicable: many are asked for, and the model takes one size alone.
        """
        drawn = self.draw(salt)
        if not self.takes_counts and length > max(FEW_ELEMENTS, *(tensor.elements for tensor in drawn)):
            raise NotApplicableError(f"{self.name} takes inputs of one size alone")
        return [self._resized(place, tensor, length) for place, tensor in enumerate(drawn)]

    def _resized(self, place: int, tensor: Tensor, length: int) -> Tensor:
        spec = self.role.inputs[place]
        if not self.takes_counts or -1 not in spec.shape:
            return tensor
        at = spec.shape.index(-1)
        shape = (*tensor.shape[:at], length, *tensor.shape[at + 1 :])
        return Tensor.of(tensor.name, tensor.datatype, np.resize(tensor.array, shape), shape)

    # --- classes ---

    def labels_of(self, output: str) -> Sequence[str] | None:
        """Return None: metadata say nothing of labels."""
        del output
        return None

    def find_rankable(self) -> Sequence[str]:
        """Return the outputs that can be classified, those with the most different elements first.

        Raises:
            NotApplicable: there are none.
        """
        found = [tensor for tensor in self.find_outputs(self.tensors) if has_classes(tensor)]
        if not found:
            raise NotApplicableError(f"{self.name} has no steady output of numbers to classify")
        return [tensor.name for tensor in sorted(found, key=lambda one: -np.unique(one.array).size)]

    def may_batch(self, output: Tensor) -> bool:
        """Whether metadata leave the first dimension of an output open, or do not show it."""
        shape = next(spec.shape for spec in self.role.outputs if spec.name == output.name)
        return len(shape) != len(output.shape) or shape[:1] == (-1,)

    def with_items(self, tensors: tuple[Tensor, ...], items: int) -> tuple[Tensor, ...]:
        """Return inputs with so many items along an open first dimension of all, over and over; else as they are."""
        declared = {spec.name: spec.shape for spec in self.role.inputs}
        if any(_is_closed(tensor.shape, declared[tensor.name]) for tensor in tensors):
            return tensors
        return tuple(
            replace(tensor, shape=shape, array=np.resize(tensor.array, shape))
            for tensor in tensors
            for shape in [(items, *tensor.shape[1:])]
        )

    def may_have_rankings(self, output: Tensor) -> bool:
        """Whether it may be a batch, or is a matrix, whose rows may be ranked one by one."""
        return len(output.shape) > 1 or self.may_batch(output)

    def limit_classes(self, output: Tensor, wanted: int | None) -> int:
        """Return how many classes to ask for: no more than there are, of an item where there may be items."""
        there = output.elements // output.shape[0] if len(output.shape) > 1 else output.elements
        return min(there, MAX_CLASSES if wanted is None else wanted)

    def own_shape(self, place: int, *, is_raw: bool = False) -> tuple[int, ...]:
        """Return the shape of an input that is taken; of a raw request, which is a batch of one, as that has it."""
        return self.items()[0].shape if is_raw else self.tensors[place].shape

    def shape_of_count(self, place: int, count: int) -> tuple[int, ...]:
        """Return the shape of an input with its first variable dimension of that size."""
        return self._resized(place, self.tensors[place], count).shape

    def count_classes(self, tensors: Sequence[Tensor]) -> int:
        """Return how many classes the first output has for some inputs; of one item, where there may be a batch."""
        shape = self.expected(tensors)[0].shape
        return prod(shape[1:] if len(shape) > 1 else shape)

    def ramp(self, place: int, count: int, salt: int) -> np.ndarray[Any, Any]:
        """Return elements for one input, which the model takes, others for each salt."""
        return np.resize(self.draw(salt)[place].array.reshape(-1), count)

    # --- the plain request ---

    @property
    def label(self) -> str:
        """What it is, in a few words."""
        return f"model {self.name}"

    @property
    def is_own_oracle(self) -> bool:
        """Whether its own plain answers alone tell what is right."""
        return True

    @property
    def declared_outputs(self) -> tuple[str, ...]:
        """The names of the outputs that its metadata list; of those that come, where they list none."""
        return tuple(self.declared) or self.outputs

    @property
    def is_json_capable(self) -> bool:
        """Whether a plain request travels as JSON both ways."""
        return not self.json_trouble and not self.sends and not self.binary_only

    @property
    def plain_send(self) -> Form:
        """How inputs travel in a plain request."""
        return "binary" if self.sends else "json"

    @property
    def plain_want(self) -> Form | None:
        """How a plain request wants its outputs."""
        return "binary" if self.kept_binary else None

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
        """The inputs that have to travel as binary data; over gRPC all do, or none: a call has contents of one form."""
        if self.control is not None and self.control.is_over_grpc:
            is_raw = self.json_trouble or not all(lookup(tensor.datatype).has_json_form for tensor in self.tensors)
            return self.inputs if is_raw else ()
        kept = () if self.json_trouble else self.json_capable_inputs
        return tuple(tensor.name for tensor in self.tensors if tensor.name not in kept)

    def _beyond_json(self) -> Sequence[str]:
        return self.sends

    @property
    def kept_binary(self) -> tuple[str, ...]:
        """The outputs that have to come as binary data."""
        return self.outputs if self.json_trouble else self.binary_only

    def listed(self) -> list[RequestedOutput] | None:
        """Return the outputs as a plain request lists them: not at all, unless one has to be binary data."""
        return [self.plain_output(name) for name in self.outputs] if self.kept_binary else None

    def plain_output(self, name: str) -> RequestedOutput:
        """Return an output as a request lists it that asks for no form: as binary data where JSON does not go."""
        return RequestedOutput(name, True if name in self.kept_binary else ABSENT)

    def plain(self) -> InferRequest:
        """Return the plain request: JSON both ways, as far as JSON goes."""
        return self.request(self.tensors, send=self.sends, outputs=self.listed())

    def plainest(self) -> InferRequest:
        """Return the plain request that every server has to answer, also where this one answers none."""
        return replace(self, trouble="", json_trouble="").plain()

    def full(self) -> InferRequest:
        """Return the plain request with every output as binary data."""
        return self.request(self.tensors, send=self.sends, want="binary")

    def request(self, tensors: Sequence[Tensor] | None = None, **options: Any) -> InferRequest:
        """Return a request as `Model.request` does.

        Raises:
            NotApplicable: JSON would have to carry what it does not, so that a refusal is right.
            Blocked: it would have to carry anything, and no plain JSON request is answered; or no request at all is.
        """
        if self.control is not None and self.trouble:
            raise BlockedError(self.trouble)
        request = Model.request(self, tensors, **options)
        if self.control is not None and not self.control.is_over_grpc:
            self._require_json_forms(request)
        return request

    def _require_json_forms(self, request: InferRequest) -> None:
        sent = [item.tensor for item in request.inputs if not item.binary]
        wanted = [
            one.name for one in request.outputs or () if one.binary_data is not True and one.classification is ABSENT
        ]
        if request.outputs is None and request.binary_data_output is not True:
            wanted = list(self.outputs)
        unfit = [tensor.name for tensor in sent if not is_json_capable(tensor.datatype, tensor.array)]
        unfit += [name for name in wanted if name in self.binary_only]
        if unfit:
            raise NotApplicableError(f"JSON does not carry {', '.join(unfit)}")
        if self.json_trouble and (sent or wanted):
            raise BlockedError(f"{self.name} answers no plain JSON request: {self.json_trouble}")

    def items(self) -> list[Tensor]:
        """Return the only input as a raw request may hold it: one item of a batch, wherever there may be one.

        Of several the first that is served will do; none is right where metadata do not tell a batch from a length.
        """
        (tensor,), shape = self.draw(self.salt), self.role.inputs[0].shape
        if len(tensor.shape) > len(shape) or (shape[:1] == (-1,) and len(shape) > 1):
            return [_first_item(tensor)]
        return [tensor, _first_item(tensor)] if shape == (-1,) else [tensor]

    # --- what is right ---

    def expected(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the right outputs for inputs given in any order: those of the control request.

        Raises:
            NotApplicable: the model takes no such inputs, answers all alike, or is not deterministic.
            Blocked: it answers no plain request.
        """
        if not self.varies:
            raise NotApplicableError(
                f"{self.name} answers every input alike, or takes one alone: it does not tell what was read"
            )
        return self.find_outputs(tensors)

    def find_outputs(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the right outputs, as `expected` does, also where they show nothing of the inputs."""
        if self.control is None:
            raise NotApplicableError(f"nobody asks {self.name} what is right")
        return self.control.outputs(self, tensors)

    def tells_apart(self, tensors: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
        """Say whether its answers show which of two inputs it was given; a refusal shows it, too."""
        try:
            one, other = self.expected(tensors), self.expected(others)
        except DeclinedError:
            return True
        pairs = zip(one, other, strict=True)
        return any(
            a.shape != b.shape or find_first_difference(a.array, b.array, a.datatype) is not None for a, b in pairs
        )

    def steady(self, names: Sequence[str] | None = None) -> tuple[str, ...]:
        """Return the outputs, of these or of all, whose values can be compared.

        Raises:
            NotApplicable: there are none, because the model is not deterministic.
        """
        wanted = self.outputs if names is None else names
        found = tuple(name for name in wanted if name not in self.unsteady)
        if not found:
            raise NotApplicableError(describe_nondeterminism(wanted))
        return found

    # --- as plain data ---

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as workers take it."""
        return {
            "name": self.name,
            "inputs": [_plain_spec(spec) for spec in self.role.inputs],
            "outputs": [_plain_spec(spec) for spec in self.role.outputs],
            "sent": _plain_tensors(self.tensors),
            "samples": list(map(_plain_tensors, self.samples)),
            "declared": dict(self.declared),
            **{name: _to_plain(getattr(self, name)) for name in PLAIN_FIELDS},
        }


def from_dict(data: Mapping[str, Any]) -> DeployedModel:
    """Return the model that `to_dict` made plain."""
    return DeployedModel(
        derive_role(data["name"], map(_spec, data["inputs"]), map(_spec, data["outputs"])),
        data["name"],
        tensors=tuple(map(_tensor, data["sent"])),
        samples=tuple(tuple(map(_tensor, sample)) for sample in data["samples"]),
        declared=data["declared"],
        **{name: _from_plain(data[name]) for name in PLAIN_FIELDS},
    )


def derive_role(name: str, inputs: Any, outputs: Any) -> Role:
    """Return the role that a model plays for itself."""
    return Role(name, "what its metadata say", "unknown", tuple(inputs), tuple(outputs))


def _plain_spec(spec: TensorSpec | Tensor) -> dict[str, Any]:
    return {"name": spec.name, "datatype": spec.datatype, "shape": list(spec.shape)}


def _plain_tensors(tensors: Sequence[Tensor]) -> list[dict[str, Any]]:
    return [{**_plain_spec(tensor), "bytes": b64encode(tensor.to_bytes()).decode()} for tensor in tensors]


def _to_plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _from_plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _spec(data: Mapping[str, Any]) -> TensorSpec:
    return TensorSpec(data["name"], data["datatype"], tuple(data["shape"]))


def _tensor(data: Mapping[str, Any]) -> Tensor:
    shape = tuple(data["shape"])
    array = decode(data["datatype"], shape, b64decode(data["bytes"]))
    return Tensor(data["name"], data["datatype"], shape, array)


def _is_closed(shape: Sequence[int], declared: Sequence[int]) -> bool:
    """Say whether the first dimension of a tensor is no batch: the only one, or one that metadata fix."""
    return len(shape) < 2 or (len(shape) == len(declared) and declared[0] != -1)


def _first_item(tensor: Tensor) -> Tensor:
    return Tensor.of(tensor.name, tensor.datatype, tensor.array[:1])


def encode_raw_body(tensor: Tensor) -> bytes:
    """Return a tensor as the body of a raw request; that of one string is the string itself."""
    return bytes(tensor.array.reshape(-1)[0]) if tensor.datatype == "BYTES" else bytes(tensor.to_bytes())


# --- outputs ------------------------------------------------------------------------------------------------------


def is_json_capable(datatype: str, array: np.ndarray[Any, Any] | None = None) -> bool:
    """Say whether JSON carries elements of a datatype; and these, where they are given."""
    return lookup(datatype).has_json_form and (array is None or is_ordinary(array))


def is_ordinary(array: np.ndarray[Any, Any]) -> bool:
    """Say whether there is no NaN, no infinity and no string that is not UTF-8 among the elements."""
    if array.dtype.kind == "O":
        return all(_is_utf8(element) for element in array.reshape(-1).tolist())
    return bool(array.dtype.kind != "f" or np.isfinite(array).all())


def has_classes(tensor: Tensor) -> bool:
    """Say whether an output may be classified: strings, NaN and empty outputs have ended servers, some are too long."""
    return tensor.datatype in SCORE_DATATYPES and 0 < tensor.elements <= MAX_SCORES and is_ordinary(tensor.array)


def _is_utf8(element: bytes) -> bool:
    try:
        element.decode()
    except UnicodeDecodeError:
        return False
    return True


def describe_nondeterminism(names: Sequence[str]) -> str:
    """Return the sentence that says so of a model."""
    verb = "differ" if len(names) > 1 else "differs"
    return f"the model is not deterministic: {', '.join(names)} {verb} between two equal requests"
