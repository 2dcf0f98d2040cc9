"""Compare the classes in answers to golden cases, and find the requirement that wrong classes break.

A golden case combines several features: classes of a batch, more classes than exist, FP16 scores, binary data. If its
classes are wrong, simpler requests with the same tensors are sent. If one of those fails as well, the row is blocked.
If all are right, the requirement on the feature that the case adds is unmet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from conformance.checks.support import classes
from conformance.checks.support.controls import expect_outputs, is_side_right
from conformance.expect import class_texts
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, UnmetError, is_met
from conformance.roles.golden_requests import Case, ExpectedClass
from conformance.roles.golden_requests import ExpectedOutput as Expected
from conformance.roles.model import Model
from conformance.spec.text import escape_text, format_shape
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.json_text import parse_json
from conformance.wire.request import Form, RequestedOutput
from conformance.wire.tensor import Tensor

# --- a list of classes -----------------------------------------------------------------------------------------------


def expect_classes(model: Model, reply: Reply, output: Expected, *, is_shape_advised: bool = True) -> None:
    """Expect the classes of an output, in order; the first difference decides which requirement is unmet.

    With `is_shape_advised`, also give the advice that a model without batching should add no batch dimension.
    """
    right = output.classes or ()
    found = expect(reply, "CLS-PARAMETER").output(output.name)
    shape = "CLS-SHAPE-BATCH" if model.role.batching else "CLS-SHAPE"
    texts = classes.read_texts(reply, output.name)
    if found.datatype not in class_texts.CLASS_DATATYPES:
        raise UnmetError("datatype BYTES", f"datatype {escape_text(found.datatype, 40)}", reply, requirement="CLS-TYPE")
    if len(texts) != len(right):
        _raise_difference(reply, f"{len(right)} classes", f"{len(texts)} classes", "CLS-COUNT")
    has_batch_of_one = not model.role.batching and found.shape == (
        1,
        *output.shape,
    )  # the prose adds a batch dimension of 1
    if not (has_batch_of_one or found.shape == output.shape) or math.prod(output.shape) != len(texts):
        _raise_difference(reply, format_shape(output.shape), format_shape(found.shape), shape)
    for text, wanted in zip(texts, right, strict=True):
        requirement = _attribute_class(text, wanted, right)
        if requirement:
            _raise_difference(reply, _format_class(wanted), text, requirement)
    if has_batch_of_one and is_shape_advised:
        _raise_difference(reply, format_shape(output.shape), format_shape(found.shape), "CLS-SHAPE-SHOWN")


def _raise_difference(reply: Reply, expected: str, actual: str, requirement: str) -> None:
    raise UnmetError(escape_text(expected, 120), escape_text(actual, 120), reply, requirement=requirement)


def _attribute_class(text: str, expected: ExpectedClass, right: Sequence[ExpectedClass]) -> str | None:
    """Return the requirement that one class breaks, or None if the class is right.

    A class that is right but at the wrong rank breaks CLS-HIGHEST.
    """
    try:
        found = class_texts.parse(text)
    except class_texts.ClassTextError:
        return "CLS-FORMAT"
    value, index = class_texts.is_same_value(found.value, expected.value), found.index == expected.index
    if not index and any((item.index, float(item.value)) == (found.index, float(found.value)) for item in right):
        return "CLS-HIGHEST"
    if not (value and index):
        return "CLS-INDEX" if value else "CLS-VALUE" if index else "CLS-HIGHEST"
    if found.label == expected.label:
        return None
    return "CLS-LABEL" if expected.label is not None else "CLS-NO-LABEL"


def _format_class(right: ExpectedClass) -> str:
    return f"{right.value}:{right.index}" + ("" if right.label is None else f":{right.label}")


# --- simpler requests ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _CaseRequest:
    """The request of a golden case, with methods that send simpler requests.

    `is_binary`: whether the answer contained some of these outputs as binary data.
    """

    target: Target
    case: Case
    model: Model
    tensors: Sequence[Tensor]
    classified: Sequence[Expected]
    is_binary: bool

    @property
    def send(self) -> Form:
        """The form of the inputs in all requests: the form in the golden case, since a server may support only JSON."""
        return "binary" if self.case.parts else "json"

    def expect_plain(self, want: Form, other: Model | None = None) -> None:
        """Expect correct outputs without classification in the form `want`, from the model of the case or `other`."""
        model, tensors = (self.model, self.tensors) if other is None else (other, other.sample())
        names = [spec.name for spec in model.role.outputs]
        binary = want if want == "binary" else None
        reply = self.target.infer(model.request(tensors, send=self.send, want=binary, outputs=names))
        expect_outputs(reply, model, tensors)
        expect(reply).forms(dict.fromkeys(names, want))

    def expect_classes(self, *outputs: Expected, model: Model | None = None, tensors: Sequence[Tensor] = ()) -> None:
        """Expect the classes of these outputs as JSON, for the model and inputs of the case or for other ones."""
        model, tensors = model or self.model, tensors or self.tensors
        wanted = [RequestedOutput(item.name, classification=item.shape[-1]) for item in outputs]
        reply = self.target.infer(model.request(tensors, send=self.send, outputs=wanted))
        for output in outputs:
            expect_classes(model, reply, output, is_shape_advised=False)

    def expect_strings_returned(self, output: Expected) -> None:
        """Expect an identity model to return the strings of these classes unchanged as binary data."""
        model = self.target.model("identity_bytes" if len(output.shape) == 1 else "rank2_bytes")
        array = np.array([_format_class(item).encode() for item in output.classes or ()], object).reshape(output.shape)
        if model and not is_side_right(self.target, model, [Tensor("INPUT", "BYTES", output.shape, array)], "written"):
            raise UnmetError("the strings of the classes", "other strings")


def attribute_unmet(target: Target, case: Case, model: Model, unmet: UnmetError) -> None:
    """Attribute a failure to the requirement on the feature that simpler requests lack.

    Raises BlockedError: the answer to a simpler request is wrong as well.
    """
    classified = [output for output in case.outputs if output.classes is not None]
    names = {output.name for output in classified}
    if not classified or not (unmet.requirement or "").startswith("CLS-"):
        return
    answer = unmet.reply.answer if unmet.reply else None
    is_binary = answer is not None and any(item.binary for item in answer.outputs if item.name in names)
    case_request = _CaseRequest(target, case, model, list(list_inputs(case)), classified, is_binary)
    for description, expect_correct in _list_simpler_requests(case_request):
        if not is_met(expect_correct):
            raise BlockedError(f"the server also gives a wrong answer to a simpler request: {description}", unmet)
    requirement, replaced = _find_added_feature(case_request)
    if unmet.requirement in replaced:
        unmet.requirement = requirement


def _list_simpler_requests(case_request: _CaseRequest) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield requests that are simpler than the request of a case: a description, and a function that sends it.

    The function raises `UnmetError` if the answer is wrong.
    """
    if case_request.send == "binary" or case_request.is_binary:
        yield "outputs as binary data without classes", partial(case_request.expect_plain, "binary")
    if case_request.model.role.is_json_capable:
        yield "outputs as JSON without classes", partial(case_request.expect_plain, "json")
    if case_request.is_binary:
        for output in case_request.classified:
            yield "the strings of the classes as a BYTES output", partial(case_request.expect_strings_returned, output)
    yield from _list_simpler_classifications(case_request)


def _list_simpler_classifications(case_request: _CaseRequest) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield requests for each classification that a case combines: pairs as in `_list_simpler_requests`."""
    first, tensor = case_request.classified[0], case_request.tensors[0]
    count = first.shape[-1]
    for k in range(tensor.shape[0] if case_request.model.role.batching else 0):
        array = tensor.array[k : k + 1]
        item = Tensor(tensor.name, tensor.datatype, array.shape, array)
        alone = replace(first, shape=(1, count), classes=(first.classes or ())[k * count : (k + 1) * count])
        yield f"the classes of batch item {k} alone", partial(case_request.expect_classes, alone, tensors=[item])
    if "CLS-COUNT-ABOVE" in case_request.case.requirements:
        yield "exactly as many classes as exist", partial(case_request.expect_classes, first)
    if "CLS-FP16" in case_request.case.requirements and (wide := case_request.target.model("identity_fp32")):
        same = Tensor.from_values(tensor.name, "FP32", tensor.array.astype("<f4"))
        yield (
            "the classes of the same scores in FP32",
            partial(case_request.expect_classes, first, model=wide, tensors=[same]),
        )
    if case_request.is_binary and len(case_request.case.outputs) > 1 and (mixed := case_request.target.model("multi")):
        yield "several outputs as binary data", partial(case_request.expect_plain, "binary", mixed)
    for output in case_request.classified if len(case_request.classified) > 1 else ():
        yield f"the classes of {output.name} alone", partial(case_request.expect_classes, output)
    if case_request.is_binary:
        yield "the same classes as JSON", lambda: case_request.expect_classes(*case_request.classified)


# Requirements on the members of a list of classes, and all requirements that a list can break.
LIST_REQUIREMENTS = {"CLS-HIGHEST", "CLS-INDEX", "CLS-VALUE", "CLS-COUNT"}
_ALL_REQUIREMENTS = {
    *LIST_REQUIREMENTS,
    "CLS-SHAPE",
    "CLS-SHAPE-BATCH",
    "CLS-PARAMETER",
    "CLS-TYPE",
    "CLS-FORMAT",
    "CLS-LABEL",
    "CLS-NO-LABEL",
}


def _find_added_feature(case_request: _CaseRequest) -> tuple[str, set[str]]:
    """Return the requirement on the feature that simpler requests lack, and the requirements that it replaces.

    If a failure has one of these requirements, it is reported under the requirement on the feature instead.
    """
    if case_request.is_binary:
        return "CLS-BINARY", _ALL_REQUIREMENTS
    for requirement, replaced in (
        ("CLS-FP16", _ALL_REQUIREMENTS),
        ("CLS-COUNT-ABOVE", {*LIST_REQUIREMENTS, "CLS-SHAPE"}),
        ("CLS-BATCH", LIST_REQUIREMENTS),
    ):
        if requirement in case_request.case.requirements:
            return requirement, replaced
    return "CLS-PARAMETER", LIST_REQUIREMENTS if len(case_request.classified) > 1 else set()


def list_inputs(case: Case) -> Iterator[Tensor]:
    """Yield the inputs of a golden case, from the JSON in its body and the description of its binary data."""
    parts = {part.name: part for part in case.parts}
    document, _ = parse_json(case.body[: case.json_length])
    for item in document["inputs"] if isinstance(document, dict) else ():
        part = parts.get(item["name"])
        values = item["data"] if part is None else list(part.values or ())
        yield Tensor.from_values(item["name"], item["datatype"], values, item["shape"])
