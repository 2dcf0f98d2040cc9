"""Judges the requests of watched clients as they arrive, and returns check results for each client.

A watched client sends its own requests through the recording proxy, without an adapter. There is one check for each
requirement that can be judged from a request alone.
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
CLAIM: Final = "Every request of this client meets this requirement, if the requirement applies to the request."

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
    """Return the id of the check that judges a requirement for watched clients."""
    name = requirement.removesuffix(GRPC_SUFFIX)
    return f"{_CHECK}{CLAIMS[name]}{_GRPC_SUFFIX if requirement != name else ''}"


def is_watch_check(check: str) -> bool:
    """Whether an id belongs to a check for watched clients."""
    return check.startswith(_CHECK)


def list_requirements(transport: str) -> list[Requirement]:
    """Return the requirements judged for watched clients over a transport, in the order of the ledger."""
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
    """The counts of one requirement for one client.

    Attributes:
        first_number: the number of the first request that violates the requirement; 0 if none does.
        failure: the description of that request, once it is answered.
    """

    judged: int = 0
    violated: int = 0
    first_number: int = 0
    failure: Failure | None = None


@dataclass(slots=True)
class Sender:
    """A watched client, with the counts of its requests.

    Attributes:
        name: the name from the header that identifies clients, or `OTHERS`.
        requests: transport -> number of inference requests.
        too_long: how many requests were too long to store, so that only their heads were judged.
        tallies: requirement -> counts.
    """

    name: str
    requests: dict[str, int] = field(default_factory=dict)
    too_long: int = 0
    tallies: dict[str, Tally] = field(default_factory=dict)
    reactions: AnswerReactions = field(default_factory=AnswerReactions)

    @property
    def count(self) -> int:
        """The number of inference requests that the client sent."""
        return sum(self.requests.values())


@dataclass(frozen=True, slots=True)
class FirstViolation:
    """The first request of a client that violates a requirement.

    `failure`: the description of the violation, once the request is answered.
    """

    client: str
    recorded: RecordedExchange
    violation: Violation
    outcome: Outcome
    failure: Failure | None = None


class Traffic:
    """Judges the requests of any number of watched clients.

    `clients`: name -> client, in the order of their first requests.

    `header`: the header that contains the name of a client; None: User-Agent.
    `strict`: whether violations of advisory requirements count as failures.
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
        """Judge a request, if it is an inference request.

        `client`: the name of the client, if already known.

        Returns:
            The violations of requirements that no earlier request of this client violated.
        """
        received = recorded.received
        if not received.is_inference:
            return []
        sender = self._get_sender(client or self.get_client_name(recorded))
        transport = GRPC if received.is_over_grpc else HTTP
        sender.requests[transport] = sender.requests.get(transport, 0) + 1
        sender.too_long += not recorded.is_whole
        sender.reactions.note_request(recorded)
        self._senders[recorded.number] = sender
        first = [
            FirstViolation(sender.name, recorded, violation, self.get_outcome(get_requirement(violation.requirement)))
            for violation in _count_requirements(sender, recorded)
        ]
        if first:
            self._open[recorded.number] = first
        return first

    def add_answer(self, recorded: RecordedExchange) -> list[FirstViolation]:
        """Describe the first violations in a request that is now answered; return them with their descriptions."""
        described = []
        if sender := self._senders.pop(recorded.number, None):
            sender.reactions.note_answer(recorded)
        for first in self._open.pop(recorded.number, ()):
            failure = self._describe(recorded, first.violation)
            self.clients[first.client].tallies[first.violation.requirement].failure = failure
            described.append(replace(first, failure=failure))
        return described

    def add_reset(self, recorded: RecordedExchange) -> None:
        """Count that a client reset the connection after the answer to this request."""
        if recorded.received.is_inference:
            self._get_sender(self.get_client_name(recorded)).reactions.note_reset(recorded)

    def get_outcome(self, entry: Requirement) -> Outcome:
        """Return the outcome of a violated requirement.

        The outcome is fail, except for an advisory requirement without `strict`: advisory.
        """
        outcome = UNMET_OUTCOMES[entry.level]
        return Outcome.FAIL if self._strict and outcome is Outcome.ADVISORY else outcome

    def count_unmet(self, sender: Sender) -> Counter[Outcome]:
        """Return the number of requirements that a client violates, by outcome."""
        violated = [name for name, tally in sender.tallies.items() if tally.violated]
        return Counter(self.get_outcome(get_requirement(name)) for name in violated)

    def list_results(self) -> Sequence[CheckResult]:
        """Return a result for each client and each requirement of the transports that the client used."""
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
            message = "this requirement applies to no request of this client"
            return replace(found, outcome=Outcome.NOT_APPLICABLE, message=message, reason=reason)
        if not tally.violated or tally.failure is None:
            return found
        return replace(
            found, outcome=self.get_outcome(entry), message=_format_message(tally, tally.failure), failure=tally.failure
        )


def _format_message(tally: Tally, failure: Failure) -> str:
    requests = f"{tally.judged} request{'' if tally.judged == 1 else 's'}"
    return (
        f"expected {failure.expected}, got {failure.actual} "
        f"({tally.violated} of {requests}, first in request {tally.first_number})"
    )


def _count_requirements(sender: Sender, recorded: RecordedExchange) -> Iterator[Violation]:
    """Count the requirements that a request meets and violates; yield the client's first violation of each."""
    found = _judge_exchange(recorded)
    violated = {violation.requirement for violation in found.violations}
    for name in dict.fromkeys([*found.met, *violated]):
        tally = sender.tallies.setdefault(name, Tally())
        tally.judged += 1
        tally.violated += name in violated
    for violation in found.violations:
        tally = sender.tallies[violation.requirement]
        if not tally.first_number:
            tally.first_number = recorded.number
            yield violation


def _judge_exchange(recorded: RecordedExchange) -> RuleResults:
    found = judge_request(recorded.received)
    if recorded.is_whole:
        return found
    violations = tuple(violation for violation in found.violations if violation.requirement in HEAD_ONLY_REQUIREMENTS)
    return RuleResults(tuple(name for name in found.met if name in HEAD_ONLY_REQUIREMENTS), violations)
