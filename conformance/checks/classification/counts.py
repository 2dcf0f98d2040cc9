"""The parameter `classification`: a server returns an output as the requested number of classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.checks.support.classes import (
    ClassifiedAnswer,
    ask,
    describe_class_count,
    read_texts,
)
from conformance.checks.support.ranked_inputs import (
    DOCUMENTED,
    ITEMS,
    OWN,
    SCORES,
    SEVERAL_SCORED,
    find_unbatched_inputs,
)
from conformance.discovery.deployed_model import is_classifiable
from conformance.expect.expectation import expect
from conformance.expect.unmet import NotApplicableError, UnmetError, block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, claim, rows
from conformance.spec.fit import SCORED
from conformance.transport.any_target import AnyTarget
from conformance.transport.exchange import Reply
from conformance.wire.request import Form, RequestedOutput
from conformance.wire.tensor import Tensor

# --- the classified output ------------------------------------------------------------------------------------------


@claim("classification.parameter-is-taken", requirements="CLS-PARAMETER")
@rows(
    Row("scores", (SCORES,), role="scores"),
    Row("labelled", (SCORES,), role="scores_labelled"),
    Row("batching", (ITEMS,), role="scores_batching"),
    Row("rank-2", (((1, 3, 2), (6, 4, 5)),), role="scores_rank2"),
    Row("integers", ((5, -7, 9),), role="identity_int32"),
    Row("documented", (DOCUMENTED,), role="documented_scores"),
    OWN,
)
def parameter_is_taken(target: AnyTarget, model: Model, values: Any = None, send: Form = "json") -> None:
    """The server returns classes for a requested output that has the parameter `classification`."""
    case = ClassifiedAnswer.ask(target, model, values, 2, send=send)
    read_texts(case.reply, case.name)


_WRONG_UNCLASSIFIED = "the same outputs, in the same order, are also wrong without classification"


def _is_unclassified_wrong(
    target: AnyTarget, model: Model, tensors: Sequence[Tensor], listed: Sequence[str], send: Form
) -> bool:
    """Say whether a request for these outputs, in this order and without classification, gets wrong values."""
    reply = ask(target, model, tensors, *map(model.build_plain_output, listed), send=send)
    right = [tensor for tensor in model.find_outputs(tensors) if tensor.name in listed]
    return not is_met(lambda: expect(reply).tensors(right))


_COUNT_BY_OUTPUT = {"SCORES": 1, "RANKS": 3}


@claim("classification.each-output-has-its-count", requirements="CLS-PARAMETER")
@rows(
    Row("declared-order", (("SCORES", "RANKS"),), role="scores_two_outputs"),
    Row("other-order", (("RANKS", "SCORES"),), role="scores_two_outputs"),
    Row("deployed", (None,), fit=SEVERAL_SCORED),
)
def each_output_has_its_count(
    target: AnyTarget, model: Model, order: Sequence[str] | None, send: Form = "json"
) -> None:
    """The server gives each of two classified outputs its own number of classes."""
    tensors = model.sample()
    counts = _COUNT_BY_OUTPUT if order else _choose_deployed_counts(model, tensors)
    listed = order or [spec.name for spec in model.role.outputs[::-1] if spec.name in counts]
    outputs = [RequestedOutput(name, classification=counts[name]) for name in listed]
    reply = ask(target, model, tensors, *outputs, send=send)
    with block_if(lambda: _is_unclassified_wrong(target, model, tensors, listed, send), _WRONG_UNCLASSIFIED):
        _expect_counts(reply, counts, {name: len(read_texts(reply, name)) for name in counts})


def _choose_deployed_counts(model: Model, tensors: Sequence[Tensor]) -> Mapping[str, int]:
    """Return output -> number of classes, for two outputs of a deployed model that are not ranked row by row.

    The two numbers differ.

    Raises NotApplicableError: the model does not have two such outputs.
    """
    right = [
        tensor
        for tensor in model.find_outputs(tensors)
        if is_classifiable(tensor) and not model.may_be_classified_by_row(tensor)
    ]
    *_, one, other = [None, None, *sorted(right, key=lambda tensor: tensor.elements)]
    if one is None or other is None or other.elements < 2:
        raise NotApplicableError(f"{model.name} does not have two outputs for which the number of classes is certain")
    return {one.name: 1, other.name: min(3, other.elements)}


def _expect_counts(reply: Reply, counts: Mapping[str, int], got: Mapping[str, int]) -> None:
    """Expect each output to have its own number of classes.

    Failures are the same number for both outputs and exchanged numbers; another check judges other wrong numbers.
    """
    (one, few), (other, many) = counts.items()
    if (got[one], got[other]) in ((few, few), (many, many), (many, few)):
        raise UnmetError(
            f"{describe_class_count(few)} of {one} and {many} of {other}", f"{got[one]} and {got[other]}", reply
        )


@claim("classification.as-many-as-asked", requirements="CLS-COUNT")
@rows(
    *[Row(f"{count}-of-4", (SCORES, count), role="scores") for count in (1, 2, 3, 4)],
    *[Row(f"batch-{count}-of-4", (ITEMS, count), role="scores_batching") for count in (1, 2, 4)],
    Row("1-of-1", ((7,), 1), role="identity_int32"),
    Row("4-of-4-equal", ((1.0, 1.0, 1.0, 1.0), 4), role="scores"),
    Row("more-than-labels", (SCORES, 4), role="scores_some_labels"),
    Row("37-of-100", (tuple(k * 7 % 100 for k in range(100)), 37), role="identity_int32"),
    Row("1000-of-1000", (tuple(k * 7 % 1000 for k in range(1000)), 1000), role="identity_int32"),
    Row("documented", (DOCUMENTED, 2), role="documented_scores"),
    Row("deployed-1", (None, 1), fit=SCORED),
    Row("deployed-all", (None, None), fit=SCORED),
    Row("deployed-37-of-100", (None, 37, 100), fit=SCORED),
)
def as_many_as_asked(
    target: AnyTarget, model: Model, values: Any, count: int | None, class_count: int = 0, send: Form = "json"
) -> None:
    """The server returns the requested number of classes, at most one for each score."""
    tensors = find_unbatched_inputs(model, class_count) if class_count else None
    case = ClassifiedAnswer.ask(target, model, values, count, send=send, tensors=tensors)
    found = len(read_texts(case.reply, case.name)) // case.batch
    shape = expect(case.reply).output(case.name).shape
    # The checks of the shape judge a wrong rank; its last dimension may not be the count.
    last = shape[-1] if shape and len(shape) == 1 + case.is_batch else found
    if last != case.expected_count:
        raise UnmetError(
            f"{describe_class_count(case.expected_count)} of {case.name}", describe_class_count(last), case.reply
        )
