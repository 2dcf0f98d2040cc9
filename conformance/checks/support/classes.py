"""Request classes, parse them leniently from an answer, and compare them with the expected scores.

Classes are read as strings even if their datatype, shape or format is wrong. So a wrong datatype fails only the checks
of datatypes.

Classes are compared with the expected scores first. If they differ, the server may have misread its inputs. The classes
are therefore also compared with the scores of an answer without classification.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conformance.checks.support.ranked_inputs import choose_inputs, find_output, is_unsorted
from conformance.discovery.deployed_model import has_json_values, is_classifiable
from conformance.expect import class_texts
from conformance.expect.attribution import MISFRAMED, attribute_unreadable_output
from conformance.expect.class_texts import CLASS_DATATYPES, ClassText, Item, Scores
from conformance.expect.difference import find_largest_error
from conformance.expect.expectation import expect
from conformance.expect.refusals import is_refused
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.roles.model import Model
from conformance.spec.text import escape_text, format_shape
from conformance.transport.any_target import AnyTarget
from conformance.transport.exchange import Reply
from conformance.wire import strings
from conformance.wire.finding import format_value as quoted
from conformance.wire.json_data import flatten
from conformance.wire.request import ABSENT, Form, InferRequest, RequestedOutput
from conformance.wire.tensor import Tensor

Rule = Callable[[Sequence[Item]], bool]

# Requirements that a check reports when it cannot read any classes.
PARAMETER_REQUIREMENT, FORMAT = "CLS-PARAMETER", "CLS-FORMAT"
MAX_SHOWN_CHARS = 70  # a message stops after the class that exceeds this
CLASS_FORMAT = "a class written value:index or value:index:label"


def find_scored_output(model: Model) -> str:
    """Return the output to classify: the first, or the output of a deployed model with most distinct scores."""
    return model.find_classifiable_outputs()[0]


def list_output_names(model: Model, name: str, *, is_first: bool) -> list[str]:
    """Return the names of all outputs: `name` first if `is_first`, otherwise last."""
    others = [spec.name for spec in model.role.outputs if spec.name != name]
    return [name, *others] if is_first else [*others, name]


def ask(
    target: AnyTarget, model: Model, tensors: Sequence[Tensor], *outputs: RequestedOutput, send: Form = "json"
) -> Reply:
    """Send a request with these inputs and requested outputs; if it is refused, act as `request_classes` does."""
    return request_classes(target, model.request(tensors, send=send, outputs=outputs))


def request_classes(target: AnyTarget, request: InferRequest) -> Reply:
    """Send a request for classes; if it is refused, send it again without `classification` to find the cause.

    Raises BlockedError: the request without `classification` is refused as well.
    """
    reply = target.infer(request)
    outputs = request.outputs or ()
    if not reply.is_refusal or all(output.classification is ABSENT for output in outputs):
        return reply
    # Ask for outputs in the form of the inputs: JSON cannot represent every number.
    is_binary = any(item.binary for item in request.inputs)
    plain = [RequestedOutput(output.name, True if is_binary else output.binary_data) for output in outputs]
    reply_without_classes = target.infer(replace(request, outputs=tuple(plain)))
    if reply_without_classes.is_refusal:
        outcome = escape_text(reply_without_classes.outcome(), 120)
        cause = UnmetError("an answer to the same request without classification", outcome, reply_without_classes)
        raise BlockedError(f"the server also refuses the same request without classification: {outcome}", cause)
    return reply


def read_texts(reply: Reply, name: str) -> list[str]:
    """Return the elements of an output as strings, whatever its datatype and shape.

    Raises UnmetError: the request was not answered; the output contains no strings (CLS-PARAMETER), or over gRPC
    strings without their lengths (GRPC-RAW-AS-TYPED).
    """
    output = expect(reply, PARAMETER_REQUIREMENT).output(name)
    if misframed := [found for found in output.findings if reply.is_over_grpc and found.kind in MISFRAMED]:
        named = attribute_unreadable_output(reply, name)
        raise UnmetError("BYTES elements with their lengths", str(misframed[0]), reply, requirement=named)
    document = reply.answer.document or {}
    if output.binary:
        binary = reply.body[slice(*output.span)] if output.span else reply.body[reply.answer.json_end :]
        found = _decode_bytes_elements(binary, keep_complete=output.datatype in CLASS_DATATYPES)
    else:
        data = document["outputs"][output.index].get("data")
        found = [text for text in flatten(data, ()) if isinstance(text, str)] if isinstance(data, list) else []
    if not found:
        datatype, shape = escape_text(output.datatype, 20), format_shape(output.shape)
        actual = f"{escape_text(name, 60)} {datatype} with {shape}, which contains no strings"
        raise UnmetError(f"{name} with strings that describe classes", actual, reply, requirement=PARAMETER_REQUIREMENT)
    return found


def read_classes(reply: Reply, name: str) -> list[ClassText]:
    """Return the classes of an output, parsed leniently.

    Raises UnmetError: the output has no classes (CLS-PARAMETER), or one cannot be parsed (CLS-FORMAT).
    """
    found = []
    for text in read_texts(reply, name):
        entry = class_texts.parse_leniently(text)
        if entry is None:
            raise UnmetError(CLASS_FORMAT, quoted(text), reply, requirement=FORMAT)
        found.append(entry)
    return found


def expect_each_class_once(reply: Reply, model: Model, right: Tensor) -> None:
    """Expect an answer to list each class exactly once, in a shape that fits their number.

    Use this for a request for more classes than the output has elements.
    """
    listed = read_classes(reply, right.name)
    items = right.shape[0] if model.may_be_classified_by_row(right) else 1
    batch = (
        items if model.role.batching or (items > 1 and _has_repeated_index(listed)) else 1
    )  # indices count within an item
    available = right.elements // batch
    shape = expect(reply).output(right.name).shape or ()
    if len(listed) != available * batch or math.prod(shape) != len(listed):
        expected = f"a refusal, or {describe_class_count(available)}" + (
            f" for each of {batch} batch items" if batch > 1 else ""
        )
        raise UnmetError(expected, f"{describe_class_count(len(listed))} under {format_shape(shape)}", reply)
    for part in (listed[k * available : (k + 1) * available] for k in range(batch)):
        if _has_repeated_index(part):
            raise UnmetError(f"{available} different indices", describe_classes(part), reply)


def _has_repeated_index(listed: Sequence[ClassText]) -> bool:
    return len({entry.index for entry in listed}) < len(listed)


def describe_class_count(count: int) -> str:
    """Return a number of classes with the noun, such as "2 classes" or "1 class"."""
    return f"{count} class{'' if count == 1 else 'es'}"


def describe_classes(listed: Sequence[ClassText], first: int = 0) -> str:
    """Return a summary for messages: up to eight classes, starting at `first`, in about a hundred characters."""
    texts = [text if len(text) <= 60 else text[:57] + "..." for text in map(format_class, listed[first : first + 8])]
    shown_count = next((k for k in range(2, len(texts)) if sum(map(len, texts[:k])) > MAX_SHOWN_CHARS), len(texts))
    before = f"... from class {first}: " if first else ""
    more = ", ..." if len(listed) > first + shown_count else ""
    return escape_text(f"[{before}{', '.join(texts[:shown_count])}{more}]", 500)


def format_class(entry: ClassText) -> str:
    """Return a class in the format value:index or value:index:label."""
    return f"{entry.value}:{entry.index}" + ("" if entry.label is None else f":{entry.label}")


def rank_classes(scores: Scores, count: int) -> list[ClassText]:
    """Return the expected classes, the highest score first, without labels."""
    values = class_texts.to_python_numbers(scores)
    return [ClassText(str(values[place]), place) for place in class_texts.find_highest(scores, count)]


def find_first_shown_class(listed: Sequence[ClassText], right: Sequence[ClassText]) -> int:
    """Return the index of the first class to show in a message: the one before the first wrong class.

    Return 0 if the message can show the whole list.
    """
    wrong = (k for k, (a, b) in enumerate(zip(listed, right, strict=False)) if (a.value, a.index) != (b.value, b.index))
    wrong_index = next(wrong, 0)
    return (
        0
        if wrong_index < 2 or (len(right) <= 8 and sum(len(format_class(entry)) for entry in right) <= MAX_SHOWN_CHARS)
        else wrong_index - 1
    )


@dataclass(frozen=True, slots=True)
class ClassifiedAnswer:
    """An answer that contains the classes of one output, with the request and the expected scores.

    `right`: the expected output without classification, which contains the scores.
    """

    target: AnyTarget
    model: Model
    tensors: tuple[Tensor, ...]
    send: Form
    name: str
    count: int
    reply: Reply
    right: Tensor

    @classmethod
    def ask(
        cls,
        target: AnyTarget,
        model: Model,
        values: Any = None,
        count: int | None = None,
        *,
        send: Form = "json",
        name: str | None = None,
        tensors: Sequence[Tensor] | None = None,
    ) -> ClassifiedAnswer:
        """Request `count` classes of the output `name` and return the answer.

        By default, request all classes of the output that `find_scored_output` chooses. Pass either `values` for the
        first input or `tensors` for all inputs; by default, the inputs give scores that are not in descending order,
        if possible. For a deployed model, the count is limited so that it is valid with and without batching.

        Raises:
            NotApplicableError: there are no elements to classify, or the server refuses and may do so, because each element
                may be the only class of a batch item, or because no document says how an infinite score is written.
        """
        name = name or find_scored_output(model)
        if tensors is None:
            tensors, right = choose_inputs(model, name, values)
        else:
            right = find_output(model, tensors, name)
        if values is None and not is_classifiable(right):
            raise NotApplicableError(f"{name} of {model.name} has no elements to classify")
        count = model.limit_classes(right, count)
        reply = ask(target, model, tensors, RequestedOutput(name, classification=count), send=send)
        if reply.is_refusal and count > 1 and len(right.shape) == 1 and model.may_batch(right):
            raise NotApplicableError(f"each element of {name} may be a batch item with one class")
        if not has_json_values(right.array) and is_refused(target, model, reply):
            raise NotApplicableError(f"the target does not classify infinities: {escape_text(reply.outcome())}")
        return cls(target, model, tuple(tensors), send, name, count, reply, right)

    @property
    def scores(self) -> Scores:
        """The expected scores: the elements of the expected output."""
        return self.right.array

    @property
    def listed(self) -> Sequence[ClassText]:
        """The classes, in the order of the answer.

        Raises UnmetError: see `read_classes`.
        """
        return read_classes(self.reply, self.name)

    @property
    def labels(self) -> Sequence[str] | None:
        """The labels of the output, by index; empty if the output has no labels, None if the labels are unknown."""
        return self.model.find_labels(self.name)

    @property
    def batch(self) -> int:
        """The number of batch items, each of which has its own ranking; 1 for a model that does not batch.

        If metadata do not tell whether a deployed model batches, the number of classes decides. If the answer has as
        many classes as were requested, they form one ranking, unless every index is 0 and the shape is (items, 1).
        """
        items = self.right.shape[0] if self.right.shape else 1
        if not self.model.may_be_classified_by_row(self.right):
            return 1
        if self.model.role.batching:
            return items
        listed = self.listed
        if len(listed) != items * min(self.count, self.right.elements // items):
            return 1
        are_all_indices_zero = {entry.index for entry in listed} == {0}
        shape = expect(self.reply).output(self.name).shape
        return items if len(listed) != self.count or (are_all_indices_zero and shape == (items, 1)) else 1

    @property
    def is_batch(self) -> bool:
        """Whether the classes have a batch dimension."""
        return self.model.role.batching or self.batch > 1

    @property
    def expected_count(self) -> int:
        """The expected number of classes for each batch item."""
        return self.count if self.model.role.batching else min(self.count, self.right.elements // self.batch)

    def require_unsorted_scores(self) -> None:
        """Require scores that are not in descending order, so that their ranking differs from their index order."""
        if not any(is_unsorted(row) for row in self.scores.reshape(self.batch, -1)):
            raise NotApplicableError(
                f"the scores of {self.name} are in descending order already, so classes would not show a wrong order"
            )

    def split_items(self, scores: Scores | None = None) -> list[Item]:
        """Return the classes and scores of each batch item, or of the whole output if the model does not batch.

        The classes are split into equal parts by their number; the shape in the answer is ignored. The noise of the
        model is removed from both.
        """
        scores = self.scores if scores is None else scores
        listed, batch = self.listed, self.batch
        size = -(-len(listed) // batch)
        parts = [listed[k * size : (k + 1) * size] for k in range(batch)]
        rows = zip(parts, scores.reshape(batch, -1), strict=True)
        error = find_largest_error(self.right)
        return [class_texts.remove_noise(part, row, error) for part, row in rows]

    def expect_rule(self, rule: Rule, expected: str | None = None, requirement: str | None = None) -> None:
        """Expect a rule to hold for the classes and the expected scores, or the scores that the server returns.

        Args:
            rule: says whether the classes fit the scores of each batch item.
            expected: describes the expected classes in the failure; by default, lists these classes.
            requirement: the requirement of the failure; None for that of the row.
        """
        if rule(self.split_items()):
            return
        server_scores = self._request_server_scores()
        if server_scores is None or not rule(self.split_items(server_scores)):
            pairs = [(part, rank_classes(row, len(part))) for part, row in self.split_items()]
            firsts = [find_first_shown_class(*pair) for pair in pairs]
            right = " and ".join(describe_classes(row, first) for (_, row), first in zip(pairs, firsts, strict=True))
            wrong_classes = " and ".join(
                describe_classes(part, first) for (part, _), first in zip(pairs, firsts, strict=True)
            )
            raise UnmetError(
                expected or f"{self.name} as the classes {right}", wrong_classes, self.reply, requirement=requirement
            )

    def _request_server_scores(self) -> Scores | None:
        """Return the scores that the server returns without classification; None if their shape or datatype is wrong.

        If the server refuses a request for JSON, which has no infinities, the output is requested as binary data.
        """
        plain = ask(self.target, self.model, self.tensors, RequestedOutput(self.name), send=self.send)
        if plain.is_refusal and not plain.is_over_grpc:
            plain = ask(self.target, self.model, self.tensors, RequestedOutput(self.name, True), send=self.send)
        output = plain.answer.output(self.name)
        array = None if output is None else output.array
        if array is None or (array.shape, array.dtype) != (self.scores.shape, self.scores.dtype):
            return None
        return array


def apply_to_items(rule: Callable[[Sequence[ClassText], Scores], bool]) -> Rule:
    """Return a rule that holds if `rule` holds for the classes and scores of each batch item."""
    return lambda items: all(rule(*item) for item in items)


def apply_to_rows(count: int, rule: Callable[[Sequence[ClassText], Scores], bool]) -> Rule:
    """Return a rule that splits one output into `count` equal rows, and holds if `rule` holds for each row."""

    def does_rule_hold(items: Sequence[Item]) -> bool:
        ((listed, scores),) = items
        size = len(listed) // count
        parts = [listed[k * size : (k + 1) * size] for k in range(count)]
        return all(rule(*pair) for pair in zip(parts, scores.reshape(count, -1), strict=True))

    return does_rule_hold


def _decode_bytes_elements(data: bytes, *, keep_complete: bool) -> list[str]:
    """Decode the BYTES elements in `data`.

    If the last element is incomplete, `keep_complete` decides: return the complete elements, or an empty list.
    """
    size, end = strings.PREFIX.size, 0
    found = []
    for start in strings.find_offsets(data):
        end = start + size + int(strings.PREFIX.unpack_from(data, start)[0])
        if end <= len(data):
            found.append(data[start + size : end].decode("utf-8", "surrogateescape"))
    return found if keep_complete or end == len(data) else []
