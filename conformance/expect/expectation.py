"""Expectations: what checks ask of a reply. Each returns itself, or raises `UnmetError` with what came instead.

    expect(reply).tensors(model.expected(tensors))
    expect(reply, "BIN-HEADER-O").free_of("inference-header-missing")

An expectation looks at what it names and at nothing else, so that one fault of a server fails the checks of one
requirement: the rest of an answer is taken as it can best be understood (`wire.response.take_apart`). Where that does
not help, because the answer is not what the base protocol says, the base protocol is what is unmet (`attribution`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from conformance.expect import attribution
from conformance.expect.difference import find_difference
from conformance.expect.unmet import UnmetError
from conformance.spec.text import escape_text, format_element
from conformance.transport.exchange import Reply
from conformance.wire.response import Output
from conformance.wire.tensor import Tensor


def expect(reply: Reply, requirement: str | None = None) -> Expectation:
    """Return expectations of a reply; what is unmet is about `requirement`, or the check's first."""
    return Expectation(reply, requirement)


class Expectation:
    """What is expected of one reply."""

    def __init__(self, reply: Reply, requirement: str | None = None) -> None:
        self.reply = reply
        self.requirement = requirement

    def unmet(
        self, expected: str, actual: str, offset: int | None = None, *, requirement: str | None = None
    ) -> UnmetError:
        """Return the exception to raise; `requirement` is another one that the answer shows to be unmet."""
        return UnmetError(expected, actual, self.reply, requirement=requirement or self.requirement, offset=offset)

    def answered(self) -> Expectation:
        """A whole answer with a 2xx status came."""
        if not self.reply.succeeded:
            raise self.unmet(*_unanswered(self.reply))
        return self

    def output(self, name: str) -> Output:
        """The answer has an output of that name; return it."""
        self.answered()
        output = self.reply.answer.output(name)
        if output is None:
            about = attribution.attribute_unreadable_output(self.reply, name)
            raise self.unmet(f"an output {name}", _outputs(self.reply), requirement=about)
        return output

    def tensors(self, expected: Iterable[Tensor], *, through_json: bool | None = None) -> Expectation:
        """Each of the tensors is among the outputs, with its datatype, shape and values."""
        self.answered()
        for tensor in expected:
            found = find_difference(tensor, self.output(tensor.name), self.reply.body, through_json=through_json)
            if found:
                other = attribution.attribute_unreadable_output(self.reply, tensor.name)
                unmet = self.unmet(found.expected, found.actual, found.offset, requirement=other)
                unmet.tensor = tensor
                raise unmet
        return self

    def forms(self, forms: Mapping[str, str], asked: str = "") -> Expectation:
        """Each named output came in its form, `binary` or `json`. One with data and size, or with neither, has none.

        `asked` says what the request says of the forms.
        """
        for name, form in forms.items():
            output = self.output(name)
            actual = "binary" if output.binary else "json"
            if actual != form and not any(finding.kind in _FORMLESS for finding in output.findings):
                wanted = f"{name} as {_FORMS[form]}{asked and f' under {asked}'}"
                raise self.unmet(wanted, f"{name} as {_FORMS[actual]}")
        return self

    def free_of(self, *kinds: str) -> Expectation:
        """Taking the answer apart found nothing of these kinds."""
        self.answered()
        for finding in self.reply.answer.find_by_kind(*kinds):
            raise self.unmet(f"{finding.field}: {finding.expected}", finding.actual, finding.offset)
        return self

    def refused(self, fault: str = "") -> Expectation:
        """The request was refused for its fault: an answer came, whole, and its status says that it is an error."""
        status = self.reply.status
        if status is None or self.reply.exchange.failure:
            ended = attribution.attribute_call_end(self.reply)
            raise self.unmet("an error answer", escape_text(self.reply.outcome()), requirement=ended)
        if status < 400:
            reason = f" for {fault}" if fault else ""
            wanted = "a status other than OK" if self.reply.is_over_grpc else "a 4xx status"
            raise self.unmet(f"a refusal with {wanted}{reason}", _gist(self.reply))
        return self


# Statuses that are about the path or the method.
PATH_OR_METHOD_STATUSES = (301, 302, 303, 307, 308, 404, 405, 501)


_FORMLESS = ("data-missing", "data-and-size")  # found and judged with the sizes


_FORMS = {"binary": "binary data", "json": "JSON"}


def _unanswered(reply: Reply) -> tuple[str, str]:
    """Return what was expected of an answer that did not come, and what came."""
    if reply.is_over_grpc:
        return "an answer with the status OK", escape_text(reply.outcome())
    exchange, status = reply.exchange, reply.status
    if status is not None and 200 <= status < 300:
        return "a whole answer with a 2xx status", escape_text(f"HTTP {status}, {exchange.failure}")
    where = f" to {exchange.message.method} {exchange.message.path}" if status in PATH_OR_METHOD_STATUSES else ""
    return f"an answer with a 2xx status{where}", escape_text(reply.outcome())


def _gist(reply: Reply) -> str:
    """Return what a wrongly accepted request was answered."""
    outputs = [f"{escape_text(output.name, 60)} {escape_text(output.datatype, 20)}" for output in reply.answer.outputs]
    text = escape_text(reply.body[:120].decode("utf-8", "replace"))
    if reply.is_over_grpc:
        text = f"{len(reply.body)} bytes"
    return f"{reply.status_line} with {', '.join(outputs)}" if outputs else f"{reply.status_line}: {text or 'no body'}"


def _outputs(reply: Reply) -> str:
    """Return which outputs an answer has, or why it has none."""
    answer = reply.answer
    if answer.outputs:
        return f"outputs {', '.join(escape_text(name, 60) or '(without a name)' for name in answer.names())}"
    if answer.document is not None:
        wrong = answer.find_by_kind("outputs-missing", "outputs-invalid", "output-invalid")
        return wrong[0].described if wrong else "no outputs"
    if reply.is_over_grpc and answer.findings:
        return answer.findings[0].described
    if reply.is_over_grpc:
        return f"bytes that are no ModelInferResponse: {format_element(reply.body, 24)}"
    coding = reply.header("Content-Encoding")
    what = f"a body in the coding {escape_text(coding, 20)}" if coding else "a body that is no JSON object"
    return f"{what}: {format_element(reply.body, 24) if reply.body else 'nothing'}"
