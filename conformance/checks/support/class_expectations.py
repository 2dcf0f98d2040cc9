"""Expectations on the strings that describe classes: the server writes them unchanged and with the right labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from conformance.checks.support.classes import ClassifiedAnswer, apply_to_items, read_texts
from conformance.checks.support.controls import is_right_alone, is_side_right
from conformance.expect import class_texts
from conformance.expect.class_texts import ClassText, Scores
from conformance.expect.difference import find_largest_error
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.roles.model import Model
from conformance.spec.text import format_element
from conformance.transport.any_target import AnyTarget
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire import strings
from conformance.wire.finding import format_value as quoted
from conformance.wire.outputs import Output
from conformance.wire.request import Form
from conformance.wire.tensor import Tensor

# --- classes as binary data -------------------------------------------------------------------------------------------

ALSO_WRONG_AS_BYTES = "the same strings are also wrong as binary data in an output without classification"


def are_strings_written_right(target: Target, right: Sequence[str], found: Output | None) -> bool:
    """Say whether identity models return these strings unchanged as binary data, as a vector and as a matrix.

    The matrix has the shape of `found`; if the strings do not fit this shape, only the vector is tested.
    """
    octets = [text.encode("utf-8", "surrogateescape") for text in right]
    rank2_model = target.model("rank2_bytes")
    shape = found.shape if found else None
    if rank2_model is not None and shape is not None and len(shape) == 2 and prod(shape) == len(octets):
        square = rank2_model.tensor(octets, shape)
        if not is_side_right(target, rank2_model, [square], "written"):
            return False
    return is_right_alone(target, Tensor.from_values("INPUT", "BYTES", octets), "written")


def expect_class_strings(
    reply: Reply, name: str, right: Sequence[str], requirement: str | None = None, *, near: Tensor | None = None
) -> None:
    """Expect the only output of an answer to contain exactly these strings, as binary data or as JSON.

    With `near`, the scores of a deployed model, classes may differ as much as in two answers to the same request.
    """
    if near is not None and are_classes_near(found := read_texts(reply, name), right, near):
        right = found
    expected = f"{_format_class_texts(right)}, as in the answer without binary_data"
    if expect(reply).output(name).binary:
        binary_data = reply.body[reply.answer.json_end :]
        if binary_data != strings.encode([text.encode("utf-8", "surrogateescape") for text in right]):
            actual = f"{len(binary_data)} bytes that do not encode these strings: {format_element(binary_data, 24)}"
            raise UnmetError(expected, actual, reply, requirement=requirement, offset=reply.answer.json_end)
    elif read_texts(reply, name) != list(right):
        raise UnmetError(expected, _format_class_texts(read_texts(reply, name)), reply, requirement=requirement)


def are_classes_near(found: Sequence[str], right: Sequence[str], near: Tensor | None = None) -> bool:
    """Say whether two lists of strings describe the same classes, but for what rounding may change in these scores.

    Rounding changes the last digits of values, and the order of equal scores.
    """
    error = find_largest_error(near) if near else 0.0
    pairs = [
        (class_texts.parse_leniently(one), class_texts.parse_leniently(other))
        for one, other in zip(found, right, strict=False)
    ]
    return len(found) == len(right) and all(
        one and other and class_texts.is_same_class(_exchange_tied_class(one, other, near, error), other, error)
        for one, other in pairs
    )


def _exchange_tied_class(entry: ClassText, other: ClassText, near: Tensor | None, error: float) -> ClassText:
    """Return a class with index and label of another one, if rounding may exchange their scores in any batch item."""
    if near is None or not error or entry.index == other.index:
        return entry
    rows = [near.array.reshape(-1), *(near.array.reshape(near.shape[0], -1) if len(near.shape) > 1 else ())]
    tied = [
        abs(float(row[entry.index]) - float(row[other.index])) <= 2 * error
        for row in rows
        if max(entry.index, other.index) < row.size
    ]
    return replace(entry, index=other.index, label=other.label) if any(tied) else entry


def _format_class_texts(found: Sequence[str]) -> str:
    texts = [format_element(text.encode("utf-8", "surrogateescape")) for text in found[:8]]
    return ", ".join(texts) + (", ..." if len(found) > 8 else "")


# --- labels -----------------------------------------------------------------------------------------------------------
# The suite does not know the labels of a deployed model. But an index must have the same label, or none, in every
# request, batch item and rank.

MAX_OUTPUTS = 4  # outputs of a deployed model that are checked for labels

# --- labels of a role -------------------------------------------------------------------------------------------------


def expect_labels(case: ClassifiedAnswer) -> None:
    """Expect each class to end with the label of its index, if that index has a label."""
    labels = case.labels or ()

    def has_right_label(entry: ClassText, scores: Scores) -> bool:
        # Other checks judge a wrong index or score: accept the label of the index, and of the nearest score.
        right = {
            _find_label(labels, entry.index),
            _find_label(labels, class_texts.find_index_of_nearest_score(entry, scores)),
        }
        return None in right or entry.label in right

    hint = "" if any(entry.label for entry in case.listed) else "; declare limits.labels = false if no model has labels"
    case.expect_rule(
        apply_to_items(lambda listed, scores: all(has_right_label(entry, scores) for entry in listed)),
        _describe_labels(labels) + hint,
    )


def expect_no_labels(case: ClassifiedAnswer) -> None:
    """Expect each class to end with its index, if that index has no label."""
    labels = case.labels or ()

    def may_have_no_label(entry: ClassText, scores: Scores) -> bool:
        indices = (entry.index, class_texts.find_index_of_nearest_score(entry, scores))
        return entry.label is None or any(_find_label(labels, index) is not None for index in indices)

    case.expect_rule(
        apply_to_items(lambda listed, scores: all(may_have_no_label(entry, scores) for entry in listed)),
        _describe_labels(labels),
    )


def _find_label(labels: Sequence[str], index: int) -> str | None:
    return labels[index] if index < len(labels) else None


def _describe_labels(labels: Sequence[str]) -> str:
    named = ", ".join(f"{index}:{label}" for index, label in enumerate(labels))
    return (
        f"classes with the labels {named}, and without a label for any other index"
        if named
        else "classes without labels"
    )


# --- labels of a deployed model ---------------------------------------------------------------------------------------


def expect_same_label_everywhere(target: AnyTarget, model: Model, send: Form) -> None:
    """Expect each index to have the same label in every answer and at every rank.

    Raises NotApplicableError: no index that occurs at two ranks has a label.
    """
    for name in model.find_classifiable_outputs()[:MAX_OUTPUTS]:
        if any(_collect_labels(target, model, name, send, min_ranks=2).values()):
            return
    raise NotApplicableError(f"{model.name} returns no label for an index that occurs at two ranks")


def expect_no_colon_without_label(target: AnyTarget, model: Model, send: Form) -> None:
    """Expect a class without a label to end with its index, not with a colon.

    Raises NotApplicableError: every class has a label.
    """
    found = [_collect_labels(target, model, name, send) for name in model.find_classifiable_outputs()[:MAX_OUTPUTS]]
    unlabelled = [labels for labels in found if not all(labels.values())]
    if not unlabelled:
        raise NotApplicableError(f"every class of {model.name} has a label")
    for labels in unlabelled:
        if set(labels.values()) == {""}:  # one of several labels may be the empty text
            raise UnmetError("classes without labels, which end with their index", "a colon after each index")


def _collect_labels(
    target: AnyTarget, model: Model, name: str, send: Form, *, min_ranks: int = 1
) -> dict[int, str | None]:
    """Return index -> label, or None for no label, for the indices that occur at `min_ranks` or more ranks.

    Raises:
        UnmetError: an index has two labels, or a label at one rank and none at another (CLS-LABEL).
        BlockedError: indices and scores do not match, so a label cannot be assigned to an index.
    """
    labels: dict[int, str | None] = {}
    ranks: dict[int, set[int]] = {}
    for case in _request_cases(target, model, name, send):
        for listed, scores in case.split_items():
            if not class_texts.has_matching_indices(listed, scores) or len({entry.index for entry in listed}) < len(
                listed
            ):
                raise BlockedError(f"the classes of {name} have wrong indices or scores")
            for rank, entry in enumerate(listed):
                known = labels.setdefault(entry.index, entry.label)
                ranks.setdefault(entry.index, set()).add(rank)
                if known != entry.label:
                    wanted, found = (quoted(label) if label else "none" for label in (known, entry.label))
                    expected, actual = (
                        f"label {wanted} of index {entry.index}, which another class with this index has",
                        f"label {found}",
                    )
                    raise UnmetError(expected, actual, case.reply, requirement="CLS-LABEL")
    return {index: label for index, label in labels.items() if len(ranks[index]) >= min_ranks}


def _request_cases(target: AnyTarget, model: Model, name: str, send: Form) -> Iterator[ClassifiedAnswer]:
    """Request classes of an output twice for each of several inputs: all classes, and one class. Yield the answers."""
    for tensors in model.draw_several():
        for count in (None, 1):
            yield ClassifiedAnswer.ask(target, model, None, count, send=send, name=name, tensors=tensors)
