"""The order of classes: highest first, each batch item separately; gRPC and HTTP agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from conformance.checks.support.classes import (
    ClassifiedAnswer,
    apply_to_items,
    describe_classes,
    find_scored_output,
    read_texts,
)
from conformance.checks.support.ranked_inputs import (
    DESCENDING,
    DOCUMENTED,
    INFINITE,
    ITEMS,
    OWN,
    SCORES,
    SQUARES,
    choose_inputs,
    find_half_negated_inputs,
    find_tied_inputs,
    find_unbatched_inputs,
    has_ties,
)
from conformance.expect import class_texts
from conformance.expect.class_texts import ClassText, Scores
from conformance.expect.difference import find_largest_error
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, check, claim, rows
from conformance.spec.extensions import BINARY, CLASSES, GRPC, HTTP
from conformance.spec.fit import SCORED, Fit
from conformance.spec.text import escape_text
from conformance.transport.any_target import AnyTarget
from conformance.transport.exchange import Reply
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.request import Form
from conformance.wire.tensor import Tensor

DEPLOYED_ITEM_COUNT = 5  # batch items in a request to a deployed model


@claim("classification.items-are-ranked-apart", requirements="CLS-BATCH")
@rows(
    Row("2-items", (ITEMS, 4), role="scores_batching"),
    Row("2x2-items", (SQUARES, 3), role="scores_batching_rank2"),
    Row("highest-of-each", (ITEMS, 1), role="scores_batching"),
    Row("2-of-4", (ITEMS, 2), role="scores_batching_labelled"),
    Row("8-items", ([[10.0 + (k * 13 + n * 8) % 101 for k in range(4)] for n in range(8)], 3), role="scores_batching"),
    OWN,
)
def items_are_ranked_apart(
    target: AnyTarget, model: Model, values: Any = None, count: int | None = None, send: Form = "json"
) -> None:
    """The server ranks each batch item separately, with indices that count within the item."""
    if values is None:
        _expect_separate_deployed_rankings(target, model, send)
    else:
        ClassifiedAnswer.ask(target, model, values, count, send=send).expect_rule(class_texts.is_ranked_per_item)


def _expect_separate_deployed_rankings(target: AnyTarget, model: Model, send: Form) -> None:
    """Expect a separate ranking for each item of a deployed model, whose scores may be close to each other.

    Raises:
        NotApplicableError: the output does not have items with different rankings.
        BlockedError: the classes of a single item are wrong; other checks judge these.
    """
    tensors, _ = choose_inputs(model, find_scored_output(model), items=DEPLOYED_ITEM_COUNT)
    case = ClassifiedAnswer.ask(target, model, None, 2, send=send, tensors=tensors)
    items = case.split_items()
    if len({tuple(class_texts.find_highest(scores, len(listed))) for listed, scores in items}) < 2:
        raise NotApplicableError(f"the items of {case.name} of {model.name} do not have different rankings")

    def is_single_item_wrong() -> bool:
        return not all(
            _has_highest_indices(*item)
            for item in ClassifiedAnswer.ask(target, model, None, 2, send=send).split_items()[:1]
        )

    with block_if(is_single_item_wrong, "the classes of a single item are also wrong"):
        case.expect_rule(apply_to_items(_has_highest_indices))


def _has_highest_indices(listed: Sequence[ClassText], scores: Scores) -> bool:
    """Say whether the indices of an item are the indices of its highest scores; other checks judge the values."""
    return class_texts.are_highest(class_texts.find_scores_by_index(listed, scores), scores)


# --- order ----------------------------------------------------------------------------------------------------------


# Adjacent values that FP64 cannot distinguish occur in both orders, so that a stable sort on FP64 is detected as well.
RANKED_SCORES: tuple[tuple[str, str, tuple[float, ...]], ...] = (
    ("uint8", "identity_uint8", (3, 200, 127, 128, 0, 255)),
    ("uint16", "identity_uint16", (255, 40000, 32767, 32768, 256, 65535, 1)),
    ("uint32", "identity_uint32", (65536, 2**31 - 1, 2**31, 2**32 - 1, 255, 0)),
    ("uint64-sign", "identity_uint64", (2**63 - 1, 2**63, 1, 2**64 - 1, 0)),
    ("uint64-beyond-2^53", "identity_uint64", (2**53, 2**53 + 1, 2**62 + 1, 2**62, 2**64 - 2, 2**64 - 1)),
    ("int8", "identity_int8", (-1, -128, 127, 0, 1, -2)),
    ("int16", "identity_int16", (-1, 255, -32768, 32767, 256, 0)),
    ("int32", "identity_int32", (-1, 65536, -(2**31), 2**31 - 1, 255, 0)),
    ("int64-sign", "identity_int64", (-1, -(2**63), 2**63 - 1, 1, 0)),
    ("int64-beyond-2^53", "identity_int64", (2**53, 2**53 + 1, -(2**53) - 1, -(2**53), 2**62 + 1, 2**62)),
    ("fp32", "identity_fp32", SCORES),
    ("fp32-negatives", "identity_fp32", (-1.0, -2.0, -0.5, -3.0)),
    ("fp32-far-apart", "identity_fp32", (2.0**-100, 2.0**100, -(2.0**100), 1.0, -(2.0**-100), 0.0)),
    ("fp32-neighbours", "identity_fp32", (1.0, 1 + 2**-23, 1 - 2**-24, 1 + 2**-22, 1 + 3 * 2**-23)),
    ("fp64", "identity_fp64", (0.5, -4.0, 8.25, 0.0)),
    ("fp64-far-apart", "identity_fp64", (2.0**900, 2.0**901, 2.0**-900, 2.0**-901, -(2.0**900), 0.0)),
    ("fp64-beyond-fp32", "identity_fp64", (2.0**24, 2.0**24 + 0.25, 2.0**24 + 0.75, 2.0**24 + 0.5)),
    ("fp64-neighbours", "identity_fp64", (1.0, 1 + 2**-52, 1 + 2**-40, 1 + 2**-41, 1 - 2**-53)),
)


WIDE_FLOATS = frozenset({"FP32", "FP64"})
SCORES_BELOW_0 = WIDE_FLOATS | {"INT8", "INT16", "INT32", "INT64"}


@claim("classification.highest-come-first", requirements="CLS-HIGHEST")
@rows(
    *[Row(identity, (values, None), role=role) for identity, role, values in RANKED_SCORES],
    *[Row(f"{count}-of-4", (SCORES, count), role="scores") for count in (1, 2, 3)],
    Row("batch-of-1", (ITEMS[:1], 2), role="scores_batching"),
    Row("100-classes", (tuple(k * 37 % 100 for k in range(100)), 10), role="identity_int32"),
    Row("5000-classes", (tuple(k * 37 % 5000 for k in range(5000)), 100), role="identity_int32"),
    Row("fp32-infinities", (INFINITE, None, "binary"), role="identity_fp32", needs=BINARY),
    Row("fp64-infinities", (INFINITE, None, "binary"), role="identity_fp64", needs=BINARY),
    Row("documented", (DOCUMENTED, 2), role="documented_scores"),
    Row("deployed-1", (None, 1), fit=SCORED),
    Row("deployed-all", (None, None), fit=SCORED),
    Row("deployed-100-of-300", (None, 100, "json", partial(find_unbatched_inputs, count=300)), fit=SCORED),
    Row(
        "deployed-negated",
        (None, None, "json", find_half_negated_inputs),
        fit=Fit(some_input=WIDE_FLOATS, outputs=SCORES_BELOW_0),
    ),
)
def highest_come_first(
    target: AnyTarget,
    model: Model,
    values: Any,
    count: int | None,
    send: Form = "json",
    find: Callable[[Model], Sequence[Tensor]] | None = None,
) -> None:
    """The server returns the highest scores, highest first; it compares them as values of their datatype."""
    tensors = find(model) if find else None
    case = ClassifiedAnswer.ask(target, model, values, count, send=send, tensors=tensors)
    case.require_unsorted_scores()
    if find and len(case.listed) != case.expected_count * case.batch:
        raise BlockedError("the answer has more or fewer classes than requested")
    case.expect_rule(apply_to_items(class_texts.is_in_order))


@claim("classification.ties-in-any-order", requirements="CLS-TIES")
@rows(
    Row("all-equal", ((1.0, 1.0, 1.0, 1.0), 4), role="scores"),
    Row("2-of-4-equal", ((1.0, 1.0, 1.0, 1.0), 2), role="scores"),
    Row("two-pairs", ((1.0, 2.0, 1.0, 2.0), 4), role="scores_labelled"),
    Row("three-of-two-pairs", ((1.0, 2.0, 1.0, 2.0), 3), role="scores"),
    Row("zeros-of-both-signs", ((0.0, -0.0, -0.0, 0.0), 4), role="scores"),
    Row("integers", (tuple(k % 3 for k in range(40)), 40), role="identity_int32"),
    Row("6-of-20", (tuple(k % 2 for k in range(20)), 6), role="identity_uint8"),
    Row("batch-of-1", (((2.0, 1.0, 2.0, 1.0),), 3), role="scores_batching"),
    OWN,
)
def ties_in_any_order(
    target: AnyTarget, model: Model, values: Any = None, count: int | None = None, send: Form = "json"
) -> None:
    """The server may list equal scores in any order, but repeats no index and lists no higher score later."""
    tensors = None if values else find_tied_inputs(model)
    case = ClassifiedAnswer.ask(target, model, values, count, send=send, tensors=tensors)
    case.expect_rule(apply_to_items(class_texts.is_ordered_without_repeats))


# --- agreement of gRPC and HTTP ---------------------------------------------------------------------------------------

# Roles whose outputs can be classified: all but BYTES, BOOL and 16-bit floats.
_SCORES_BY_ROLE: tuple[tuple[str, Any], ...] = (
    ("scores", SCORES),
    ("scores_labelled", SCORES),
    ("scores_some_labels", SCORES),
    ("scores_odd_labels", SCORES),
    ("scores_batching", ITEMS),
    ("scores_batching_labelled", ITEMS),
    ("scores_rank2", ((1, 3, 2), (6, 4, 5))),
    ("scores_batching_rank2", SQUARES),
    ("scores_two_outputs", SCORES),
    ("documented_scores", DOCUMENTED),
    ("documented_scores_labelled", DOCUMENTED),
    ("rank3", (((1, 3), (2, 6)), ((4, 5), (8, 7)))),
    *[(f"identity_{kind}", (5, 3, 9)) for kind in ("uint8", "uint16", "uint32", "uint64")],
    *[(f"identity_{kind}", DESCENDING) for kind in ("int8", "int16", "int32", "int64", "fp32", "fp64")],
)


@check("grpc.classes-are-those-of-http", requirements="GRPC-CLS-SAME-AS-HTTP", over=(GRPC, HTTP))
@rows(
    *[Row(role, (values,), role=role, needs=CLASSES) for role, values in _SCORES_BY_ROLE],
    Row("deployed", (None,), fit=SCORED, needs=CLASSES),
)
def classes_are_those_of_http(target: GrpcTarget, model: Model, values: Any) -> None:
    """The server returns the same classes over gRPC as over HTTP."""
    name = find_scored_output(model)
    tensors, right = choose_inputs(model, name, values)
    if has_ties(right):
        raise NotApplicableError(f"some scores of {name} are equal, so that their order is undefined")
    over_http = ClassifiedAnswer.ask(target.over_http, model, values, 2).reply
    over_grpc = ClassifiedAnswer.ask(target, model, values, 2, send=model.plain_input_form).reply
    usual, found = (_parse_classes(read_texts(reply, name)) for reply in (over_http, over_grpc))
    if usual != found:
        with block_if(
            lambda: not _is_unclassified_right(target, model, tensors), "the unclassified output is also wrong"
        ):
            _expect_same_classes(usual, found, over_grpc, find_largest_error(right))


def _is_unclassified_right(target: GrpcTarget, model: Model, tensors: Sequence[Tensor]) -> bool:
    """Say whether the outputs are correct over gRPC without classification."""
    plain = target.infer(model.request(tensors, send=model.plain_input_form))
    return is_met(lambda: expect(plain).tensors(model.find_outputs(tensors), through_json=False))


def _expect_same_classes(
    usual: Sequence[ClassText], found: Sequence[ClassText], over_grpc: Reply, tolerance: float
) -> None:
    """Expect the same classes over gRPC as over HTTP."""
    if len(usual) != len(found) or not all(map(partial(class_texts.is_same_class, tolerance=tolerance), usual, found)):
        raise UnmetError(
            f"{escape_text(describe_classes(usual), 300)}, as over HTTP",
            escape_text(describe_classes(found), 300),
            over_grpc,
        )


def _parse_classes(listed: Sequence[str]) -> list[ClassText]:
    """Return the classes in these strings, leaving out strings that cannot be parsed."""
    return [entry for text in listed if (entry := class_texts.parse_leniently(text)) is not None]
