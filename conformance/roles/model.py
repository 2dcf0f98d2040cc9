"""The model that fills a role on one target: builds requests to the model, and computes the expected answers.

`discovery.deployed_model` overrides these methods for models without a role. `discovery.control_answers` explains plain
requests.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
    """The model that fills a role on one target.

    Attributes:
        salt: a number that changes the sample values, so that they differ between checks; 0 .. 255.
        version: the model version for the path; empty to let the target choose.
        names: the target's tensor names, where they differ from the role's.
        max_batch: the declared limit of batches, which sample batches do not exceed; None: no limit.
    """

    role: Role
    name: str
    salt: int = 0
    version: str = ""
    names: Names = SAME_NAMES
    max_batch: int | None = None

    @property
    def path(self) -> str:
        """The URL path of the model, which is also the path of its metadata."""
        version = f"/versions/{quote(self.version, safe='')}" if self.version else ""
        return f"/v2/models/{quote(self.name, safe='')}{version}"

    @property
    def infer_path(self) -> str:
        """The URL path of inference requests."""
        return self.path + "/infer"

    def sample(self, batch: int = 2) -> tuple[Tensor, ...]:
        """Return sample tensors for all inputs, in declared order; `batch` is the batch size for a batching model."""
        if self.role.compute == "emit":
            return (Tensor.from_values("COUNTS", "INT32", [3, 2]),)
        if self.role.compute == "table":
            return (Tensor.from_values(self.role.inputs[0].name, "UINT32", [[4, 1], [3, 2]]),)
        return tuple(
            make_sample_tensor(
                spec.name,
                spec.datatype,
                make_sample_shape(spec.shape, self._limit_batch(batch)),
                (self.salt + 7 * index) % 256,
            )
            for index, spec in enumerate(self.role.inputs)
        )

    def _limit_batch(self, batch: int) -> int | None:
        """Return a batch size within the declared limit; None if the model takes no batches."""
        return min(batch, self.max_batch or batch) if self.role.batching else None

    @property
    def label(self) -> str:
        """The model in a few words, for messages."""
        return f"role {self.role.name}"

    @property
    def is_json_capable(self) -> bool:
        """Whether JSON can represent all inputs and outputs of the model."""
        return self.role.is_json_capable

    @property
    def is_deployed(self) -> bool:
        """Whether expected answers are the model's own answers to plain requests: False, as the role defines them."""
        return False

    @property
    def binary_inputs(self) -> tuple[str, ...]:
        """The inputs that plain requests must send as binary data: none, because rows know the datatypes of a role."""
        return ()

    @property
    def binary_outputs(self) -> tuple[str, ...]:
        """The outputs that plain requests must ask for as binary data: none; see `binary_inputs`."""
        return ()

    def build_outputs_member(self) -> list[RequestedOutput] | None:
        """Return the `outputs` member of a plain request: None, which requests all outputs in the default form."""
        return None

    def list_comparable_outputs(self) -> tuple[str, ...]:
        """Return the names of the outputs whose values can be compared: for a role, all outputs."""
        return tuple(spec.name for spec in self.role.outputs)

    def fill(self, values: Any) -> list[Tensor]:
        """Return inputs with these values, and sample values for the inputs without any.

        For a deployed model without a role, return inputs that it accepts, and ignore the values.

        `values`: input name -> values, or else the values of the first input.
        """
        by_name = values if isinstance(values, Mapping) else {self.role.inputs[0].name: values}
        return [
            Tensor.from_values(tensor.name, tensor.datatype, by_name[tensor.name]) if tensor.name in by_name else tensor
            for tensor in self.sample()
        ]

    @property
    def plain_input_form(self) -> Form:
        """The form of inputs in a plain request: `json` if JSON can represent all of them, else `binary`."""
        return "json" if all(spec.has_json_form for spec in self.role.inputs) else "binary"

    @property
    def plain_output_form(self) -> Form | None:
        """The form of outputs in a plain request: `binary` if JSON cannot represent all of them; else None."""
        return None if all(spec.has_json_form for spec in self.role.outputs) else "binary"

    @property
    def by_place(self) -> bool:
        """Whether the model assigns the inputs of plain requests by position, ignoring their names."""
        return False

    @property
    def noise(self) -> Mapping[str, float]:
        """Name of an output -> how much its floats were seen to differ between equal requests: unknown for a role."""
        return {}

    def allow_rounding(self, output: Tensor) -> Tensor:
        """Return an output of the model with the tolerance that its arithmetic needs: none for floats that it moves."""
        return replace(output, is_computed=True) if self.role.computes_floats else output

    @property
    def declared_outputs(self) -> tuple[str, ...]:
        """The names of the outputs in the metadata of the model."""
        return tuple(spec.name for spec in self.role.outputs)

    def limit_length(self, length: int) -> int:
        """Return `length`; a deployed model may return a smaller number of elements that it is known to accept."""
        return length

    def build_salted_inputs(self, length: int, salt: int) -> list[Tensor]:
        """Return inputs with `length` elements, or `length` items for a batching model; different for each salt.

        The length of a variable dimension of an item depends on the salt, too.
        """
        return [
            _build_salted_tensor(spec, self._choose_salted_shape(spec, length, salt), salt) for spec in self.role.inputs
        ]

    def _choose_salted_shape(self, spec: TensorSpec, length: int, salt: int) -> tuple[int, ...]:
        if not self.role.batching:
            return (length,)
        return (length, *(2 + salt % 3 if size == -1 else size for size in spec.shape))

    def draw_several(self) -> Iterator[tuple[Tensor, ...]]:
        """Yield sets of inputs that the model accepts, for a row that tries several: for a role, one set."""
        yield self.sample()

    # --- classes ---

    def find_labels(self, output: str) -> Sequence[str] | None:
        """Return the class labels of an output, by index; None if the labels are unknown."""
        return self.role.labels.get(output, ())

    def find_classifiable_outputs(self) -> Sequence[str]:
        """Return the names of the outputs that can be classified, the most informative first.

        Raises NotApplicableError: no output can be classified.
        """
        return [spec.name for spec in self.role.outputs]

    def may_batch(self, output: Tensor) -> bool:
        """Whether the first dimension of an output may be the batch dimension."""
        del output
        return self.role.batching

    def repeat_to_batch(self, tensors: tuple[Tensor, ...], items: int) -> tuple[Tensor, ...]:
        """Repeat inputs to a batch of `items`, if they have a batch dimension; for a role, return them unchanged."""
        del items
        return tensors

    def may_be_classified_by_row(self, output: Tensor) -> bool:
        """Whether a server may rank the rows of an output separately."""
        return self.may_batch(output)

    def limit_classes(self, output: Tensor, wanted: int | None) -> int:
        """Return how many classes to request: `wanted`; if `wanted` is None, all classes of one item of the output."""
        if wanted is not None:
            return wanted
        return output.elements // output.shape[0] if self.role.batching else output.elements

    def find_input_shape(self, index: int, *, is_raw: bool = False) -> tuple[int, ...]:
        """Return the shape of the input at this index in `sample`; for a raw request, with a batch of one."""
        return make_sample_shape(self.role.inputs[index].shape, self._limit_batch(1 if is_raw else 2))

    def build_shape(self, index: int, count: int) -> tuple[int, ...]:
        """Return the shape of the input at this index with one of its variable dimensions set to `count`.

        The dimension is number `count` modulo the number of variable dimensions; for 0, every other one is 0, so that a
        tensor may have several. The other variable dimensions are 1 or 2.
        """
        shape = self.role.inputs[index].shape
        variable = [at for at, size in enumerate(shape) if size < 0]
        others = 2 if count < 1000 else 1
        filled = [others if size < 0 else size for size in shape]
        for at in variable[::2] if count == 0 else variable[count % len(variable) :][:1] if variable else ():
            filled[at] = count
        return tuple(filled)

    def count_classes(self, tensors: Sequence[Tensor], index: int = 0) -> int:
        """Return the number of classes of the output at this index; for a batching model, the number of one item.

        `index`: the index of the output.
        """
        shape = tensors[index].shape
        return prod(shape[1:] if self.role.batching else shape)

    def build_ramp(self, index: int, count: int, salt: int) -> np.ndarray[Any, Any]:
        """Return `count` elements for the input at this index; nearby elements differ, and each salt gives others."""
        return make_ramp(self.role.inputs[index].datatype, count, salt)

    def tensor(self, values: Any, shape: Sequence[int] | None = None) -> Tensor:
        """Return a tensor with these values for the model's first input."""
        spec = self.role.inputs[0]
        return Tensor.from_values(spec.name, spec.datatype, values, None if shape is None else tuple(shape))

    def expected(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Compute the expected outputs, in declared order, for these inputs, which may be in any order.

        For a role with versions, the version of this model computes, or else the default version of the role.
        """
        arrays = {tensor.name: tensor.array for tensor in tensors}
        ordered = {spec.name: arrays[spec.name] for spec in self.role.inputs}
        is_known = self.version in self.role.versions
        results = COMPUTE[self.role.compute](
            replace(self.role, versions=(self.version,)) if is_known else self.role, ordered
        )
        return tuple(
            self.allow_rounding(Tensor(spec.name, spec.datatype, tuple(array.shape), array))
            for spec, array in zip(self.role.outputs, results, strict=True)
        )

    def items(self) -> list[Tensor]:
        """Return one candidate for the only input of a raw request; for a batching model, a batch of one item."""
        return list(self.sample(batch=1)[:1])

    def find_outputs(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the expected outputs like `expected`, but also if they do not depend on the inputs."""
        return self.expected(tensors)

    def can_distinguish(self, tensors: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
        """Whether the model's answers to two sets of inputs differ: always for a role."""
        del tensors, others
        return True

    def build_plain_output(self, name: str) -> RequestedOutput:
        """Return an entry for the `outputs` member of a plain request. Models of roles need no `binary_data` there."""
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
        """Return an inference request to this model.

        `tensors`: the inputs, in the order of the request; None: sample values.
        `send`: how to encode inputs: `binary`, `json`, or the names of the inputs that are binary.
        `want`: how to request outputs. `binary` and `json` list every output, or those of `outputs`, and set
        `binary_data` to true or false. None omits `binary_data`.
        `outputs`: the requested outputs, in order; None omits the member unless `want` is set.
        `binary_data_output`: the value of the request's parameter `binary_data_output`.
        `nested`: whether JSON data are nested arrays.
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
        """Return the names of the inputs that a request in JSON sends as binary data: none for a role."""
        return ()

    def raw(self, body: bytes) -> Message:
        """Return a raw binary request to this model with this body."""
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
