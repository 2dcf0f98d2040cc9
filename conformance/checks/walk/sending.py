"""One step against the target: what comes before it, the request itself, and what runs beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from conformance.checks.walk import company, ways
from conformance.checks.walk.covering import Step
from conformance.checks.walk.expected import expect_own
from conformance.checks.walk.requests import Asked, asked
from conformance.expect.content_coding import uncoded
from conformance.expect.unmet import Unmet
from conformance.roles.model import Model
from conformance.transport.exchange import Reply
from conformance.transport.target import Target


@dataclass(frozen=True, slots=True)
class Sender:
    """Takes steps with one model, over HTTP.

    Attributes:
        version: gives the version of the model that its metadata list, empty where they do not; asked for once a step
            needs it.
        other: another model, for requests beside those to this one.
        answers: bodies of answers that came so far, as hashes.
    """

    target: Target
    model: Model
    other: Model | None
    version: Callable[[], str]
    answers: set[int] = field(default_factory=set)

    def take(self, step: Step, salt: int, *, anew: bool = False) -> None:
        """Take a step, on the connection of the step before or, `anew`, on a fresh one.

        Raises:
            Unmet: an answer is wrong. That to the request before is nobody's business here, as long as there is one.
        """
        model = replace(self.model, version=self.version()) if step["path"] == "version" else self.model
        main = asked(step, model, salt)
        if earlier := company.before(step, main):
            reply = self.target.send_in(*earlier, fresh=anew)
            if reply.status is None:
                raise Unmet("an answer to the request before, or a refusal with a 4xx status", reply.outcome(), reply)
            self.answers.add(hash(reply.body))
            anew = False
        beside = company.beside(step, model, self.other, salt)
        if not beside:
            message = ways.coded(main.message, step)
            fresh = anew or step["connection"] == "fresh"
            self._expect(self.target.send_in(ways.manner(message, step), message, fresh=fresh), main)
            return
        everything = [main, *beside]
        messages = [ways.coded(one.message, step) for one in everything]
        replies = self.target.send_together_in([ways.manner(message, step) for message in messages], messages)
        for reply, one in zip(replies, everything, strict=True):
            self._expect(reply, one)

    def wash(self) -> int:
        """Send a plain request on a connection of its own, which is answered or not; return its number in the check."""
        plain = self.target.message(self.target.good_requests(self.model)[0])
        return self.target.send(plain, fresh=True).exchange.number

    def _expect(self, reply: Reply, request: Asked) -> None:
        """Expect the right answer, in whatever coding it came; one that cannot be undone is judged elsewhere."""
        try:
            plain = uncoded(reply) if reply.status is not None and reply.header("Content-Encoding") else reply
        except Unmet as unmet:
            unmet.requirement = "HTTP-CODING-O"
            raise
        if plain is not None:
            expect_own(plain, request, self.answers)
