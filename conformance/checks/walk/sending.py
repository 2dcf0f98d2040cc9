"""Send one step to the target: its earlier request, the request itself, and its concurrent requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from conformance.checks.support.covering import Step
from conformance.checks.walk import concurrent_requests, encoding
from conformance.checks.walk.expected import expect_own
from conformance.checks.walk.requests import StepRequest, make_request
from conformance.expect.content_coding import decode_reply
from conformance.expect.unmet import UnmetError
from conformance.roles.model import Model
from conformance.transport.exchange import Reply
from conformance.transport.hostile_sending import ConnectionEnd, Octets
from conformance.transport.target import Target
from conformance.wire.request import Message


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends steps to one model over HTTP.

    Attributes:
        version: returns the default version of the model, empty if the metadata do not list it; called only if needed.
        other: another model, for concurrent requests.
        answers: hashes of the bodies of earlier answers.
    """

    target: Target
    model: Model
    other: Model | None
    version: Callable[[], str]
    answers: set[int] = field(default_factory=set)

    def take_step(self, step: Step, salt: int, *, on_new_connection: bool = False) -> None:
        """Send a step on the previous step's connection, or on a new one, and judge the answers.

        Raises:
            Unmet: an answer is wrong, or the earlier request gets no answer; its content is not judged.
        """
        model = replace(self.model, version=self.version()) if step["path"] == "version" else self.model
        main = make_request(step, model, salt)
        if abandoned := concurrent_requests.make_abandoned_request(step, main):
            self._send_and_reset(step, abandoned)
        elif earlier := concurrent_requests.make_preceding_request(step, main):
            reply = self.target.send_with(*earlier, fresh=on_new_connection)
            if reply.status is None:
                raise UnmetError(
                    "an answer to the request before, or a refusal with a 4xx status", reply.outcome(), reply
                )
            self.answers.add(hash(reply.body))
            on_new_connection = False
        beside = concurrent_requests.make_concurrent_requests(step, model, self.other, salt)
        if not beside:
            message = encoding.encode_message(main.message, step, self.target.settings)
            fresh = on_new_connection or step["connection"] == "fresh"
            self._expect_right_answer(
                self.target.send_with(encoding.choose_send_options(message, step), message, fresh=fresh), main
            )
            return
        everything = [main, *beside]
        messages = [encoding.encode_message(one.message, step, self.target.settings) for one in everything]
        replies = self.target.send_together_with(
            [encoding.choose_send_options(message, step) for message in messages], messages
        )
        for reply, one in zip(replies, everything, strict=True):
            self._expect_right_answer(reply, one)

    def _send_and_reset(self, step: Step, message: Message) -> None:
        """Send a request on a connection of its own; reset the connection within the body or before the answer."""
        text = self.target.render_octets(message)
        if step["before"] == "cut-off":
            text = text[: len(text) - len(message.body) // 2]
        self.target.send_octets(message, Octets(text, step["before"], end=ConnectionEnd.RESET))

    def send_plain_request(self) -> int:
        """Send a plain request on a new connection and ignore its answer; return its number in the check."""
        plain = self.target.message(self.target.build_good_requests(self.model)[0])
        return self.target.send(plain, fresh=True).exchange.number

    def _expect_right_answer(self, reply: Reply, request: StepRequest) -> None:
        """Decode the content coding of a reply and expect the correct answer; unknown codings are not judged."""
        try:
            plain = decode_reply(reply) if reply.status is not None and reply.header("Content-Encoding") else reply
        except UnmetError as unmet:
            unmet.requirement = "HTTP-CODING-O"
            raise
        if plain is not None:
            expect_own(plain, request, self.answers)
