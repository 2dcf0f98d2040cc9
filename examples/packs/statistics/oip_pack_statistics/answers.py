"""What the statistics of a model, of its versions and of all models look like, and which are refused."""

from conformance.checks.support.documents import expect_extension_listed, expect_json, find_other_role, list_versions
from conformance.checks.support.refusals import Refusal, expect_fault_refused, make_refusal_rows
from conformance.checks.support.wrong_requests import Fault, make_refusals
from conformance.expect.refusals import expect_error_object
from conformance.expect.unmet import UnmetError
from conformance.roles.model import Model
from conformance.spec.check import check, rows
from conformance.spec.fit import ANY
from conformance.transport.target import Target
from conformance.wire.message_edits import Path
from conformance.wire.request import Message
from oip_pack_statistics.reading import ask

REFUSALS = make_refusals(
    "STATISTICS-UNKNOWN",
    lambda model: Message(f"{model.path}/stats", method="GET"),
    (
        Fault("unknown-model", "identity_int32", Path("/v2/models/there_is_no_such_model/stats"), fit=ANY),
        Fault("unknown-version", "identity_int32", Path(lambda sent: f"{sent.path[:-6]}/versions/987654/stats")),
    ),
)


@check("statistics.is-listed", requirements="STATISTICS-LISTED")
def is_listed(target: Target) -> None:
    """Server metadata list the extension."""
    expect_extension_listed(target, "statistics")


@check("statistics.has-its-members", requirements="STATISTICS-ANSWER", role="identity_int32", fit=ANY)
def has_its_members(target: Target, model: Model) -> None:
    """The answer for a model has the members of the page, and no other model."""
    entries, reply = ask(target, model.path)
    if {entry["name"] for entry in entries} != {model.name}:
        raise UnmetError(f"entries of {model.name} alone", str([entry["name"] for entry in entries])[:200], reply)


@check("statistics.has-later-members", requirements="STATISTICS-LATER-MEMBERS", role="identity_int32", fit=ANY)
def has_later_members(target: Target, model: Model) -> None:
    """An entry has the members that were added to the page."""
    items = {"items": {"required": ["response_stats", "memory_usage"]}}
    expect_json(ask(target, model.path)[1], {"properties": {"model_stats": items}})


@check("statistics.has-all-models", requirements="STATISTICS-ALL-MODELS", role="identity_int32")
def has_all_models(target: Target, model: Model) -> None:
    """Without a name, there are entries of every model."""
    entries, reply = ask(target, "/v2/models")
    other = target.model(find_other_role(model)) or model
    if missing := {model.name, other.name} - {entry["name"] for entry in entries}:
        raise UnmetError(f"an entry of {min(missing)}", f"{len(entries)} entries of others", reply)


@check("statistics.has-all-versions", requirements="STATISTICS-ALL-VERSIONS", role="versioned")
def has_all_versions(target: Target, model: Model) -> None:
    """Without a version there is an entry of each version, and with one, the entry of this version alone."""
    versions = list_versions(target, model)
    for path, expected in (("", versions), *((f"/versions/{one}", [one]) for one in versions)):
        entries, reply = ask(target, f"/v2/models/{model.name}{path}")
        found = sorted(str(entry.get("version")) for entry in entries)
        if found != sorted(expected):
            raise UnmetError(f"versions {', '.join(sorted(expected))}", ", ".join(found) or "none", reply)


@check("statistics.unknown-is-refused", requirements="STATISTICS-UNKNOWN")
@rows(*make_refusal_rows(REFUSALS))
def unknown_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """Statistics of what does not exist are refused with an error object, and the model still answers."""
    expect_fault_refused(target, model, refusal)
    expect_error_object(target.send(refusal.message(model), fresh=True), "STATISTICS-UNKNOWN")
