"""Chooses the client name that a row sends, and tests whether the row fails because of this name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from conformance.expect.unmet import BlockedError, UnmetError
from conformance.judging.row_judge import RowError
from conformance.judging.row_models import RowModels
from conformance.spec import ledger
from conformance.spec.check import Case
from conformance.spec.text import escape_text
from conformance.transport import client_names
from conformance.transport.client_names import ClientName
from conformance.transport.target import Target

# The requirement that answers do not depend on the client name in a request.
CLIENT_NAME = "OIP-CLIENT-NAME"
# Repetitions of a failed row: True sends it under the other client name, and it must pass; False sends it under its own
# client name, and it must fail. A server that fails at random behaves like this in one of 256 rows at most.
_TRIALS_UNDER_OTHER_NAME = (True, True, False, False, True, False, True, False)


@dataclass(frozen=True, slots=True)
class ClientNameTrials:
    """Attributes the errors of rows to the client name.

    Attributes:
        target: the server.
        models: the models of the rows.
        seed: see `Judge`.
        run_body: runs the body of a row.
        name_requirement: returns the requirement that an error violates.
    """

    target: Target
    models: RowModels
    seed: int | None
    run_body: Callable[[Case], object]
    name_requirement: Callable[[Case, UnmetError], str]

    def choose_names(self, case: Case) -> tuple[ClientName, ClientName]:
        """Return the client name that a row sends, and the alternative; see `client_names.choose_names`."""
        return client_names.choose_names(self.seed, case.key, self.models.discovery_result.refused_clients)

    def explain(self, case: Case, error: RowError) -> UnmetError | None:
        """Return an error that names the client name if the row passes with another name, else None.

        Only an unmet MUST is attributed: a server may follow a SHOULD for one client only. A row with an unanswered
        request is not repeated, because it may hang again. Other rows are repeated several times: each repetition must
        pass with the other name, and fail with the row's own name. The order of the names excludes servers that fail
        every second or third request, or at random. All repetitions are of one length and begin without connections, so
        that the other name changes neither where reads end nor what a connection has carried.
        """
        if self.seed is None or any(one.status is None for one in self.target.exchanges):
            return None
        if isinstance(error, BlockedError):
            unmet = error.cause or UnmetError("an answer that lets the row be judged", escape_text(str(error)))
        elif ledger.get_requirement(self.name_requirement(case, error)).level != ledger.Level.MUST:
            return None
        else:
            unmet = error
        own, other = self.choose_names(case)
        for place, is_other in enumerate(_TRIALS_UNDER_OTHER_NAME):
            self.target.close()
            client = other.pad(own) if is_other else own.pad(other)
            with self.target.scope(f"{case.key}, again {place}", client=client):
                if self._repeat_row(case) is not is_other:
                    return None
        is_call = unmet.reply.is_over_grpc if unmet.reply else case.check.is_over_grpc
        ours, theirs = (client.grpc if is_call else client.http for client in (own, other))
        unmet.expected = f"the same outcome as with the User-Agent {theirs}: {unmet.expected}"
        unmet.actual = f"with the User-Agent {ours}: {unmet.actual}"
        unmet.requirement = CLIENT_NAME
        return unmet

    def _repeat_row(self, case: Case) -> bool | None:
        """Send a row again and return whether it passes; None if the repetition is inconclusive."""
        try:
            self.run_body(case)
        except (UnmetError, BlockedError):
            return False
        except Exception:  # the outcome of the first run stands
            return None
        return True
