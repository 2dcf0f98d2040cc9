"""Every request that some area says has to be refused: `REFUSALS` of its modules over HTTP, `REFUSALS_OVER_GRPC` there."""

from __future__ import annotations

from collections.abc import Iterator

from conformance import checks
from conformance.checks.errors import impossible_calls, impossible_requests
from conformance.checks.support.refusals import Refusal

OWN = "errors"


def _of_areas(attribute: str) -> Iterator[tuple[str, Refusal]]:
    """Yield the refusals of every area but this one, each with its area; once, where a module shows those of another."""
    seen: set[int] = set()
    for area, package in checks.PACKAGES.items():
        for module in checks.modules_of(package) if area not in (OWN, *checks.OF_CLIENTS) else ():
            for refusal in getattr(module, attribute, ()):
                if id(refusal) not in seen:
                    seen.add(id(refusal))
                    yield area, refusal


# Row id -> refusal over HTTP; the id names the area.
ALL = {f"{area}-{refusal.fault}": refusal for area, refusal in _of_areas("REFUSALS")} | {
    f"{OWN}-{refusal.fault}": refusal for refusal in impossible_requests.REFUSALS
}
ALL_OVER_GRPC = (
    *[refusal for _, refusal in _of_areas("REFUSALS_OVER_GRPC")],
    *impossible_calls.REFUSALS_OVER_GRPC,
)
