"""Judges the requests of watched clients as they arrive, and returns check results for each client.

There is a check for each requirement that can be judged from a request alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from conformance.clients.answer_reactions import AnswerReactions
from conformance.clients.recording.records import RecordedExchange
from conformance.clients.rules.judging import judge_request
from conformance.clients.rules.rule import RuleResults, Violation
from conformance.spec import ledger
from conformance.spec.extensions import GRPC, HTTP
from conformance.spec.ledger import GRPC_SUFFIX, Requirement, get_requirement
from conformance.spec.outcome import UNMET_OUTCOMES, Outcome, Reason, ReasonKind
from conformance.spec.result import CheckResult, Failure
from conformance.spec.text import escape_text

_CHECK: Final = "client.watched-"
_GRPC_SUFFIX: Final = "-over-grpc"
CLAIM: Final = "Every request of this client that this requirement is about meets it."

# Omits requirements that need the intent of the caller or the result that the client returns. The last two are observed
# and never fail.
CLAIMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "CLIENT-SENDS-POST": "request-is-a-post-to-its-model",
        "CLIENT-SENDS-WHOLE": "body-is-as-long-as-it-says",
        "CLIENT-SENDS-CODING": "announced-coding-is-applied",
        "CLIENT-SENDS-CONTENT-TYPE": "content-type-fits-the-form",
        "CLIENT-SENDS-JSON": "json-is-valid",
        "CLIENT-SENDS-MEMBER-ONCE": "members-stand-once",
        "CLIENT-SENDS-MEMBERS": "request-has-its-members",
        "CLIENT-SENDS-PARAMETERS": "parameters-have-their-types",
        "CLIENT-SENDS-PARAMETERS-PLACE": "parameters-stand-in-their-place",
        "CLIENT-SENDS-CLASSIFICATION": "classification-is-a-count",
        "CLIENT-SENDS-CLASSIFICATION-PLACE": "classification-stands-in-its-place",
        "CLIENT-SENDS-DATA": "data-fit-the-shape",
        "CLIENT-SENDS-ELEMENTS": "elements-fit-the-datatype",
        "CLIENT-SENDS-BOOL-JSON": "bool-elements-are-true-or-false",
        "CLIENT-SENDS-FP16": "half-floats-are-binary",
        "CLIENT-SENDS-HEADER": "binary-data-have-the-header",
        "CLIENT-SENDS-HEADER-LENGTH": "header-counts-the-json",
        "CLIENT-SENDS-HEADER-ON-JSON": "header-without-binary-data-counts-the-json",
        "CLIENT-SENDS-SIZE": "sizes-fit-shape-and-datatype",
        "CLIENT-SENDS-SIZES-FILL": "sizes-fill-the-body",
        "CLIENT-SENDS-ORDER": "binary-data-follow-the-json",
        "CLIENT-SENDS-BYTES": "bytes-elements-have-their-lengths",
        "CLIENT-SENDS-BOOL": "bool-elements-are-0-or-1",
        "CLIENT-SENDS-DATA-OR-SIZE": "an-input-has-data-or-a-size",
        "CLIENT-SENDS-RAW": "raw-request-is-one-tensor",
        "CLIENT-SENDS-ONE-FORM": "contents-have-one-form",
        "CLIENT-REPEATS": "requests-come-again-after-an-error",
        "CLIENT-LEAVES": "answers-are-left-with-a-reset",
    }
)


def get_check_id(requirement: str) -> str:
    """Return the id of the check that judges a requirement."""
    name = requirement.removesuffix(GRPC_SUFFIX)
    return f"{_CHECK}{CLAIMS[name]}{_GRPC_SUFFIX if requirement != name else ''}"


def is_watched(check: str) -> bool:
    """Whether a check is for watched clients."""
    return check.startswith(_CHECK)


def list_requirements(transport: str) -> list[Requirement]:
    """Return the requirements judged over a transport, in the order of the ledger."""
    watched = [entry for entry in ledger.load_for_party(ledger.Party.CLIENT) if entry.name in CLAIMS]
    return [entry for entry in watched if entry.transport == transport]


UNNAMED: Final = "unnamed"
OTHERS: Final = "others"
MAX_CLIENTS: Final = 100  # further clients are counted together as `OTHERS`
MAX_NAME_CHARS: Final = 80
# The only requirements that are judged on a request whose body was too long to keep.
HEAD_ONLY_REQUIREMENTS: Final = ("CLIENT-SENDS-POST",)

Describe = Callable[[RecordedExchange, Violation], Failure]


@dataclass(slots=True)
class Tally:
    """The counts of one requirement with one client.

    Attributes:
        judged: number of requests that the requirement applies to; `missed`: those that violate it.
        number: number of the first request that violates it; `failure`: its description, once it is answered.
    """

    judged: int = 0
    missed: int = 0
    number: int = 0
    failure: Failure | None = None


@dataclass(slots=True)
class Sender:
    """One client.

    Attributes:
        requests: number of inference requests, by transport.
        by_head: number of requests that were too long to be judged completely.
        tallies: the counts, by requirement.
        reactions: how the client reacts to answers.
    """

    name: str
    requests: dict[str, int] = field(default_factory=dict)
    by_head: int = 0
    tallies: dict[str, Tally] = field(default_factory=dict)
    reactions: AnswerReactions = field(default_factory=AnswerReactions)

    @property
    def count(self) -> int:
        """The number of inference requests that the client sent."""
        return sum(self.requests.values())


@dataclass(frozen=True, slots=True)
class FirstViolation:
    """The first request of a client that violates a requirement.

    Attributes:
        outcome: the outcome that results from the violation.
    """

    client: str
    recorded: RecordedExchange
    miss: Violation
    outcome: Outcome
    failure: Failure | None = None


class Traffic:
    """Judges requests of any number of clients, one after the other.

    Attributes:
        clients: by name, in the order of their first requests.

    Args:
        describe: makes the failure that describes a violation.
        header: the header that names a client, instead of its user agent.
        strict: whether advisory requirements fail as well.
    """

    def __init__(self, describe: Describe, header: str | None = None, *, strict: bool = False) -> None:
        self.clients: dict[str, Sender] = {}
        self._describe = describe
        self._header = header or "user-agent"
        self._strict = strict
        self._open: dict[int, list[FirstViolation]] = {}  # by the number of the request
        self._senders: dict[int, Sender] = {}  # likewise, until the answer has come

    def get_client_name(self, recorded: RecordedExchange) -> str:
        """Return the name of the client that sent a request."""
        return escape_text(recorded.received.header(self._header) or UNNAMED, MAX_NAME_CHARS)

    def add_request(self, recorded: RecordedExchange, client: str | None = None) -> list[FirstViolation]:
        """Judge a request if it is an inference request.

        Args:
            recorded: the request.
            client: the name of its client, if already known.

        Returns:
            The violations that no earlier request of this client had.
        """
        received = recorded.received
        if not received.is_inference:
            return []
        sender = self._get_sender(client or self.get_client_name(recorded))
        transport = GRPC if received.is_over_grpc else HTTP
        sender.requests[transport] = sender.requests.get(transport, 0) + 1
        sender.by_head += not recorded.is_whole
        sender.reactions.note_request(recorded)
        self._senders[recorded.number] = sender
        first = [
            FirstViolation(sender.name, recorded, miss, self.get_outcome(get_requirement(miss.requirement)))
            for miss in _count_requirements(sender, recorded)
        ]
        if first:
            self._open[recorded.number] = first
        return first

    def add_answer(self, recorded: RecordedExchange) -> list[FirstViolation]:
        """Describe the first violations of a request, now that it is answered; return them with their failures."""
        described = []
        if sender := self._senders.pop(recorded.number, None):
            sender.reactions.note_answer(recorded)
        for first in self._open.pop(recorded.number, ()):
            failure = self._describe(recorded, first.miss)
            self.clients[first.client].tallies[first.miss.requirement].failure = failure
            described.append(replace(first, failure=failure))
        return described

    def add_reset(self, recorded: RecordedExchange, client: str | None = None) -> None:
        """Note that a client reset the connection after the answer to this request."""
        if recorded.received.is_inference:
            self._get_sender(client or self.get_client_name(recorded)).reactions.note_reset(recorded)

    def get_outcome(self, entry: Requirement) -> Outcome:
        """Return the outcome of a request that violates a requirement."""
        outcome = UNMET_OUTCOMES[entry.level]
        return Outcome.FAIL if self._strict and outcome is Outcome.ADVISORY else outcome

    def count_unmet(self, sender: Sender) -> Counter[Outcome]:
        """Return the number of requirements that a client violates, by outcome."""
        missed = [name for name, tally in sender.tallies.items() if tally.missed]
        return Counter(self.get_outcome(get_requirement(name)) for name in missed)

    def list_results(self) -> Sequence[CheckResult]:
        """Return a result for each client and each requirement of the transports that it used."""
        for found in [first[0].recorded for first in self._open.values()]:
            self.add_answer(found)
        return [
            self._build_result(sender, entry)
            for sender in self.clients.values()
            for transport in (HTTP, GRPC)
            if transport in sender.requests
            for entry in list_requirements(transport)
        ]

    def _get_sender(self, name: str) -> Sender:
        if name not in self.clients and len(self.clients) >= MAX_CLIENTS:
            name = OTHERS
        return self.clients.setdefault(name, Sender(name))

    def _build_result(self, sender: Sender, entry: Requirement) -> CheckResult:
        tally = sender.tallies.get(entry.id, Tally())
        found = CheckResult(
            get_check_id(entry.id),
            sender.name,
            CLAIM,
            entry.area,
            entry.extension,
            Outcome.PASS,
            [entry.id],
            exchanges=0,
        )
        if observation := sender.reactions.describe(entry.id):
            return replace(found, outcome=Outcome.OBSERVED, observation=observation)
        if not tally.judged:
            reason = Reason(ReasonKind.NOT_FOR_THIS_TARGET)
            message = "no request of this client involves this requirement"
            return replace(found, outcome=Outcome.NOT_APPLICABLE, message=message, reason=reason)
        if not tally.missed or tally.failure is None:
            return found
        return replace(
            found, outcome=self.get_outcome(entry), message=_format_message(tally, tally.failure), failure=tally.failure
        )


def _format_message(tally: Tally, failure: Failure) -> str:
    requests = f"{tally.judged} request{'' if tally.judged == 1 else 's'}"
    return (
        f"expected {failure.expected}, got {failure.actual} "
        f"({tally.missed} of {requests}, request {tally.number} the first of them)"
    )


def _count_requirements(sender: Sender, recorded: RecordedExchange) -> Iterator[Violation]:
    """Count the requirements that a request meets and violates; yield the first violations of this client."""
    found = _judge_exchange(recorded)
    missed = {miss.requirement for miss in found.misses}
    for name in dict.fromkeys([*found.met, *missed]):
        tally = sender.tallies.setdefault(name, Tally())
        tally.judged += 1
        tally.missed += name in missed
    for miss in found.misses:
        tally = sender.tallies[miss.requirement]
        if not tally.number:
            tally.number = recorded.number
            yield miss


def _judge_exchange(recorded: RecordedExchange) -> RuleResults:
    found = judge_request(recorded.received)
    if recorded.is_whole:
        return found
    misses = tuple(miss for miss in found.misses if miss.requirement in HEAD_ONLY_REQUIREMENTS)
    return RuleResults(tuple(name for name in found.met if name in HEAD_ONLY_REQUIREMENTS), misses)
