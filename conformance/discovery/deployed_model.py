"""A deployed model without a role: its metadata define its signature, and its own answers are the expected answers.

Checks that need only a signature (`spec.fit`) also judge deployed models without a role. The expected outputs are the
answer to a plain request with the same inputs (`discovery.control_answers` explains plain requests). Discovery once
finds inputs that the model accepts (`roles.guessed_inputs`), and tests whether the model accepts similar inputs and is
deterministic. Plain requests use binary data for values that JSON cannot represent: FP16, and NaN and non-UTF-8 strings
in outputs.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from math import prod
from typing import Any, Protocol

import numpy as np

from conformance.expect.difference import are_distinct
from conformance.expect.unmet import BlockedError, NotApplicableError
from conformance.roles.guessed_inputs import vary_inputs
from conformance.roles.model import Model
from conformance.roles.roles import Role, TensorSpec
from conformance.spec.fit import SCORE_DATATYPES
from conformance.wire.datatypes import DATATYPES, has_json_form, lookup
from conformance.wire.finding import format_value
from conformance.wire.request import ABSENT, Form, InferRequest, RequestedOutput
from conformance.wire.tensor import Tensor, decode

# What a user has to provide: the elements of inputs; complete tensors, if the metadata list no inputs; or several
# samples of the elements, if the model answers all guesses alike.
DATA, TENSORS, SAMPLES = "data", "tensors", "samples"
SAMPLES_HELP = "give samples that it answers differently in the file for --target-config (`oip-conformance doctor`)"
NESTED_DATA = "nested data"  # among the `demands` of a model
MAX_DRAWS = 6  # inputs that a row tries until one is discriminating
FEW_ELEMENTS = 16  # a row that requests at most this many works with any number of elements
MAX_CLASSES = 100  # the number of classes to request at most, if all are wanted
MAX_SCORES = 1_000_000  # in an output that is classified
NOISE_MARGIN = 10  # how much more than the noise that was measured counts as noise
# Attributes of a model that `to_dict` copies, with tuples as lists.
PLAIN_FIELDS = (
    *("is_described", "binary_only", "unsteady", "trouble", "refusal", "missing", "json_trouble"),
    *("demands", "varies", "takes_counts", "by_place", "noise", "version"),
)


class DeclinedError(NotApplicableError):
    """The model does not accept these inputs, even in a plain request."""


class Change(Enum):
    """How the answers to repeated control requests differ from each other.

    Attributes:
        NONE: not at all.
        OTHER_REQUEST: an answer has the outputs of another request.
        OTHER_VALUES: an answer has outputs of no request: the model is not deterministic.
    """

    NONE = "none"
    OTHER_REQUEST = "another request"
    OTHER_VALUES = "other values"


class ControlSender(Protocol):
    """Provides the expected outputs of deployed models, by control requests (`discovery.control_answers`)."""

    @property
    def is_over_grpc(self) -> bool:
        """Whether control requests are gRPC calls."""

    def request_outputs(self, model: DeployedModel, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the deterministic outputs of a model for these inputs, which may be in any order."""

    def begin_row(self) -> None:
        """Start a new row: `find_change` no longer repeats the control requests of the previous row."""

    def find_change(self, model: DeployedModel, expected: Tensor | None = None) -> Change:
        """Repeat control requests of the row, first those with the expected output; return how answers changed."""


@dataclass(frozen=True, slots=True)
class DeployedModel(Model):
    """A deployed model with inputs that it accepts. Its `role` holds only its signature.

    Attributes:
        tensors: the inputs that the model accepts, one tensor for each.
        declared: name -> datatype of the outputs in the metadata; `role` has the outputs that the model really returns.
        is_described: whether the metadata list the model's inputs.
        binary_only: the outputs that JSON cannot represent.
        unsteady: the outputs that differ between two equal requests.
        trouble: why the model answers no plain request, with advice; empty if the model answers. `tensors` is set
            nevertheless, if the model accepts the tensors only with `demands`, or answers them in a way that cannot be
            parsed.
        refusal: why the model answers no plain request, without advice.
        missing: what the user has to provide: `DATA`, `TENSORS` or `SAMPLES`; empty if nothing would help.
        json_trouble: why the model answers binary data but no JSON request; empty if the model answers JSON requests.
        demands: the part of requests that the protocol calls optional, but that the model requires (in JSON requests,
            or in all requests); empty if there is none.
        samples: the alternative inputs, if the user gives several, or if only inputs of several ranges have different
            answers.
        varies: whether the model accepts other inputs of the same shapes, and answers some of them differently.
        takes_counts: whether the model accepts another size of the first variable dimension.
        by_place: whether the model assigns the inputs of plain requests by position, ignoring their names.
        noise: name of an output -> how much its floats differ between equal requests that are sent alone or together,
            relative to the largest element. Outputs that never differ are left out.
        control: provides the expected outputs; None during discovery.
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
    noise: Mapping[str, float] = field(default_factory=dict)
    control: ControlSender | None = field(default=None, compare=False, repr=False)

    # --- inputs ---

    def sample(self, batch: int = 2) -> tuple[Tensor, ...]:
        """Return inputs that the model accepts; if the model `varies`, they depend on the salt. `batch` is ignored."""
        del batch
        return self.draw(self.salt)

    def fill(self, values: Any) -> list[Tensor]:
        """Return inputs that the model accepts, one for each input; `values` is ignored."""
        del values
        return list(self.sample())

    def draw(self, salt: int) -> tuple[Tensor, ...]:
        """Return inputs that the model accepts; different inputs for each salt, if the model `varies`."""
        if not self.varies:
            return self.tensors
        return self.samples[salt % len(self.samples)] if self.samples else vary_inputs(self.tensors, salt)

    def draw_several(self) -> Iterator[tuple[Tensor, ...]]:
        """Yield several sets of inputs that the model accepts; only one set unless the model `varies`."""
        for step in range(MAX_DRAWS if self.varies else 1):
            yield self.draw(self.salt + step)

    def limit_length(self, length: int) -> int:
        """Return `length`, or the largest smaller number of elements that the model is known to accept."""
        if not self.takes_counts:
            return min(length, FEW_ELEMENTS)
        specs = {spec.name: spec.shape for spec in self.role.inputs}
        variable = [(tensor.shape, specs[tensor.name].index(-1)) for tensor in self.tensors if -1 in specs[tensor.name]]
        return min([length, *(shape[at] for shape, at in variable if at < len(shape))])

    def build_salted_inputs(self, length: int, salt: int) -> list[Tensor]:
        """Return accepted inputs, resized to this length along the first variable dimension; different for each salt.

        The inputs of a model that accepts only one size are not resized.

        Raises NotApplicableError: the length exceeds the only size that the model accepts.
        """
        drawn = self.draw(salt)
        if not self.takes_counts and length > max(FEW_ELEMENTS, *(tensor.elements for tensor in drawn)):
            raise NotApplicableError(f"{self.name} accepts inputs of only one size")
        return [self._resize_input(index, tensor, length) for index, tensor in enumerate(drawn)]

    def _resize_input(self, index: int, tensor: Tensor, length: int) -> Tensor:
        spec = self.role.inputs[index]
        if not self.takes_counts or -1 not in spec.shape:
            return tensor
        at = spec.shape.index(-1)
        shape = (*tensor.shape[:at], length, *tensor.shape[at + 1 :])
        return Tensor.from_values(tensor.name, tensor.datatype, np.resize(tensor.array, shape), shape)

    # --- classes ---

    def find_labels(self, output: str) -> Sequence[str] | None:
        """Return None: metadata do not contain labels."""
        del output
        return None

    def find_classifiable_outputs(self) -> Sequence[str]:
        """Return the outputs that can be classified, those with the most distinct elements first.

        Raises NotApplicableError: no output can be classified.
        """
        found = [tensor for tensor in self.find_outputs(self.tensors) if is_classifiable(tensor)]
        if not found:
            raise NotApplicableError(f"{self.name} has no deterministic numeric output to classify")
        return [tensor.name for tensor in sorted(found, key=lambda one: -np.unique(one.array).size)]

    def may_batch(self, output: Tensor) -> bool:
        """Whether the first dimension of an output may be a batch: the metadata omit it or its size."""
        shape = next(spec.shape for spec in self.role.outputs if spec.name == output.name)
        return len(shape) != len(output.shape) or shape[:1] == (-1,)

    def repeat_to_batch(self, tensors: tuple[Tensor, ...], items: int) -> tuple[Tensor, ...]:
        """Repeat inputs to a batch of `items`; return them unchanged if one has no batch dimension."""
        declared = {spec.name: spec.shape for spec in self.role.inputs}
        if any(_has_no_batch_dimension(tensor.shape, declared[tensor.name]) for tensor in tensors):
            return tensors
        return tuple(
            replace(tensor, shape=shape, array=np.resize(tensor.array, shape))
            for tensor in tensors
            for shape in [(items, *tensor.shape[1:])]
        )

    def may_be_classified_by_row(self, output: Tensor) -> bool:
        """Whether a server may rank the rows of an output separately: it has several dimensions, or may be a batch."""
        return len(output.shape) > 1 or self.may_batch(output)

    def limit_classes(self, output: Tensor, wanted: int | None) -> int:
        """Return how many classes to request: `wanted` or `MAX_CLASSES`, but at most all classes of one item."""
        there = output.elements // output.shape[0] if len(output.shape) > 1 else output.elements
        return min(there, MAX_CLASSES if wanted is None else wanted)

    def find_input_shape(self, index: int, *, is_raw: bool = False) -> tuple[int, ...]:
        """Return a shape of the input at this index that the model accepts; for a raw request, with a batch of one."""
        return self.items()[0].shape if is_raw else self.tensors[index].shape

    def build_shape(self, index: int, count: int) -> tuple[int, ...]:
        """Return the shape of the input at this index with its first variable dimension set to `count`.

        The shape stays the same if it has no variable dimension, or if the model accepts only one size.
        """
        return self._resize_input(index, self.tensors[index], count).shape

    def count_classes(self, tensors: Sequence[Tensor], index: int = 0) -> int:
        """Return the number of classes of the output at this index; for several dimensions, the number in one row."""
        shape = self.expected(tensors)[index].shape
        return prod(shape[1:] if len(shape) > 1 else shape)

    def build_ramp(self, index: int, count: int, salt: int) -> np.ndarray[Any, Any]:
        """Return `count` elements for the input at this index: accepted elements, repeated; different for each salt."""
        return np.resize(self.draw(salt)[index].array.reshape(-1), count)

    # --- the plain request ---

    @property
    def label(self) -> str:
        """The model in a few words, for messages."""
        return f"model {self.name}"

    @property
    def is_deployed(self) -> bool:
        """Whether the expected answers are the model's own answers to plain requests: True."""
        return True

    @property
    def declared_outputs(self) -> tuple[str, ...]:
        """The names of the outputs in the metadata; if there are none, the names of the returned outputs."""
        return tuple(self.declared) or self.outputs

    @property
    def is_json_capable(self) -> bool:
        """Whether both a plain request and its answer are JSON, without binary data."""
        return not self.json_trouble and not self.binary_inputs and not self.binary_only

    @property
    def plain_input_form(self) -> Form:
        """The form of inputs in a plain request: `binary` if any input has to be binary, else `json`."""
        return "binary" if self.binary_inputs else "json"

    @property
    def plain_output_form(self) -> Form | None:
        """The form of outputs in a plain request: `binary` if any output has to be binary; else None."""
        return "binary" if self.binary_outputs else None

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs that requests contain."""
        return tuple(tensor.name for tensor in self.tensors)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs that the model returns."""
        return tuple(spec.name for spec in self.role.outputs)

    @property
    def json_outputs(self) -> tuple[str, ...]:
        """The names of the outputs that JSON can represent."""
        return tuple(name for name in self.outputs if name not in self.binary_only)

    @property
    def json_inputs(self) -> tuple[str, ...]:
        """The names of the accepted inputs that JSON can represent."""
        return tuple(tensor.name for tensor in self.tensors if is_json_capable(tensor.datatype, tensor.array))

    @property
    def binary_inputs(self) -> tuple[str, ...]:
        """The inputs that plain requests send as binary data; over gRPC all or none, because a call has one form."""
        if self.control is not None and self.control.is_over_grpc:
            is_raw = self.json_trouble or not all(lookup(tensor.datatype).has_json_form for tensor in self.tensors)
            return self.inputs if is_raw else ()
        kept = () if self.json_trouble else self.json_inputs
        return tuple(tensor.name for tensor in self.tensors if tensor.name not in kept)

    def _list_binary_only_inputs(self) -> Sequence[str]:
        return self.binary_inputs

    @property
    def binary_outputs(self) -> tuple[str, ...]:
        """The outputs that plain requests ask for as binary data."""
        return self.outputs if self.json_trouble else self.binary_only

    def build_outputs_member(self) -> list[RequestedOutput] | None:
        """Return the `outputs` member of a plain request: None, unless an output has to be binary data over HTTP."""
        is_call = self.control is not None and self.control.is_over_grpc
        return None if is_call or not self.binary_outputs else [self.build_plain_output(name) for name in self.outputs]

    def build_plain_output(self, name: str) -> RequestedOutput:
        """Return the `outputs` entry for this output in a plain request: binary if JSON cannot represent the output."""
        return RequestedOutput(name, True if name in self.binary_outputs else ABSENT)

    def build_plain_request(self) -> InferRequest:
        """Return the plain request: JSON in both directions, except for values that JSON cannot represent."""
        return self.request(self.tensors, send=self.binary_inputs, outputs=self.build_outputs_member())

    def build_plain_json_request(self) -> InferRequest:
        """Return the plain request in JSON, even if `trouble` or `json_trouble` says that the model cannot answer."""
        return replace(self, trouble="", json_trouble="").build_plain_request()

    def build_binary_outputs_request(self) -> InferRequest:
        """Return the plain request with every output as binary data."""
        return self.request(self.tensors, send=self.binary_inputs, want="binary")

    def request(self, tensors: Sequence[Tensor] | None = None, **options: Any) -> InferRequest:
        """Return a request to this model; see `Model.request` for the options.

        Raises:
            NotApplicableError: the request needs JSON for values that JSON cannot represent, so that a server may
                refuse it; or nobody knows the inputs of the model.
            BlockedError: the model answers no plain request; or the request uses JSON, and the model answers no JSON
                request.
        """
        if self.control is not None and self.trouble:
            raise (NotApplicableError if self.missing == TENSORS else BlockedError)(self.trouble)
        request = Model.request(self, tensors, **options)
        if self.control is not None and not self.control.is_over_grpc:
            self._check_json_can_represent(request)
        return request

    def _check_json_can_represent(self, request: InferRequest) -> None:
        sent = [item.tensor for item in request.inputs if not item.binary]
        wanted = [
            one.name for one in request.outputs or () if one.binary_data is not True and one.classification is ABSENT
        ]
        if request.outputs is None and request.binary_data_output is not True:
            wanted = list(self.outputs)
        unfit = [tensor.name for tensor in sent if not is_json_capable(tensor.datatype, tensor.array)]
        unfit += [name for name in wanted if name in self.binary_only]
        if unfit:
            raise NotApplicableError(f"JSON cannot represent {', '.join(unfit)}")
        if self.json_trouble and (sent or wanted):
            raise BlockedError(f"{self.name} answers no plain JSON request: {self.json_trouble}")

    def items(self) -> list[Tensor]:
        """Return candidates for the only input of a raw request, which has a batch of one.

        If the metadata do not tell whether the only dimension is a batch, there are two candidates: all elements and
        the first one. Callers use the first candidate that the model answers.
        """
        (tensor,), shape = self.draw(self.salt), self.role.inputs[0].shape
        if len(tensor.shape) > len(shape) or (shape[:1] == (-1,) and len(shape) > 1):
            return [_slice_first_item(tensor)]
        return [tensor, _slice_first_item(tensor)] if shape == (-1,) else [tensor]

    # --- expected outputs ---

    def expected(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the expected outputs for these inputs: the outputs of the control request. Inputs may be in any order.

        Raises:
            NotApplicableError: the model refuses these inputs, answers all inputs alike, or is not deterministic.
            BlockedError: the model answers no plain request, or with an output of an unknown datatype.
        """
        if not self.varies:
            if unknown := [spec for spec in self.role.outputs if spec.datatype not in DATATYPES]:
                raise BlockedError(
                    f"{self.name} answers with {unknown[0].name} of datatype {format_value(unknown[0].datatype)},"
                    " which is not in the protocol"
                )
            advice = f"; {SAMPLES_HELP}" if self.missing == SAMPLES else ""
            raise NotApplicableError(
                f"{self.name} answers every input alike, or accepts only one input: its answers do not show"
                f" what the server read{advice}"
            )
        return self.find_outputs(tensors)

    def find_outputs(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the expected outputs. Unlike `expected`, accept outputs that do not depend on the inputs."""
        if self.control is None:
            raise NotApplicableError(
                f"the expected answer of {self.name} is unknown, because the suite sends no plain requests to it"
            )
        return self.control.request_outputs(self, tensors)

    def allow_rounding(self, output: Tensor) -> Tensor:
        """Return an output with the tolerance of the model's noise, and that of floats that are added in any order."""
        return allow_noise(output, self.noise.get(output.name, 0))

    def can_distinguish(self, tensors: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
        """Whether the answers to two sets of inputs differ by far more than the model's noise; a refusal differs."""
        try:
            one, other = self.expected(tensors), self.expected(others)
        except DeclinedError:
            return True
        pairs = zip(one, other, strict=True)
        return any(are_distinct(a, b) for a, b in pairs)

    def list_comparable_outputs(self, names: Sequence[str] | None = None) -> tuple[str, ...]:
        """Return the names of the deterministic outputs, among `names` or all outputs.

        Raises NotApplicableError: none of these outputs is deterministic.
        """
        wanted = self.outputs if names is None else names
        found = tuple(name for name in wanted if name not in self.unsteady)
        if not found:
            raise NotApplicableError(describe_nondeterminism(wanted))
        return found

    # --- as plain data ---

    def to_dict(self) -> dict[str, Any]:
        """Return the model as JSON-compatible data, for other processes and reports."""
        return {
            "name": self.name,
            "inputs": [_dump_spec(spec) for spec in self.role.inputs],
            "outputs": [_dump_spec(spec) for spec in self.role.outputs],
            "sent": _dump_tensors(self.tensors),
            "samples": list(map(_dump_tensors, self.samples)),
            "declared": dict(self.declared),
            **{name: _convert_tuple_to_list(getattr(self, name)) for name in PLAIN_FIELDS},
        }


def allow_noise(output: Tensor, noise: float = 0.0) -> Tensor:
    """Return an output of a deployed model with a tolerance for noise and rounding, relative to the largest element.

    Models add at least in FP32, or in FP64 for FP64. The last bits of a sum may depend on the size of the batch, or on
    where the elements are in memory, without differing between two equal requests.
    """
    if not lookup(output.datatype).is_float:
        return output
    rounding = np.finfo("<f8" if output.datatype == "FP64" else "<f4").eps
    tolerance = NOISE_MARGIN * max(noise, float(rounding)) * find_largest_magnitude(output.array)
    return replace(output, is_computed=True, tolerance=tolerance)


def find_largest_magnitude(array: np.ndarray[Any, Any]) -> float:
    """Return the largest absolute value of the finite elements; 0 if there are none."""
    values = np.abs(array.astype("<f8"))
    return float(values[np.isfinite(values)].max(initial=0))


def from_dict(data: Mapping[str, Any]) -> DeployedModel:
    """Rebuild a model from the result of `to_dict`."""
    return DeployedModel(
        derive_role(data["name"], map(_load_spec, data["inputs"]), map(_load_spec, data["outputs"])),
        data["name"],
        tensors=tuple(map(_load_tensor, data["sent"])),
        samples=tuple(tuple(map(_load_tensor, sample)) for sample in data["samples"]),
        declared=data["declared"],
        **{name: _convert_list_to_tuple(data[name]) for name in PLAIN_FIELDS if name in data},
    )


def derive_role(name: str, inputs: Any, outputs: Any) -> Role:
    """Return a `Role` that holds the signature of a deployed model; its function is unknown."""
    return Role(name, "unknown; the metadata define only the signature", "unknown", tuple(inputs), tuple(outputs))


def _dump_spec(spec: TensorSpec | Tensor) -> dict[str, Any]:
    return {"name": spec.name, "datatype": spec.datatype, "shape": list(spec.shape)}


def _dump_tensors(tensors: Sequence[Tensor]) -> list[dict[str, Any]]:
    return [{**_dump_spec(tensor), "bytes": b64encode(tensor.to_bytes()).decode()} for tensor in tensors]


def _convert_tuple_to_list(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _convert_list_to_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _load_spec(data: Mapping[str, Any]) -> TensorSpec:
    return TensorSpec(data["name"], data["datatype"], tuple(data["shape"]))


def _load_tensor(data: Mapping[str, Any]) -> Tensor:
    shape = tuple(data["shape"])
    array = decode(data["datatype"], shape, b64decode(data["bytes"]))
    return Tensor(data["name"], data["datatype"], shape, array)


def _has_no_batch_dimension(shape: Sequence[int], declared: Sequence[int]) -> bool:
    """Whether a shape cannot begin with a batch dimension: it has one dimension, or the metadata fix the first size."""
    return len(shape) < 2 or (len(shape) == len(declared) and declared[0] != -1)


def _slice_first_item(tensor: Tensor) -> Tensor:
    return Tensor.from_values(tensor.name, tensor.datatype, tensor.array[:1])


def encode_raw_body(tensor: Tensor) -> bytes:
    """Encode a tensor as the body of a raw request; for BYTES, only the first string, without its length prefix."""
    return bytes(tensor.array.reshape(-1)[0]) if tensor.datatype == "BYTES" else bytes(tensor.to_bytes())


# --- outputs ------------------------------------------------------------------------------------------------------


def is_json_capable(datatype: str, array: np.ndarray[Any, Any] | None = None) -> bool:
    """Whether JSON can represent a datatype and, if given, the elements of `array`."""
    return has_json_form(datatype) and (array is None or has_json_values(array))


def has_json_values(array: np.ndarray[Any, Any]) -> bool:
    """Whether JSON can represent the elements: no NaN, no infinity, only strings in UTF-8."""
    if array.dtype.kind == "O":
        return all(_is_utf8(element) for element in array.reshape(-1).tolist())
    return bool(array.dtype.kind != "f" or np.isfinite(array).all())


def is_classifiable(tensor: Tensor) -> bool:
    """Whether the suite requests classes of an output: it has numbers, is not empty and not too large.

    Servers have crashed when they classified strings, NaN or empty outputs.
    """
    return tensor.datatype in SCORE_DATATYPES and 0 < tensor.elements <= MAX_SCORES and has_json_values(tensor.array)


def _is_utf8(element: bytes) -> bool:
    try:
        element.decode()
    except UnicodeDecodeError:
        return False
    return True


def describe_nondeterminism(names: Sequence[str]) -> str:
    """Return the message for a model whose outputs with these names are not deterministic."""
    verb = "differ" if len(names) > 1 else "differs"
    return f"the model is not deterministic: {', '.join(names)} {verb} between two equal requests"
