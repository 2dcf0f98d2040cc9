"""Certification profiles and the extensions they demand: every MUST of these extensions must be judged and met.

A server without failures, but not judged completely, is certified as partial, with its coverage. A server that meets
every MUST of exchange and transport, but not all others, can be certified as interoperable. The same holds for clients.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain

from conformance.report.findings import has_reason
from conformance.spec.extensions import GRPC, HTTP, TRANSPORTS, find_transport
from conformance.spec.ledger import Party
from conformance.spec.outcome import CONFORMANT, INTEROPERABLE, PARTIAL, Outcome, ReasonKind
from conformance.spec.report import Report, ReportRow, find_party
from conformance.spec.tally import tally_report
from conformance.spec.text import format_count, join_some
from conformance.spec.verdict import INTEROPERABILITY_CONCERNS

PROFILES: Mapping[str, tuple[str, ...]] = {
    "binary": ("binary_tensor_data",),
    "binary+raw": ("binary_tensor_data", "raw"),
    "classification": ("classification",),
    "full": ("binary_tensor_data", "raw", "classification"),
    "grpc-alone": ("classification_grpc",),
}
GRPC_ALONE = "grpc-alone"  # the profile of servers without an HTTP URL


# The extension that is certified in addition if the server's gRPC address is given.
OVER_GRPC = "classification_grpc"
# Wording for MUSTs whose verdict is not "pass".
_UNMET: Mapping[str, str] = {
    Outcome.FAIL: "not met",
    Outcome.KNOWN_FAILURE: "known not to be met",
    Outcome.NOT_APPLICABLE: "not judged",
    Outcome.ERROR: "in error",
}
_MISSING = (ReasonKind.NOT_OFFERED, ReasonKind.TRANSPORT_NOT_GIVEN)
MAX_SHOWN = 8  # names in a line


def list_extensions(profile: str, *, grpc: bool) -> list[str]:
    """Return the extensions that a run under a profile judges, with or without gRPC."""
    return list(dict.fromkeys([*PROFILES[profile], *([OVER_GRPC] if grpc else [])]))


def is_certifiable(standing: str, profile: str, report: Report) -> bool:
    """Return whether a report qualifies the judged server or client for a standing."""
    if standing == INTEROPERABLE:
        return bool(report["interoperable"]) and not list_unmet_musts(profile, report, INTEROPERABLE)
    return report["verdict"] == standing and (standing == PARTIAL or not list_unmet_musts(profile, report))


def find_standing(profile: str, report: Report, gate: str | None = None) -> str | None:
    """Return the standing that a report qualifies for and a gate accepts; None if there is none.

    Args:
        profile: a key of `PROFILES`.
        report: report of a run (`schemas/report.schema.json`).
        gate: `conformant` accepts only that standing; `interoperable` accepts conformant and interoperable;
            None accepts conformant and partial.
    """
    taken = (CONFORMANT, *{None: (PARTIAL,), INTEROPERABLE: (INTEROPERABLE,)}.get(gate, ()))
    return next((each for each in taken if is_certifiable(each, profile, report)), None)


def count_met_musts(report: Report) -> dict[str, int]:
    """Return how many of the applicable MUSTs were met, the coverage of a partial certification."""
    musts = tally_report(report)
    return {"met": musts.met, "of": musts.applying}


def list_unmet_musts(profile: str, report: Report, standing: str = CONFORMANT) -> list[str]:
    """Return the MUSTs that a profile demands but that are not met in a report, one line per reason.

    A MUST is not demanded if all its rows need an extension that is not in the profile, or exceed a declared limit.

    Args:
        profile: a key of `PROFILES`.
        report: report of a run (`schemas/report.schema.json`).
        standing: standing to certify; `interoperable` demands only the MUSTs of exchange and transport.
    """
    return [
        f"{format_count(len(names), 'MUST')} {'is' if len(names) == 1 else 'are'} {word}: {join_some(names, MAX_SHOWN)}"
        for word, names in _find_unmet_musts(profile, report, standing).items()
    ]


def find_nearest(profile: str, report: Report) -> tuple[str, list[str]] | None:
    """Return the profile, among those that demand less, with the fewest unmet MUSTs, and these; None if none has fewer.

    Of profiles with equally few, the one that demands most is returned.
    """
    smaller = [name for name, demanded in PROFILES.items() if set(demanded) < set(PROFILES[profile])]
    unmet = {name: list(chain(*_find_unmet_musts(name, report).values())) for name in (*smaller, profile)}
    nearest = min(smaller, key=lambda name: (len(unmet[name]), -len(PROFILES[name])), default=profile)
    return (nearest, unmet[nearest]) if len(unmet[nearest]) < len(unmet[profile]) else None


def _find_unmet_musts(profile: str, report: Report, standing: str = CONFORMANT) -> dict[str, list[str]]:
    """Return the unmet MUSTs of `list_unmet_musts` by the words for their verdicts."""
    demanded, transports = _find_demands(profile, report)
    beyond = {*PROFILES["full"], *TRANSPORTS} - {*demanded, *transports}
    rows: dict[str, list[ReportRow]] = {}
    for row in report["rows"]:
        for requirement in row["requirements"]:
            rows.setdefault(requirement, []).append(row)
    found: dict[str, list[str]] = {}
    for entry in report["requirements"]:
        if (
            entry["level"] == "MUST"
            and (standing == CONFORMANT or entry["concern"] in INTEROPERABILITY_CONCERNS)
            and entry["extension"] in demanded
            and find_transport(entry["area"]) in transports
            and entry["verdict"] != "pass"
            and not (entry["verdict"] == "not_applicable" and _are_beyond_scope(rows.get(entry["id"], []), beyond))
        ):
            found.setdefault(_UNMET.get(entry["verdict"], str(entry["verdict"])), []).append(entry["id"])
    return found


def _find_demands(profile: str, report: Report) -> tuple[Collection[str], Collection[str]]:
    """Return the extensions and the transports of a profile; for a client, only the judged transports."""
    if find_party(report) is Party.CLIENT:
        grpc, transports = "classification" in PROFILES[profile], report["target"]["transports"]
    else:
        grpc = OVER_GRPC in report["options"]["extensions"]
        transports = (GRPC,) if profile == GRPC_ALONE else TRANSPORTS if grpc else (HTTP,)
    return {"protocol", *list_extensions(profile, grpc=grpc)}, transports


def _are_beyond_scope(rows: Sequence[ReportRow], beyond: Collection[str]) -> bool:
    """Return whether every row needs an extension or transport beyond the profile, or more than a declared limit."""
    return bool(rows) and all(_is_beyond_limit(row) or _find_missing_part(row) in beyond for row in rows)


def _is_beyond_limit(row: ReportRow) -> bool:
    return has_reason(row, ReasonKind.DECLARED_LIMIT)


def _find_missing_part(row: ReportRow) -> str | None:
    """Return the missing extension or transport that makes a row inapplicable; None if there is none."""
    if has_reason(row, ReasonKind.NO_JSON_FORM):
        return "binary_tensor_data"
    reason = row.get("reason")
    return reason["subject"] if reason and reason["kind"] in _MISSING else None
