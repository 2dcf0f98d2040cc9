"""A role as one target serves it: builds requests that fit the model, and knows the right answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any
from urllib.parse import quote

import numpy as np

from conformance.roles.compute import COMPUTE
from conformance.roles.roles import Role, TensorSpec
from conformance.roles.sample_values import make_ramp, make_sample_shape, make_sample_tensor
from conformance.wire.request import (
    ABSENT,
    OUR_NAMES,
    Form,
    InferRequest,
    Input,
    Message,
    Names,
    RequestedOutput,
    make_raw_message,
)
from conformance.wire.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Model:
    """A role as one target serves it.

    Attributes:
        name: of the model on the target.
        salt: makes the sample values of one check differ from another's; 0 .. 255.
        version: of the model, to be asked for by its path; empty for the one that the target chooses.
        names: what the target calls the tensors, where that is not what the role calls them.
    """

    role: Role
    name: str
    salt: int = 0
    version: str = ""
    names: Names = OUR_NAMES

    @property
    def path(self) -> str:
        """The path of the model."""
        version = f"/versions/{quote(self.version, safe='')}" if self.version else ""
        return f"/v2/models/{quote(self.name, safe='')}{version}"

    @property
    def infer_path(self) -> str:
        """The path of the infer endpoint."""
        return self.path + "/infer"

    def sample(self, batch: int = 2) -> tuple[Tensor, ...]:
        """Return sample tensors for all inputs in declared order; `batch` counts for a batching model alone."""
        if self.role.compute == "emit":
            return (Tensor.of("COUNTS", "INT32", [3, 2]),)
        if self.role.compute == "table":
            return (Tensor.of(self.role.inputs[0].name, "UINT32", [[4, 1], [3, 2]]),)
        return tuple(
            make_sample_tensor(
                spec.name,
                spec.datatype,
                make_sample_shape(spec.shape, batch if self.role.batching else None),
                (self.salt + 7 * index) % 256,
            )
            for index, spec in enumerate(self.role.inputs)
        )

    @property
    def label(self) -> str:
        """What it is, in a few words."""
        return f"role {self.role.name}"

    @property
    def is_json_capable(self) -> bool:
        """Whether a plain request travels as JSON both ways."""
        return self.role.is_json_capable

    @property
    def is_own_oracle(self) -> bool:
        """Whether its own plain answers alone tell what is right."""
        return False

    @property
    def sends(self) -> tuple[str, ...]:
        """The inputs that a plain request has to send as binary data: none, since rows know the datatypes of a role."""
        return ()

    @property
    def kept_binary(self) -> tuple[str, ...]:
        """The outputs that a plain request has to ask for as binary data; see `sends`."""
        return ()

    def listed(self) -> list[RequestedOutput] | None:
        """Return the outputs as a request lists them that says nothing of their form."""
        return None

    def steady(self) -> tuple[str, ...]:
        """Return the outputs whose values can be compared: all of a role."""
        return tuple(spec.name for spec in self.role.outputs)

    def fill(self, values: Any) -> list[Tensor]:
        """Return inputs with these values, of the first or by the names of inputs, and sample values in the others.

        A deployed model gets those that it takes, whatever the values are.
        """
        given = values if isinstance(values, Mapping) else {self.role.inputs[0].name: values}
        return [
            Tensor.of(tensor.name, tensor.datatype, given[tensor.name]) if tensor.name in given else tensor
            for tensor in self.sample()
        ]

    @property
    def plain_send(self) -> Form:
        """How inputs travel in a plain request: as JSON where that carries them."""
        return "json" if all(spec.has_json_form for spec in self.role.inputs) else "binary"

    @property
    def plain_want(self) -> Form | None:
        """How a plain request wants its outputs: it does not say so where JSON carries them."""
        return None if all(spec.has_json_form for spec in self.role.outputs) else "binary"

    @property
    def by_place(self) -> bool:
        """Whether it takes its inputs in the order of the request, whatever their names, in plain requests."""
        return False

    @property
    def declared_outputs(self) -> tuple[str, ...]:
        """The names of the outputs that its metadata list."""
        return tuple(spec.name for spec in self.role.outputs)

    def limit_length(self, length: int) -> int:
        """Return how many elements to send where so many are wanted, and fewer will do."""
        return length

    def salted(self, length: int, salt: int) -> list[Tensor]:
        """Return inputs of so many elements, or items for a batching model; other ones for each salt."""
        return [
            _salted(spec, (length, *spec.shape) if self.role.batching else (length,), salt) for spec in self.role.inputs
        ]

    def draw_several(self) -> Iterator[tuple[Tensor, ...]]:
        """Yield inputs that the model takes, for a row that looks for telling ones: samples first."""
        yield self.sample()

    # --- classes ---

    def labels_of(self, output: str) -> Sequence[str] | None:
        """Return the labels of an output by index; None where nobody knows them."""
        return self.role.labels.get(output, ())

    def find_rankable(self) -> Sequence[str]:
        """Return the outputs that can be classified, the most telling first.

        Raises:
            NotApplicable: there are none.
        """
        return [spec.name for spec in self.role.outputs]

    def may_batch(self, output: Tensor) -> bool:
        """Whether the first dimension of an output may be that of a batch."""
        del output
        return self.role.batching

    def with_items(self, tensors: tuple[Tensor, ...], items: int) -> tuple[Tensor, ...]:
        """Return inputs with so many items, where they may be a batch of any; those of a role stay as they are."""
        del items
        return tensors

    def may_have_rankings(self, output: Tensor) -> bool:
        """Whether an output may be classified row by row."""
        return self.may_batch(output)

    def limit_classes(self, output: Tensor, wanted: int | None) -> int:
        """Return how many classes of an output to ask for: as many as are wanted, or all that an item has."""
        if wanted is not None:
            return wanted
        return output.elements // output.shape[0] if self.role.batching else output.elements

    def own_shape(self, place: int, *, is_raw: bool = False) -> tuple[int, ...]:
        """Return the shape of an input as samples have it, or as a raw request does, which is a batch of one."""
        return make_sample_shape(self.role.inputs[place].shape, (1 if is_raw else 2) if self.role.batching else None)

    def shape_of_count(self, place: int, count: int) -> tuple[int, ...]:
        """Return the shape of an input with a variable dimension of that size; which of several, the size decides."""
        shape = self.role.inputs[place].shape
        variable = [index for index, size in enumerate(shape) if size < 0]
        others = 2 if count < 1000 else 1
        filled = [others if size < 0 else size for size in shape]
        if variable:
            filled[variable[count % len(variable)]] = count
        return tuple(filled)

    def count_classes(self, tensors: Sequence[Tensor]) -> int:
        """Return how many classes the first output has for some inputs; of one item, where the model batches."""
        shape = tensors[0].shape
        return prod(shape[1:] if self.role.batching else shape)

    def ramp(self, place: int, count: int, salt: int) -> np.ndarray[Any, Any]:
        """Return elements for one input, of which near ones differ; others for each salt."""
        return make_ramp(self.role.inputs[place].datatype, count, salt)

    def tensor(self, values: Any, shape: Sequence[int] | None = None) -> Tensor:
        """Return a tensor for the model's first input."""
        spec = self.role.inputs[0]
        return Tensor.of(spec.name, spec.datatype, values, None if shape is None else tuple(shape))

    def expected(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the right outputs, in declared order, for inputs given in any order."""
        arrays = {tensor.name: tensor.array for tensor in tensors}
        ordered = {spec.name: arrays[spec.name] for spec in self.role.inputs}
        results = COMPUTE[self.role.compute](self.role, ordered)
        return tuple(
            Tensor(spec.name, spec.datatype, tuple(array.shape), array)
            for spec, array in zip(self.role.outputs, results, strict=True)
        )

    def items(self) -> list[Tensor]:
        """Return the only input as a raw request may hold it: a batch of one for a batching model."""
        return list(self.sample(batch=1)[:1])

    def find_outputs(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the right outputs, also where they show nothing of the inputs."""
        return self.expected(tensors)

    def tells_apart(self, tensors: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
        """Say whether its answers show which of two inputs it was given; those of a role do."""
        del tensors, others
        return True

    def plain_output(self, name: str) -> RequestedOutput:
        """Return an output as a request lists it that asks for no form."""
        return RequestedOutput(name)

    def request(
        self,
        tensors: Sequence[Tensor] | None = None,
        *,
        send: Form | Collection[str] = "binary",
        want: Form | None = None,
        outputs: Sequence[RequestedOutput | str] | None = None,
        binary_data_output: Any = ABSENT,
        request_id: str | None = None,
        nested: bool = False,
    ) -> InferRequest:
        """Return a request to this model.

        Args:
            tensors: the inputs in the order of the request; sample values by default.
            send: how the inputs travel: all binary, all JSON, or the names of those that travel as binary data.
            want: lists every output (or those of `outputs`) with `binary_data` true or false; None says nothing.
            outputs: the requested outputs, in order; None leaves the member out unless `want` is given.
            binary_data_output: the parameter of the request.
            request_id: the id.
            nested: JSON data as nested arrays.
        """
        tensors = self.sample() if tensors is None else tensors
        if isinstance(send, str):
            send = [tensor.name for tensor in tensors] if send == "binary" else self._beyond_json()
        if want is not None and outputs is None:
            outputs = [spec.name for spec in self.role.outputs]
        return InferRequest(
            self.infer_path,
            tuple(Input(tensor, tensor.name in send, nested) for tensor in tensors),
            None if outputs is None else tuple(_output(output, want) for output in outputs),
            binary_data_output,
            request_id,
            names=self.names,
            model=self.name,
            version=self.version,
        )

    def _beyond_json(self) -> Sequence[str]:
        """Return the inputs that are binary data also where the others are JSON: none, which is for rows of a role."""
        return ()

    def raw(self, body: bytes) -> Message:
        """Return a raw binary request to this model."""
        return make_raw_message(self.infer_path, body, self.names)


def _salted(spec: TensorSpec, shape: tuple[int, ...], salt: int) -> Tensor:
    if spec.datatype == "BYTES":  # the samples grow with every element, which a long tensor cannot afford
        return Tensor.of(spec.name, spec.datatype, [f"{salt}:{k}" for k in range(prod(shape))], shape)
    return make_sample_tensor(spec.name, spec.datatype, shape, (salt * 7) % 256)


def _output(output: RequestedOutput | str, want: str | None) -> RequestedOutput:
    if isinstance(output, RequestedOutput):
        return output
    return RequestedOutput(output, ABSENT if want is None else want == "binary")


# What rows hold: functions that make a message, or a request, for the model that fills the row's role.
MessageBuilder = Callable[[Model], Message]
RequestBuilder = Callable[[Model], InferRequest]
