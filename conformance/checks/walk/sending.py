"""Send one step to the target: its earlier request, the request itself, and its concurrent requests."""

from __future__ import annotations

from conformance.checks.support.covering import Step
from conformance.checks.walk import concurrent_requests, encoding
from conformance.checks.walk.expected import (
    add_answer,
    expect_right_answer,
    expect_right_answers,
)
from conformance.checks.walk.requests import StepRequest, make_request
from conformance.checks.walk.single_factor import Walker
from conformance.expect.content_coding import decode_reply
from conformance.expect.unmet import UnmetError
from conformance.roles.model import Model
from conformance.transport.exchange import Reply
from conformance.transport.hostile_sending import ConnectionEnd, Octets
from conformance.transport.target import Target
from conformance.wire.request import Message


class Sender(Walker):
    """Sends steps to one model over HTTP."""

    __slots__ = ()
    target: Target

    def send_requests(self, step: Step, model: Model, salt: int, *, on_new_connection: bool) -> None:
        """Send the requests of a step once, and judge the answers."""
        main = make_request(step, model, salt)
        if abandoned := concurrent_requests.make_abandoned_request(step, main):
            self._send_and_reset(step, abandoned)
        elif earlier := concurrent_requests.make_earlier_request(step, main):
            reply = self.target.send_with(*earlier, fresh=on_new_connection)
            if reply.status is None:
                raise UnmetError(
                    "an answer to the earlier request, or a refusal with a 4xx status", reply.outcome(), reply
                )
            add_answer(self.answers, reply, earlier[1].body)
            on_new_connection = False
        concurrent = concurrent_requests.make_concurrent_requests(step, model, self.other, salt)
        if not concurrent:
            message = encoding.encode_message(main.message, step, self.target.settings)
            fresh = on_new_connection or step["connection"] == "fresh"
            self._expect_right_answer(
                self.target.send_with(encoding.choose_send_options(message, step), message, fresh=fresh), main
            )
            return
        all_requests = [main, *concurrent]
        messages = [encoding.encode_message(request.message, step, self.target.settings) for request in all_requests]
        replies = self.target.send_together_with(
            [encoding.choose_send_options(message, step) for message in messages], messages
        )
        expect_right_answers(replies, all_requests, self._expect_right_answer)

    def _send_and_reset(self, step: Step, message: Message) -> None:
        """Send a request on a separate connection; reset this connection within the body or before the answer."""
        octets = self.target.render_octets(message)
        if step["before"] == "cut-off":
            octets = octets[: len(octets) - len(message.body) // 2]
        self.target.send_octets(message, Octets(octets, step["before"], end=ConnectionEnd.RESET))

    def _expect_right_answer(self, reply: Reply, request: StepRequest) -> None:
        """Decode the content coding of a reply and expect the correct answer; do not judge an unknown coding."""
        try:
            decoded = decode_reply(reply) if reply.status is not None and reply.header("Content-Encoding") else reply
        except UnmetError as unmet:
            unmet.requirement = "HTTP-CODING-O"
            raise
        if decoded is not None:
            expect_right_answer(decoded, request, self.answers)
