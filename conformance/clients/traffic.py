"""What watched clients have sent, by client, judged as it comes: requests to results, as a run of the suite has them."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.clients.recording.recorded import Recorded
from conformance.terms.result import CheckResult

UNNAMED = "unnamed"


class Traffic:
    """Requests of any number of clients, judged one after the other.

    Args:
        header: that names a client instead of its user agent.
        strict: advice fails, too.
    """

    def __init__(self, header: str | None = None, *, strict: bool = False) -> None:
        self.header = header
        self.strict = strict

    def asked(self, recorded: Recorded) -> None:
        """Judge a request, if it is one of an inference."""
        raise NotImplementedError

    def results(self) -> Sequence[CheckResult]:
        """Return a result for each client and each requirement of those transports that it used."""
        raise NotImplementedError
