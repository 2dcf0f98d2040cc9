"""A role on one target: builds requests for its model, and computes the expected answers."""

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
    SAME_NAMES,
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
    """A role on one target.

    Attributes:
        name: the model's name on the target.
        salt: makes the sample values of checks differ; 0 .. 255.
        version: the model version for the path; empty to let the target choose.
        names: the target's tensor names, where they differ from the role's.
    """

    role: Role
    name: str
    salt: int = 0
    version: str = ""
    names: Names = SAME_NAMES

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
        """Return sample tensors for all inputs in declared order; `batch` only affects batching models."""
        if self.role.compute == "emit":
            return (Tensor.from_values("COUNTS", "INT32", [3, 2]),)
        if self.role.compute == "table":
            return (Tensor.from_values(self.role.inputs[0].name, "UINT32", [[4, 1], [3, 2]]),)
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
        """A short description."""
        return f"role {self.role.name}"

    @property
    def is_json_capable(self) -> bool:
        """Whether a plain request can use JSON in both directions."""
        return self.role.is_json_capable

    @property
    def is_own_oracle(self) -> bool:
        """Whether the expected answers are known only from the model's own answers to plain requests."""
        return False

    @property
    def sends(self) -> tuple[str, ...]:
        """The inputs that a plain request must send as binary data: none, because rows know the datatypes of a role."""
        return ()

    @property
    def kept_binary(self) -> tuple[str, ...]:
        """The outputs that a plain request must request as binary data; see `sends`."""
        return ()

    def build_outputs_member(self) -> list[RequestedOutput] | None:
        """Return the `outputs` member of a request that does not select their form."""
        return None

    def list_comparable_outputs(self) -> tuple[str, ...]:
        """Return the outputs whose values can be compared: for a role, all."""
        return tuple(spec.name for spec in self.role.outputs)

    def fill(self, values: Any) -> list[Tensor]:
        """Return inputs with these values, for the first input or by input name, and sample values for the others.

        A deployed model receives accepted inputs instead, whatever the values are.
        """
        by_name = values if isinstance(values, Mapping) else {self.role.inputs[0].name: values}
        return [
            Tensor.from_values(tensor.name, tensor.datatype, by_name[tensor.name]) if tensor.name in by_name else tensor
            for tensor in self.sample()
        ]

    @property
    def plain_send(self) -> Form:
        """The form of inputs in a plain request: JSON if all inputs have a JSON form."""
        return "json" if all(spec.has_json_form for spec in self.role.inputs) else "binary"

    @property
    def plain_want(self) -> Form | None:
        """The requested form of outputs in a plain request: None if all outputs have a JSON form."""
        return None if all(spec.has_json_form for spec in self.role.outputs) else "binary"

    @property
    def by_place(self) -> bool:
        """Whether plain requests pass inputs by position, whatever their names."""
        return False

    @property
    def declared_outputs(self) -> tuple[str, ...]:
        """The output names in the metadata of the model."""
        return tuple(spec.name for spec in self.role.outputs)

    def limit_length(self, length: int) -> int:
        """Return how many elements to send if `length` are wanted, but fewer are sufficient."""
        return length

    def build_salted_inputs(self, length: int, salt: int) -> list[Tensor]:
        """Return inputs with `length` elements, or items for a batching model; different for each salt."""
        return [
            _build_salted_tensor(spec, (length, *spec.shape) if self.role.batching else (length,), salt)
            for spec in self.role.inputs
        ]

    def draw_several(self) -> Iterator[tuple[Tensor, ...]]:
        """Yield accepted inputs, for a row that searches for informative ones: samples first."""
        yield self.sample()

    # --- classes ---

    def find_labels(self, output: str) -> Sequence[str] | None:
        """Return the labels of an output by index; None if unknown."""
        return self.role.labels.get(output, ())

    def find_rankable(self) -> Sequence[str]:
        """Return the outputs that can be classified, the most informative first.

        Raises:
            NotApplicable: no output can be classified.
        """
        return [spec.name for spec in self.role.outputs]

    def may_batch(self, output: Tensor) -> bool:
        """Return whether the first dimension of an output may be the batch dimension."""
        del output
        return self.role.batching

    def with_items(self, tensors: tuple[Tensor, ...], items: int) -> tuple[Tensor, ...]:
        """Return inputs with this number of items, if they may be a batch of any size; for a role unchanged."""
        del items
        return tensors

    def may_be_classified_by_row(self, output: Tensor) -> bool:
        """Return whether an output may be classified row by row."""
        return self.may_batch(output)

    def limit_classes(self, output: Tensor, wanted: int | None) -> int:
        """Return the number of classes to request: the wanted number, or all of an item."""
        if wanted is not None:
            return wanted
        return output.elements // output.shape[0] if self.role.batching else output.elements

    def find_own_shape(self, place: int, *, is_raw: bool = False) -> tuple[int, ...]:
        """Return an input's shape in samples, or in a raw request, which has a batch of one."""
        return make_sample_shape(self.role.inputs[place].shape, (1 if is_raw else 2) if self.role.batching else None)

    def build_shape(self, place: int, count: int) -> tuple[int, ...]:
        """Return an input's shape with one variable dimension of size `count`, which also selects the dimension."""
        shape = self.role.inputs[place].shape
        variable = [index for index, size in enumerate(shape) if size < 0]
        others = 2 if count < 1000 else 1
        filled = [others if size < 0 else size for size in shape]
        if variable:
            filled[variable[count % len(variable)]] = count
        return tuple(filled)

    def count_classes(self, tensors: Sequence[Tensor], place: int = 0) -> int:
        """Return the number of classes of one output; of one item for a batching model."""
        shape = tensors[place].shape
        return prod(shape[1:] if self.role.batching else shape)

    def build_ramp(self, place: int, count: int, salt: int) -> np.ndarray[Any, Any]:
        """Return elements for one input, in which nearby elements differ; different for each salt."""
        return make_ramp(self.role.inputs[place].datatype, count, salt)

    def tensor(self, values: Any, shape: Sequence[int] | None = None) -> Tensor:
        """Return a tensor for the model's first input."""
        spec = self.role.inputs[0]
        return Tensor.from_values(spec.name, spec.datatype, values, None if shape is None else tuple(shape))

    def expected(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the expected outputs, in declared order, for inputs in any order."""
        arrays = {tensor.name: tensor.array for tensor in tensors}
        ordered = {spec.name: arrays[spec.name] for spec in self.role.inputs}
        results = COMPUTE[self.role.compute](self.role, ordered)
        return tuple(
            Tensor(spec.name, spec.datatype, tuple(array.shape), array)
            for spec, array in zip(self.role.outputs, results, strict=True)
        )

    def items(self) -> list[Tensor]:
        """Return the only input for a raw request: a batch of one for a batching model."""
        return list(self.sample(batch=1)[:1])

    def find_outputs(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the right outputs, even if they do not depend on the inputs."""
        return self.expected(tensors)

    def can_distinguish(self, tensors: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
        """Return whether its answers distinguish two inputs; for a role they do."""
        del tensors, others
        return True

    def build_plain_output(self, name: str) -> RequestedOutput:
        """Return an output entry of a request that does not select a form."""
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
            send: the form of inputs: all binary, all JSON, or the names of those that are binary.
            want: lists every output (or those of `outputs`) with `binary_data` true or false; None omits the parameter.
            outputs: the requested outputs, in order; None omits the member unless `want` is set.
            binary_data_output: the parameter of the request.
            request_id: the id.
            nested: whether JSON data are nested arrays.
        """
        tensors = self.sample() if tensors is None else tensors
        if isinstance(send, str):
            send = [tensor.name for tensor in tensors] if send == "binary" else self._list_binary_only_inputs()
        if want is not None and outputs is None:
            outputs = [spec.name for spec in self.role.outputs]
        return InferRequest(
            self.infer_path,
            tuple(Input(tensor, tensor.name in send, nested) for tensor in tensors),
            None if outputs is None else tuple(_build_output(output, want) for output in outputs),
            binary_data_output,
            request_id,
            names=self.names,
            model=self.name,
            version=self.version,
        )

    def _list_binary_only_inputs(self) -> Sequence[str]:
        """Return the inputs that stay binary data if the others are JSON: none for a role."""
        return ()

    def raw(self, body: bytes) -> Message:
        """Return a raw binary request to this model."""
        return make_raw_message(self.infer_path, body, self.names)


def _build_salted_tensor(spec: TensorSpec, shape: tuple[int, ...], salt: int) -> Tensor:
    if spec.datatype == "BYTES":  # sample strings grow with each element, too much for a long tensor
        return Tensor.from_values(spec.name, spec.datatype, [b"%d:%d" % (salt, k) for k in range(prod(shape))], shape)
    return make_sample_tensor(spec.name, spec.datatype, shape, (salt * 7) % 256)


def _build_output(output: RequestedOutput | str, want: str | None) -> RequestedOutput:
    if isinstance(output, RequestedOutput):
        return output
    return RequestedOutput(output, ABSENT if want is None else want == "binary")


# Values in rows: functions that build a message, or a request, for the model of the row's role.
MessageBuilder = Callable[[Model], Message]
RequestBuilder = Callable[[Model], InferRequest]
