"""Reads statistics, and measures by how much counts rise, on a server that may count late or have other clients."""

from collections.abc import Callable, Mapping
from typing import Any

from conformance.checks.support.documents import expect_json
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.transport.exchange import Reply
from conformance.transport.target import Target

PAUSES_S = (0.05, 0.2, 1.0)  # until a late count has to be there
STEPS = ("compute_input", "compute_infer", "compute_output")


def describe_object(members: Mapping[str, Any], *required: str) -> dict[str, Any]:
    """Return the schema of an object; `required` are the members that it needs, by default all."""
    return {"type": "object", "properties": members, "required": list(required or members)}


NUMBER, TEXT = {"type": "number", "minimum": 0}, {"type": "string"}
DURATION = describe_object({"count": NUMBER, "ns": NUMBER})
BATCH = describe_object({"batch_size": NUMBER, **dict.fromkeys(STEPS, DURATION)})
NUMBERS = dict.fromkeys(("last_inference", "inference_count", "execution_count"), NUMBER)
TOTALS = describe_object(dict.fromkeys(("success", "fail", "queue", *STEPS), DURATION))
ENTRY = {"name": TEXT, **NUMBERS, "inference_stats": TOTALS, "batch_stats": {"type": "array", "items": BATCH}}
ENTRIES = {"type": "array", "items": describe_object({**ENTRY, "version": TEXT}, *ENTRY)}
ANSWER = describe_object({"model_stats": ENTRIES})
COUNTS: Mapping[str, Callable[[dict[str, Any]], int]] = {
    "success.count": lambda entry: int(entry["inference_stats"]["success"]["count"]),
    "inference_count": lambda entry: int(entry["inference_count"]),
    "execution_count": lambda entry: int(entry["execution_count"]),
    "batch_stats": lambda entry: sum(int(batch["compute_infer"]["count"]) for batch in entry["batch_stats"]),
    "cache_hit.count": lambda entry: int(entry["inference_stats"].get("cache_hit", {}).get("count", 0)),
}


def ask(target: Target, path: str) -> tuple[list[dict[str, Any]], Reply]:
    """Return the entries of an answer, which has the members of the page."""
    reply = target.get(f"{path}/stats", fresh=True)
    return expect_json(reply, ANSWER, "STATISTICS-ANSWER")["model_stats"], reply


def read_counts(target: Target, model: Model) -> tuple[dict[str, int], Reply]:
    """Return the counts of a model over all of its versions."""
    entries, reply = ask(target, model.path)
    return {name: sum(map(read, entries)) for name, read in COUNTS.items()}, reply


def read_quiet_counts(target: Target, model: Model, pause_s: float = PAUSES_S[0]) -> tuple[dict[str, int], Reply]:
    """Return counts that stay the same while nothing is sent: no other client uses the model, no replica answers."""
    found, reply = read_counts(target, model)
    for _ in range(2):  # three have to agree
        target.pause(pause_s)
        if read_counts(target, model)[0] != found:
            raise NotApplicableError("counts change though nothing is sent: others use the model, or replicas answer")
    return found, reply


def measure(
    target: Target, model: Model, send: Callable[[], None], by: Mapping[str, int]
) -> tuple[dict[str, int], Reply]:
    """Send requests, and wait until counts have risen by so much; return by how much they rose, and the last answer."""
    before = read_quiet_counts(target, model)[0]
    send()
    for pause_s in PAUSES_S:
        counts = read_counts(target, model)[0]
        if all(counts[name] - before[name] >= rise for name, rise in by.items()):
            break
        target.pause(pause_s)
    after, reply = read_quiet_counts(target, model)
    risen = {name: after[name] - before[name] for name in after}
    if min(risen.values()) < 0:
        raise NotApplicableError("counts have fallen: the server was started again, or replicas answer")
    return risen, reply
