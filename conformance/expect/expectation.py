"""Expectations of checks about a reply. Each method returns the object for chaining, or raises `UnmetError`.

    expect(reply).tensors(model.expected(tensors))
    expect(reply, "BIN-HEADER-O").free_of("inference-header-missing")

An expectation examines only its subject, so that one fault of a server fails the checks of one requirement. The rest of
an answer is interpreted as well as possible (`wire.response.parse`). If the answer violates the base protocol so that
an output is unreadable, the failure is attributed to the base protocol (`attribution`).
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
    """Return the `Expectation` of a reply; failures violate `requirement`, by default the first one of the check."""
    return Expectation(reply, requirement)


class Expectation:
    """Expectations about one reply; each method raises `UnmetError` if the reply does not fulfil it."""

    def __init__(self, reply: Reply, requirement: str | None = None) -> None:
        self.reply = reply
        self.requirement = requirement

    def unmet(
        self, expected: str, actual: str, offset: int | None = None, *, requirement: str | None = None
    ) -> UnmetError:
        """Return the exception to raise; `requirement` overrides the requirement that was passed to `expect`."""
        return UnmetError(expected, actual, self.reply, requirement=requirement or self.requirement, offset=offset)

    def answered(self) -> Expectation:
        """Expect a complete answer with a 2xx status."""
        if not self.reply.succeeded:
            raise self.unmet(*_describe_failed_answer(self.reply))
        return self

    def output(self, name: str) -> Output:
        """Expect an output with this name, and return the output."""
        self.answered()
        output = self.reply.answer.output(name)
        if output is None:
            about = attribution.attribute_unreadable_output(self.reply, name)
            raise self.unmet(f"an output {name}", _describe_outputs(self.reply), requirement=about)
        return output

    def tensors(self, expected: Iterable[Tensor], *, through_json: bool | None = None) -> Expectation:
        """Expect each tensor among the outputs, with its datatype, shape and values."""
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
        """Expect each named output as binary data (`binary`) or as JSON (`json`).

        Outputs that have both data and a size, or neither, are ignored. The message shows `asked`: the
        parameters with which the request chooses the encoding.
        """
        for name, form in forms.items():
            output = self.output(name)
            actual = "binary" if output.binary else "json"
            if actual != form and not any(finding.kind in _UNKNOWN_FORM_FINDINGS for finding in output.findings):
                wanted = f"{name} as {_FORMS[form]}{asked and f' under {asked}'}"
                raise self.unmet(wanted, f"{name} as {_FORMS[actual]}")
        return self

    def free_of(self, *kinds: str) -> Expectation:
        """Expect that the parser found no violations of these kinds in the answer."""
        self.answered()
        for finding in self.reply.answer.find_by_kind(*kinds):
            raise self.unmet(f"{finding.field}: {finding.expected}", finding.actual, finding.offset)
        return self

    def refused(self, fault: str = "") -> Expectation:
        """Expect a complete answer with an error status; the message shows `fault`, the reason for a refusal."""
        status = self.reply.status
        if status is None or self.reply.exchange.failure:
            ended = attribution.attribute_missing_status(self.reply)
            raise self.unmet("an error answer", escape_text(self.reply.outcome()), requirement=ended)
        if status < 400:
            reason = f" for {fault}" if fault else ""
            wanted = "a status other than OK" if self.reply.is_over_grpc else "a 4xx status"
            raise self.unmet(f"a refusal with {wanted}{reason}", _summarize_answer(self.reply))
        return self


# Statuses that may concern the path or the method.
PATH_OR_METHOD_STATUSES = (301, 302, 303, 307, 308, 404, 405, 501)


_UNKNOWN_FORM_FINDINGS = ("data-missing", "data-and-size")  # judged together with the sizes


_FORMS = {"binary": "binary data", "json": "JSON"}


def _describe_failed_answer(reply: Reply) -> tuple[str, str]:
    """Return texts of the expected and the actual outcome of a request that has no successful answer."""
    if reply.is_over_grpc:
        return "an answer with the status OK", escape_text(reply.outcome())
    exchange, status = reply.exchange, reply.status
    if status is not None and 200 <= status < 300:
        return "a whole answer with a 2xx status", escape_text(f"HTTP {status}, {exchange.failure}")
    where = f" to {exchange.message.method} {exchange.message.path}" if status in PATH_OR_METHOD_STATUSES else ""
    return f"an answer with a 2xx status{where}", escape_text(reply.outcome())


def _summarize_answer(reply: Reply) -> str:
    """Summarize the answer to a request that the server wrongly accepted."""
    outputs = [f"{escape_text(output.name, 60)} {escape_text(output.datatype, 20)}" for output in reply.answer.outputs]
    text = escape_text(reply.body[:120].decode("utf-8", "replace"))
    if reply.is_over_grpc:
        text = f"{len(reply.body)} bytes"
    return f"{reply.status_line} with {', '.join(outputs)}" if outputs else f"{reply.status_line}: {text or 'no body'}"


def _describe_outputs(reply: Reply) -> str:
    """Return the names of an answer's outputs, or why it has none."""
    answer = reply.answer
    if answer.outputs:
        return f"outputs {', '.join(escape_text(name, 60) or '(without a name)' for name in answer.names())}"
    if answer.document is not None:
        wrong = answer.find_by_kind("outputs-missing", "outputs-invalid", "output-invalid")
        return wrong[0].described if wrong else "no outputs"
    if reply.is_over_grpc and answer.findings:
        return answer.findings[0].described
    if reply.is_over_grpc:
        return f"bytes that are not a ModelInferResponse: {format_element(reply.body, 24)}"
    coding = reply.header("Content-Encoding")
    what = f"a body in the coding {escape_text(coding, 20)}" if coding else "a body that is not a JSON object"
    return f"{what}: {format_element(reply.body, 24) if reply.body else 'nothing'}"
