"""Expectations on the answer to a step: all that the documents require of every answer.

The expectations come in this order: an answer, its framing, its outputs, their forms, its tensors, its id. So OIP-ID is
reported only if the id alone is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from conformance.checks.support.classes import read_texts
from conformance.checks.support.framing import expect_framed
from conformance.checks.walk.requests import StepRequest
from conformance.expect import attribution, class_texts
from conformance.expect.class_texts import ClassText, Scores
from conformance.expect.difference import are_outputs_reordered, find_difference, find_largest_error
from conformance.expect.expectation import expect
from conformance.expect.unmet import UnmetError, is_met
from conformance.spec.text import escape_text, format_shape
from conformance.transport.broken_request import is_busy
from conformance.transport.exchange import Reply
from conformance.transport.target import BUSY_PAUSES_S
from conformance.wire.finding import format_value
from conformance.wire.request import ABSENT, RequestedOutput
from conformance.wire.tensor import Tensor

MAX_WAITS_IN_VAIN = 3
# Ids of earlier requests. An answer to a request without an id may have any id except these.
EARLIER_IDS = ("the-one-before", "refused-before")
# An answer with fewer different elements may be equal to another by chance; with two, if it has few in all, as of BOOL.
MIN_DIFFERENT_ELEMENTS, MIN_ELEMENTS_OF_TWO = 3, 16
MAX_COMPARED = 64  # elements of an output


@dataclass(slots=True)
class EarlierAnswers:
    """The answers before a reply.

    Attributes:
        inputs: hash of the body of an answer -> hashes of the inputs of the requests that got it.
        ids: the ids of requests that got a correct answer; no id that a server has made up itself.
    """

    inputs: dict[int, set[int]] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)


def expect_right_answers(
    replies: Sequence[Reply], requests: Sequence[StepRequest], expect_one: Callable[[Reply, StepRequest], None]
) -> None:
    """Expect the correct answers to requests that were in flight at the same time.

    A wrong answer is judged again after the others, because it may repeat the correct answer to a later request. A
    server may turn away some of several requests (429 or 503, or the gRPC codes that mean the same).
    """
    is_alone = len(requests) == 1
    pairs = [pair for pair in zip(replies, requests, strict=True) if is_alone or not is_busy(pair[0])]
    wrong = [pair for pair in pairs if not is_met(partial(expect_one, *pair))]
    for pair in wrong:
        expect_one(*pair)


@dataclass(frozen=True, slots=True)
class BusyWaits:
    """Sends a step again, after a pause, while the server is busy, so that no step fails for a limit of the rate.

    Attributes:
        pause: waits for so many seconds.
        in_vain: the failures of steps for which all pauses were in vain; after some, no step is sent again.
    """

    pause: Callable[[float], None]
    in_vain: list[UnmetError] = field(default_factory=list)

    def send(self, send_once: Callable[[], None]) -> None:
        """Send a step with `send_once`, and again while it fails because the server is busy.

        Raises UnmetError: an answer is wrong, or the server stays busy.
        """
        pauses = (*BUSY_PAUSES_S, None) if len(self.in_vain) < MAX_WAITS_IN_VAIN else (None,)
        for pause_s in pauses:
            try:
                return send_once()
            except UnmetError as unmet:
                if unmet.reply is None or not is_busy(unmet.reply):
                    raise
                if pause_s is None:
                    self.in_vain.append(unmet)
                    raise
                self.pause(pause_s)
        return None


def expect_right_answer(reply: Reply, step_request: StepRequest, answers: EarlierAnswers) -> None:
    """Expect the correct answer to a request; if a wrong answer repeats an earlier one, report OIP-ISOLATION.

    `reply`: the reply to the request, with its content coding removed.
    `answers`: the earlier answers; a correct answer is added.

    Raises UnmetError: the answer is wrong; see `expect_correct_answer`.
    """
    try:
        expect_correct_answer(reply, step_request)
    except UnmetError as unmet:
        if _is_repeated(reply, step_request, answers, is_id_alone_wrong=unmet.requirement == "OIP-ID"):
            unmet.requirement = "OIP-ISOLATION"
        raise
    add_answer(answers, reply, b"".join(tensor.to_bytes() for tensor in step_request.tensors))
    if isinstance(sent := _get_sent_id(step_request), str):
        answers.ids.add(sent)


def add_answer(answers: EarlierAnswers, reply: Reply, inputs: bytes) -> None:
    """Add an answer to the earlier answers; `inputs` are those of its request, in any encoding."""
    answers.inputs.setdefault(hash(reply.body), set()).add(hash(inputs))


def _is_repeated(reply: Reply, step_request: StepRequest, answers: EarlierAnswers, *, is_id_alone_wrong: bool) -> bool:
    """Say whether a wrong answer is that of one earlier request, and of no other, and equal to it by no chance.

    An answer that contradicts itself is wrong for that reason. A deployed model of few answers repeats them by itself.
    If only the id is wrong, the answer is another's if it has the id of that request.
    """
    if is_id_alone_wrong:
        found = (reply.answer.document or {}).get("id")
        return isinstance(found, str) and found in answers.ids and hash(reply.body) in answers.inputs
    is_contradictory = any(output.findings for output in reply.answer.outputs)
    has_few_answers = step_request.model.is_deployed and any(len(inputs) > 1 for inputs in answers.inputs.values())
    is_of_one = len(answers.inputs.get(hash(reply.body), ())) == 1
    return reply.succeeded and is_of_one and not (is_contradictory or has_few_answers) and _is_telling(reply)


def _is_telling(reply: Reply) -> bool:
    """Say whether an answer has so many elements, of the first few in each output, that it is equal to no other."""
    arrays = [output.array.reshape(-1)[:MAX_COMPARED] for output in reply.answer.outputs if output.array is not None]
    elements = [repr(element) for array in arrays for element in array.tolist()]
    different = len(set(elements))
    return different >= MIN_DIFFERENT_ELEMENTS or (different == 2 and len(elements) >= MIN_ELEMENTS_OF_TWO)


def expect_correct_answer(reply: Reply, step_request: StepRequest) -> None:
    """Expect the correct answer to a request, without advice: advice that is not followed would hide later faults.

    Raises:
        UnmetError: the answer is wrong. Its `requirement` is set if the answer alone shows which requirement is broken.
    """
    expect(reply).answered()
    if not reply.is_over_grpc:
        expect_framed(reply, is_advised=False)
    _expect_outputs(reply, step_request)
    if not reply.is_over_grpc:
        _expect_forms(reply, step_request)
    classified = {
        output.name: output for output in step_request.request.outputs or () if output.classification is not ABSENT
    }
    for tensor in step_request.expected:
        if tensor.name in classified:
            _expect_classes(reply, step_request, classified[tensor.name], tensor)
        elif tensor.name in step_request.forms:
            _expect_tensor(reply, step_request, tensor)
    _expect_id(reply, step_request)


def _expect_outputs(reply: Reply, step_request: StepRequest) -> None:
    """Expect all requested outputs; other checks judge further outputs."""
    for name in step_request.forms:
        expect(reply).output(name)


def _expect_forms(reply: Reply, step_request: StepRequest) -> None:
    wanted = {name: form for name, form in step_request.forms.items() if form}
    expect(reply, _attribute_forms(step_request)).forms(wanted)
    for name, form in wanted.items():
        output = reply.answer.output(name)
        if form == "json" and output is not None and output.findings:
            finding = output.findings[0]
            if finding.kind in ("data-missing", "data-and-size"):
                raise UnmetError(finding.expected, finding.actual, reply, requirement="BIN-DATA-WITHOUT-SIZE")


def _attribute_forms(step_request: StepRequest) -> str:
    """Return the requirement that specifies the form of the outputs for this request."""
    request = step_request.request
    if step_request.is_raw:
        return "RAW-OUTPUTS"
    if request.outputs is None:
        default = request.binary_data_output
        return "BIN-ALL-UNSET" if default is ABSENT else "BIN-ALL-TRUE" if default else "BIN-ALL-FALSE"
    if any(output.classification is not ABSENT for output in request.outputs):
        return "CLS-BINARY"
    flags = {output.binary_data for output in request.outputs if output.binary_data is not ABSENT}
    if len(flags) > 1:
        return "BIN-MIXED-O"
    if not flags:
        return "BIN-OUTPUT-UNSET"
    if request.binary_data_output is True:
        return "BIN-FALSE-OVERRIDES"
    return "BIN-OUTPUT-TRUE" if flags == {True} else "BIN-OUTPUT-FALSE"


def _get_sent_id(step_request: StepRequest) -> Any:
    return None if step_request.is_raw else step_request.request.id


def _expect_id(reply: Reply, step_request: StepRequest) -> None:
    sent = _get_sent_id(step_request)
    found = (reply.answer.document or {}).get("id")
    if found in EARLIER_IDS:
        raise UnmetError("no id of an earlier request", f"id {format_value(found)}", reply, requirement="OIP-ISOLATION")
    if sent is not None and found != sent:
        raise UnmetError(
            f"id {format_value(sent)}", f"id {format_value(found)}" if found else "no id", reply, requirement="OIP-ID"
        )


def _expect_tensor(reply: Reply, step_request: StepRequest, tensor: Tensor) -> None:
    by_json = any(not item.binary for item in step_request.request.inputs)
    through_json = False if reply.is_over_grpc else True if by_json and not step_request.is_raw else None
    found = find_difference(tensor, reply.answer.output(tensor.name), reply.body, through_json=through_json)
    if found:
        other = attribution.attribute_unreadable_output(reply, tensor.name)
        if (
            other is None
            and _are_inputs_in_declared_order(step_request)
            and are_outputs_reordered(step_request.expected, reply)
        ):
            other = "BIN-ORDER-O"
        raise UnmetError(found.expected, found.actual, reply, requirement=other, offset=found.offset, tensor=tensor)


def _are_inputs_in_declared_order(step_request: StepRequest) -> bool:
    """Say whether the inputs are in declared order and all have one form, so that the server cannot confuse them."""
    sent = [(item.tensor.name, item.binary) for item in step_request.request.inputs]
    return sent == [(tensor.name, sent[0][1]) for tensor in step_request.tensors]


# --- classes --------------------------------------------------------------------------------------------------------


def _expect_classes(reply: Reply, step_request: StepRequest, requested_output: RequestedOutput, scores: Tensor) -> None:
    """Expect an output to contain classes: strings in an allowed shape, with a ranking for each batch item."""
    output, batching = expect(reply).output(scores.name), step_request.model.role.batching
    count = int(requested_output.classification)
    if output.datatype not in class_texts.CLASS_DATATYPES:
        requirement = "CLS-PARAMETER" if output.datatype == scores.datatype else "CLS-TYPE"  # not classified at all
        raise UnmetError(
            f"{scores.name} BYTES", f"datatype {escape_text(output.datatype, 20)}", reply, requirement=requirement
        )
    allowed = _list_allowed_shapes(scores, count, batching=batching)
    if output.shape is None or output.shape not in allowed:
        requirement, shape = "CLS-SHAPE-BATCH" if batching else "CLS-SHAPE", next(iter(allowed))
        raise UnmetError(f"shape {list(shape)}", format_shape(output.shape), reply, requirement=requirement)
    items, count = allowed[output.shape]
    texts = read_texts(reply, scores.name)
    if len(texts) != items * count:
        raise UnmetError(f"{items * count} classes", f"{len(texts)} classes", reply, requirement="CLS-COUNT")
    labels = step_request.model.find_labels(scores.name)
    rows, error = list(scores.array.reshape(items, -1)), find_largest_error(scores)
    for item, row in enumerate(rows):
        others = [other for other in rows if other is not row]
        _expect_ranking(reply, texts[item * count : (item + 1) * count], row, labels, others, error)


def _list_allowed_shapes(scores: Tensor, count: int, *, batching: bool) -> Mapping[tuple[int, ...], tuple[int, int]]:
    """Return each allowed shape of the classes -> the number of rankings, and the number of classes in each ranking.

    For a model that does not batch, the batch dimension is 1 or missing, and a matrix has one ranking, or one for each
    row. Other checks judge which of the allowed shapes the documents recommend.
    """
    items = scores.shape[0] if scores.shape else 1
    if batching:
        return {(items, count): (items, count)}
    whole = {(count,): (1, count), (1, count): (1, count)}
    in_row = min(count, scores.elements // max(items, 1))
    return {(items, in_row): (items, in_row), **whole} if len(scores.shape) > 1 else whole


def _expect_ranking(
    reply: Reply,
    texts: Sequence[str],
    scores: Scores,
    labels: Sequence[str] | None,
    others: Sequence[Scores],
    tolerance: float,
) -> None:
    """Expect the highest scores of a batch item in descending order, with indices and labels.

    `labels` is None if the labels are unknown; `others` are the scores of the other batch items; `tolerance` is that of
    the scores.
    """
    try:
        listed = [class_texts.parse(text) for text in texts]
    except class_texts.ClassTextError as error:
        raise UnmetError("value:index or value:index:label", str(error), reply, requirement="CLS-FORMAT") from None
    for entry in listed:
        label = _find_label(labels, entry)
        if entry.label != label:
            requirement = "CLS-NO-LABEL" if label is None else "CLS-LABEL"
            actual = "no label" if entry.label is None else format_value(entry.label)
            raise UnmetError(
                f"label {format_value(label)} at index {entry.index}", actual, reply, requirement=requirement
            )
    classes, scores = class_texts.remove_noise(listed, scores, tolerance)
    ranked = class_texts.has_matching_indices(classes, scores) and class_texts.is_ordered_without_repeats(
        classes, scores
    )
    if not ranked:
        requirement = _attribute_ranking(classes, scores, others)
        raise UnmetError(
            _format_right_classes(scores, len(classes)), _format_classes(classes), reply, requirement=requirement
        )


def _find_label(labels: Sequence[str] | None, entry: ClassText) -> str | None:
    """Return the expected label of a class; if the labels are unknown, the label that the class has."""
    if labels is None:
        return entry.label
    return labels[entry.index] if entry.index < len(labels) else None


def _attribute_ranking(listed: Sequence[ClassText], scores: Scores, others: Sequence[Scores]) -> str:
    """Return the requirement that the wrong classes of a batch item break."""
    if any(class_texts.has_matching_indices(listed, other) for other in others):
        return "CLS-BATCH"
    if class_texts.has_highest_values(listed, scores):
        return "CLS-INDEX"
    if class_texts.are_highest(class_texts.find_scores_by_index(listed, scores), scores):
        return "CLS-VALUE"
    return "CLS-HIGHEST"


def _format_right_classes(scores: Scores, count: int) -> str:
    values = class_texts.to_python_numbers(scores)
    return f"classes {', '.join(f'{values[at]}:{at}' for at in class_texts.find_highest(scores, min(count, 4)))}"


def _format_classes(listed: Sequence[ClassText]) -> str:
    return escape_text(", ".join(f"{entry.value}:{entry.index}" for entry in listed[:4]), 200)
