"""A role as one target serves it: builds requests that fit the model, and knows the right answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from conformance.roles.compute import COMPUTE
from conformance.roles.roles import Role
from conformance.roles.sample_values import sample_shape, sample_tensor
from conformance.wire.request import (
    ABSENT,
    OUR_NAMES,
    Form,
    InferRequest,
    Input,
    Message,
    Names,
    Output,
    raw_message,
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
            sample_tensor(
                spec.name,
                spec.datatype,
                sample_shape(spec.shape, batch if self.role.batching else None),
                (self.salt + 7 * index) % 256,
            )
            for index, spec in enumerate(self.role.inputs)
        )

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

    def request(
        self,
        tensors: Sequence[Tensor] | None = None,
        *,
        send: Form | Collection[str] = "binary",
        want: Form | None = None,
        outputs: Sequence[Output | str] | None = None,
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
        names = {"binary": [t.name for t in tensors], "json": []}.get(send, send) if isinstance(send, str) else send
        if want is not None and outputs is None:
            outputs = [spec.name for spec in self.role.outputs]
        return InferRequest(
            self.infer_path,
            tuple(Input(tensor, tensor.name in names, nested) for tensor in tensors),
            None if outputs is None else tuple(_output(output, want) for output in outputs),
            binary_data_output,
            request_id,
            names=self.names,
            model=self.name,
            version=self.version,
        )

    def raw(self, body: bytes) -> Message:
        """Return a raw binary request to this model."""
        return raw_message(self.infer_path, body, self.names)


def _output(output: Output | str, want: str | None) -> Output:
    if isinstance(output, Output):
        return output
    return Output(output, ABSENT if want is None else want == "binary")


# What rows hold: functions that make a message, or a request, for the model that fills the row's role.
Make = Callable[[Model], Message]
Ask = Callable[[Model], InferRequest]
