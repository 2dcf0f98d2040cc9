"""Every request that some area says has to be refused: `REFUSALS` of its modules over HTTP, `REFUSALS_OVER_GRPC` there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from conformance import checks
from conformance.checks.errors import impossible_calls, impossible_requests
from conformance.checks.support.refusals import Refusal

THIS_AREA = "errors"


def _of_areas(attribute: str) -> Iterator[tuple[str, Refusal]]:
    """Yield the refusals of every area but this one, each with its area; once, where a module shows those of another."""
    seen: set[int] = set()
    for area, package in checks.PACKAGES.items():
        for module in checks.import_modules(package) if area not in (THIS_AREA, *checks.CLIENT_AREAS) else ():
            for refusal in getattr(module, attribute, ()):
                if id(refusal) not in seen:
                    seen.add(id(refusal))
                    yield area, refusal


# Row id -> refusal over HTTP; the id names the area.
_EVERY = {f"{area}-{refusal.fault}": refusal for area, refusal in _of_areas("REFUSALS")} | {
    f"{THIS_AREA}-{refusal.fault}": refusal for refusal in impossible_requests.REFUSALS
}


def _first(key: Callable[[str], object], areas: Collection[str] = checks.PACKAGES) -> set[str]:
    """Return the first refusal of some areas that fits deployed models, under each key."""
    fitting = [one for one, refusal in _EVERY.items() if refusal.fit and one.partition("-")[0] in areas]
    return set({key(identity): identity for identity in reversed(fitting)}.values())


# What a server meets in different places: in the path, in the JSON, in its members, in its names, in its data.
_SEVERAL = {
    f"{THIS_AREA}-{fault}"
    for fault in ("unknown-model", "json-cut-short", "inputs-no-array", "unknown-output", "last-element-missing")
}
# Those that deployed models are sent, too: these, and of the others one for each requirement, or for each area.
SENT_TO_DEPLOYED = _SEVERAL | _first(lambda identity: _EVERY[identity].requirement)
ONE_PER_AREA = _SEVERAL | _first(lambda identity: identity.partition("-")[0], checks.PACKAGES.keys() - {THIS_AREA})
REFUSALS_BY_ROW = {
    identity: refusal for identity, refusal in _EVERY.items() if refusal.role or identity in SENT_TO_DEPLOYED
}

EVERY_GRPC_REFUSAL = (
    *[refusal for _, refusal in _of_areas("REFUSALS_OVER_GRPC")],
    *impossible_calls.REFUSALS_OVER_GRPC,
)
GRPC_SENT_TO_DEPLOYED = list(
    {one.requirement: one for one in reversed(EVERY_GRPC_REFUSAL) if one.fit is not None}.values()
)
