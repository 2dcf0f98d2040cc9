"""The string of a class: its format, value, index and label."""

from __future__ import annotations

import sys
from typing import Any

from conformance.checks.support.changed_tensors import WIDE_FLOATS, fill_floats_with_fractions
from conformance.checks.support.class_expectations import (
    expect_labels,
    expect_no_colon_without_label,
    expect_no_labels,
    expect_same_label_everywhere,
)
from conformance.checks.support.classes import (
    CLASS_FORMAT,
    ClassifiedAnswer,
    apply_to_items,
    describe_classes,
    rank_classes,
    read_texts,
)
from conformance.checks.support.controls import request_single_output
from conformance.checks.support.ranked_inputs import (
    DOCUMENTED,
    INFINITE,
    ITEMS,
    OWN,
    SCORES,
    SQUARES,
    find_unbatched_inputs,
)
from conformance.expect import class_texts
from conformance.expect.difference import find_difference
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.roles.model import Model
from conformance.spec.check import Row, claim, rows
from conformance.spec.extensions import BINARY
from conformance.spec.fit import SCORED, Fit
from conformance.transport.any_target import AnyTarget
from conformance.wire.finding import format_value as quoted
from conformance.wire.request import Form


@claim("classification.text-is-value-index-label", requirements="CLS-FORMAT")
@rows(
    Row("floats", (SCORES,), role="scores"),
    Row("integers", ((5, -7, 9),), role="identity_int32"),
    Row("labelled", (SCORES,), role="scores_labelled"),
    Row("odd-labels", (SCORES,), role="scores_odd_labels"),
    Row("batching", (ITEMS,), role="scores_batching_labelled"),
    Row("tiny-and-huge", ((2.0**-900, 2.0**900, -(2.0**900)),), role="identity_fp64"),
    Row("documented", (DOCUMENTED,), role="documented_scores_labelled"),
    OWN,
)
def text_is_value_index_label(target: AnyTarget, model: Model, values: Any = None, send: Form = "json") -> None:
    """The server writes each class as value:index or value:index:label."""
    case = ClassifiedAnswer.ask(target, model, values, 3, send=send)
    for text in read_texts(case.reply, case.name):
        try:
            class_texts.parse(text)
        except class_texts.ClassTextError as error:
            raise UnmetError(CLASS_FORMAT, f"{quoted(text)}: {error}", case.reply) from error


@claim("classification.value-is-the-score", requirements="CLS-VALUE")
@rows(
    Row("fp32", ((0.25, 123456.75, -1.5, 3.0, 0.0),), role="identity_fp32"),
    Row("uint8", ((3, 200, 255),), role="identity_uint8"),
    Row("uint16", ((3, 40000, 65535),), role="identity_uint16"),
    Row("uint32", ((3, 2**31, 2**32 - 1),), role="identity_uint32"),
    Row("uint64", ((2**53 + 1, 2**63, 2**64 - 1),), role="identity_uint64"),
    Row("int8", ((-1, -128, 127),), role="identity_int8"),
    Row("int16", ((-1, -32768, 32767),), role="identity_int16"),
    Row("int32", ((-1, -(2**31), 2**31 - 1),), role="identity_int32"),
    Row("int64", ((-(2**53) - 1, 2**53 + 1, -(2**63), 2**63 - 1),), role="identity_int64"),
    # The largest of all: rounded up to fewer digits, it is beyond its datatype.
    Row("fp32-powers", ((2.0**-10, 2.0**-7, 2.0**33, -(2.0**20), 2.0**128 - 2.0**104),), role="identity_fp32"),
    Row("fp64", ((0.5, 123456789.125, -2.5, 2.0**60),), role="identity_fp64"),
    Row("fp64-powers", ((2.0**-900, -(2.0**900), sys.float_info.max, 1.0),), role="identity_fp64"),
    Row("fp32-infinities", (INFINITE, "binary"), role="identity_fp32", needs=BINARY),
    Row("fp64-infinities", (INFINITE, "binary"), role="identity_fp64", needs=BINARY),
    Row("batch-of-1", (ITEMS[:1],), role="scores_batching"),
    Row("labelled", (SCORES,), role="scores_labelled"),
    Row("documented", (DOCUMENTED,), role="documented_scores"),
    Row("documented-labelled", (DOCUMENTED,), role="documented_scores_labelled"),
    OWN,
)
def value_is_the_score(target: AnyTarget, model: Model, values: Any = None, send: Form = "json") -> None:
    """The value in a class is the model's output at that index."""
    ClassifiedAnswer.ask(target, model, values, send=send).expect_rule(apply_to_items(class_texts.has_right_values))


@claim("classification.value-says-all-of-the-score", requirements="CLS-VALUE-EXACT")
@rows(
    Row("integers", ((5, -7, 123456789),), role="identity_int32"),
    Row("uint64", ((2**53 + 1, 2**63, 2**64 - 1),), role="identity_uint64"),
    Row("fp32", ((0.25, -1.5, 3.0, 123456.75),), role="identity_fp32"),
    Row("fp32-nine-digits", ((0.1, 1 + 2**-23, 16777215.0, 2.0**-30),), role="identity_fp32"),
    Row("fp64", ((0.1, 1 / 3, 123456789.125, 2.0**-40),), role="identity_fp64"),
    Row("documented", (DOCUMENTED,), role="documented_scores"),
    Row("deployed-fractions", (None,), needs=BINARY, fit=Fit(some_input=WIDE_FLOATS, outputs=WIDE_FLOATS)),
)
def value_says_all_of_the_score(target: AnyTarget, model: Model, values: Any, send: Form = "json") -> None:
    """The value in a class reads back as exactly the score."""
    if values is None:
        _expect_deployed_values(target, model)
        return
    ClassifiedAnswer.ask(target, model, values, send=send).expect_rule(apply_to_items(class_texts.has_exact_values))


def _expect_deployed_values(target: AnyTarget, model: Model) -> None:
    """Expect the values in the classes of a deployed model to equal its output as binary data.

    The last bits are not compared, because the model may compute them differently each time.

    Raises:
        NotApplicableError: the classified output does not contain FP32 or FP64 elements.
        BlockedError: the output is also wrong as unclassified binary data.
    """
    tensors = fill_floats_with_fractions(model.sample())
    case = ClassifiedAnswer.ask(target, model, tensors=tensors)
    if case.right.datatype not in WIDE_FLOATS:
        raise NotApplicableError(f"{case.name} of {model.name} has no FP32 or FP64 elements")
    if case.name in model.noise:
        raise NotApplicableError(f"{case.name} of {model.name} differs a little each time")
    reply = request_single_output(target, model, tensors, case.name)
    output = reply.answer.output(case.name)
    if output is None or output.array is None or find_difference(case.right, output, reply.body):
        raise BlockedError(f"{case.name} is also wrong as unclassified binary data")
    for listed, scores in case.split_items(output.array):
        if not class_texts.has_close_values(listed, scores):
            right = describe_classes(rank_classes(scores, len(listed)))
            raise UnmetError(f"{case.name} as classes {right}", describe_classes(listed), case.reply)


@claim("classification.index-counts-from-0", requirements="CLS-INDEX")
@rows(
    Row("floats", (SCORES,), role="scores"),
    Row("labelled", (SCORES,), role="scores_labelled"),
    Row("integers", ((5, -7, 9, 0, 8),), role="identity_int32"),
    Row("300-classes", (tuple(k * 37 % 300 for k in range(300)),), role="identity_int32"),
    Row("batch-of-1", (ITEMS[:1],), role="scores_batching"),
    Row("documented", (DOCUMENTED,), role="documented_scores"),
    OWN,
    Row("deployed-300-classes", (None, "json", 300), fit=SCORED),
)
def index_counts_from_0(
    target: AnyTarget, model: Model, values: Any = None, send: Form = "json", class_count: int = 0
) -> None:
    """The index in a class is the position of its score, counted from 0."""
    tensors = find_unbatched_inputs(model, class_count) if class_count else None
    case = ClassifiedAnswer.ask(target, model, values, class_count or None, send=send, tensors=tensors)
    case.require_unsorted_scores()
    case.expect_rule(apply_to_items(class_texts.has_right_indices))


@claim("classification.label-follows-its-index", requirements="CLS-LABEL")
@rows(
    Row("all", (SCORES,), role="scores_labelled"),
    Row("some", (SCORES,), role="scores_some_labels"),
    Row("odd", (SCORES,), role="scores_odd_labels"),
    Row("batch", (ITEMS,), role="scores_batching_labelled"),
    Row("batch-of-rank-2", (SQUARES,), role="scores_batching_rank2"),
    Row("second-output", (SCORES, "RANKS"), role="scores_two_outputs"),
    Row("documented", (DOCUMENTED,), role="documented_scores_labelled"),
    OWN,
)
def label_follows_its_index(
    target: AnyTarget, model: Model, values: Any = None, name: str | None = None, send: Form = "json"
) -> None:
    """The label in a class is the label of its index."""
    if values is None:
        expect_same_label_everywhere(target, model, send)
    else:
        expect_labels(ClassifiedAnswer.ask(target, model, values, name=name, send=send))


@claim("classification.no-label-no-colon", requirements="CLS-NO-LABEL")
@rows(
    Row("none", (SCORES,), role="scores"),
    Row("none-batching", (ITEMS,), role="scores_batching"),
    Row("none-of-integers", ((5, -7, 9),), role="identity_int32"),
    Row("some", (SCORES,), role="scores_some_labels"),
    Row("other-output-has-them", (SCORES, "SCORES"), role="scores_two_outputs"),
    Row("documented", (DOCUMENTED,), role="documented_scores"),
    OWN,
)
def no_label_no_colon(
    target: AnyTarget, model: Model, values: Any = None, name: str | None = None, send: Form = "json"
) -> None:
    """A class without a label ends with its index."""
    if values is None:
        expect_no_colon_without_label(target, model, send)
    else:
        expect_no_labels(ClassifiedAnswer.ask(target, model, values, name=name, send=send))
