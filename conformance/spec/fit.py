"""Defines which deployed models a row can use: constraints on their signature (the declared inputs and outputs).

A row that needs a model with a known computation has a role and no `Fit`. A row that works with any computation has
a `Fit` as well:

    @check("headers.binary-answer-has-inference-header", requirements="BIN-HEADER-O", role="identity_uint8", fit=ANY)

Such a row runs on the model of its role, if one is deployed, and on each deployed model whose signature meets the
constraints. The expected outputs of such a model are its own answer to a simple valid request with the same inputs,
which `discovery` stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

INTEGERS = frozenset({"INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"})
# Datatypes whose outputs can be ranked, and that have a JSON form.
SCORE_DATATYPES = INTEGERS | {"FP32", "FP64"}


class DeclaredTensor(Protocol):
    """An input or output declared in model metadata; -1 is a variable dimension."""

    @property
    def datatype(self) -> str:
        """The name of the datatype."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The declared dimensions."""

    @property
    def has_json_form(self) -> bool:
        """Whether JSON can represent elements of the datatype: FP16 and BF16 are binary only."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Constraints on the signature of a deployed model.

    Attributes:
        min_inputs: the minimum number of inputs.
        max_inputs: the maximum number of inputs; None for no limit.
        min_outputs: the minimum number of outputs.
        inputs: the allowed datatypes of the first input; empty for any.
        some_input: at least one input must have one of these datatypes; empty for any.
        outputs: at least one output must have one of these datatypes; empty for any.
        is_json: whether JSON must be able to represent every tensor.
        min_rank: the minimum number of dimensions of the first input.
        max_rank: the maximum number of dimensions of the first input; None for no limit.
        is_variable: whether the first input must have a variable dimension.
        is_described: whether the model's metadata must list the inputs, so that a request can contradict the metadata.
    """

    min_inputs: int = 1
    max_inputs: int | None = None
    min_outputs: int = 1
    inputs: frozenset[str] = frozenset()
    some_input: frozenset[str] = frozenset()
    outputs: frozenset[str] = frozenset()
    is_json: bool = False
    min_rank: int = 0
    max_rank: int | None = None
    is_variable: bool = False
    is_described: bool = False

    def describe_mismatch(
        self, inputs: Sequence[DeclaredTensor], outputs: Sequence[DeclaredTensor], *, is_described: bool = True
    ) -> str:
        """Return the first unmet constraint as a phrase after `a model with`; empty if the signature meets all.

        `is_described` says whether the metadata list the inputs and outputs of the model.
        """
        first = inputs[0] if inputs else None
        has_json_form = all(tensor.has_json_form for tensor in (*inputs, *outputs))
        tests = (
            (len(inputs) >= self.min_inputs, f"{self.min_inputs} inputs" if self.min_inputs > 1 else "an input"),
            (self.max_inputs is None or len(inputs) <= self.max_inputs, f"no more than {self.max_inputs} input"),
            (len(outputs) >= self.min_outputs, f"{self.min_outputs} outputs" if self.min_outputs > 1 else "an output"),
            (_has_datatype(self.inputs, inputs[:1]), f"a first input of {_join_datatypes(self.inputs)}"),
            (_has_datatype(self.some_input, inputs), f"an input of {_join_datatypes(self.some_input)}"),
            (_has_datatype(self.outputs, outputs), f"an output of {_join_datatypes(self.outputs)}"),
            (has_json_form or not self.is_json, "datatypes that JSON can represent"),
            (
                first is None or len(first.shape) >= self.min_rank,
                f"a first input with at least {self.min_rank} dimensions",
            ),
            (
                first is None or self.max_rank is None or len(first.shape) <= self.max_rank,
                f"a first input with at most {self.max_rank} dimensions",
            ),
            (
                not self.is_variable or (first is not None and -1 in first.shape),
                "a first input with a variable dimension",
            ),
            (is_described or not self.is_described, "inputs that the model metadata list"),
        )
        return next((words for is_met, words in tests if not is_met), "")


def _has_datatype(allowed: frozenset[str], tensors: Sequence[DeclaredTensor]) -> bool:
    return not allowed or any(tensor.datatype in allowed for tensor in tensors)


def _join_datatypes(datatypes: frozenset[str]) -> str:
    words = [*sorted(datatypes - INTEGERS), "any integer"] if datatypes >= INTEGERS else sorted(datatypes)
    return " or ".join(words)


ANY = Fit()
JSON = Fit(is_json=True)
ONE_INPUT = Fit(max_inputs=1)
SEVERAL_INPUTS = Fit(min_inputs=2)
SEVERAL_OUTPUTS = Fit(min_outputs=2)
SCORED = Fit(outputs=SCORE_DATATYPES)
TEXTS = Fit(some_input=frozenset({"BYTES"}))
VARIABLE_FLOATS = Fit(inputs=frozenset({"FP32", "FP64"}), is_variable=True)
# Models that take a raw request of any length. The request can be read as a batch as well, so a refusal is allowed.
RAW_FLOATS = Fit(inputs=frozenset({"FP32", "FP64"}), is_variable=True, max_inputs=1, max_rank=1)
