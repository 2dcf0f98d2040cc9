"""The requirement that a step breaks: read from what is left of it when everything that does not matter is plain.

What is farthest from the tensors is the cause where it is left: a request that goes wrong in chunks alone is about
chunks, whatever else is needed. Nearer to them the answer itself says what is wrong with it, in its frame, its id or its
outputs; where it does not, the forms do in which its tensors travel.
"""

from __future__ import annotations

from collections.abc import Mapping

from conformance.checks.walk.axes import NEUTRAL
from conformance.checks.walk.concurrent_requests import REFUSED
from conformance.checks.walk.covering import Step
from conformance.checks.walk.shrinking import MinimalFailure
from conformance.expect.unmet import UnmetError
from conformance.roles.roles import Role
from conformance.transport.exchange import Reply

ISOLATION = "OIP-ISOLATION"
# The first of these axes that is left names the requirement.
_REMOTE: Mapping[str, str] = {
    "beside": ISOLATION,
    "coding": "HTTP-CODING-I",
    "answer_coding": "HTTP-CODING-O",
    "framing": "HTTP-CHUNKED",
    "http": "OIP-ANSWER",
    "connection": "OIP-ANSWER",
    "path": "OIP-ENDPOINTS",
    "header_case": "BIN-HEADER-CASE",
}
_NAMES = ("role", "corner")  # of what is sent, which is not plainer or less plain
_WRITING = ("members", "escapes", "spaces", "numbers")
_OF_DATATYPE = {"BOOL": "BOOL", "BYTES": "BYTES"}


def find_requirement(found: MinimalFailure, role: Role) -> str | None:
    """Return the requirement that is broken; None for the first of the check's."""
    if len(found.earlier) == 1 and found.unmet.reply is not None and found.unmet.reply.status is None:
        return _attribute_history(found.earlier[0][0])
    if found.earlier or not found.is_lasting:
        return ISOLATION
    left = find_remaining_axes(found.step)
    if "before" in left:
        return "OIP-ALIVE" if left["before"] in REFUSED and not _is_answered(found.unmet) else ISOLATION
    for axis, named in _REMOTE.items():
        if axis in left:
            return _attribute_framing(left[axis], found.unmet) if axis == "framing" else named
    if "unknown" in left and found.unmet.requirement != ISOLATION:
        return "OIP-MEMBERS"
    return found.unmet.requirement or _attribute_contents(found, left, role)


def _attribute_history(step: Step) -> str:
    """Return the requirement that is broken where nothing is answered any more on the connection after a step."""
    left = find_remaining_axes(step)
    axes = [axis for axis in left if axis in _REMOTE]
    if len(axes) != 1:
        return ISOLATION
    return _attribute_framing(left["framing"]) if axes == ["framing"] else _REMOTE[axes[0]]


def _attribute_framing(value: str, unmet: UnmetError | None = None) -> str:
    """Return the requirement about a framing: trailers that are answered wrongly are chunks that are read wrongly."""
    if value == "trailers" and (unmet is None or not _is_answered(unmet)):
        return "HTTP-CHUNKED-TRAILER"
    return "HTTP-SEGMENTS" if value == "segments" else _REMOTE["framing"]


def find_remaining_axes(step: Step) -> dict[str, str]:
    """Return what is not neutral about a step, without its role; outputs that come as they please are neutral, too."""
    own = {axis: value for axis, value in step.items() if axis not in _NAMES and NEUTRAL.get(axis) != value}
    return {axis: value for axis, value in own.items() if (axis, value) != ("want", "raw")}


def _is_answered(unmet: UnmetError) -> bool:
    return unmet.reply is not None and unmet.reply.succeeded


def _attribute_contents(found: MinimalFailure, left: Step, role: Role) -> str | None:
    """Return the requirement about the tensors, their forms, or the JSON around them."""
    send, want = found.step["send"], found.step["want"]
    if found.step["classes"] != "none":
        return None if _is_answered(found.unmet) else "CLS-PARAMETER"
    if send == "raw":
        return _attribute_raw(found.unmet, left, role)
    if send != "json" and "members" in left:
        return "BIN-SIZE-I"
    if send != "json" and any(axis in left for axis in (*_WRITING, "id")):
        return "BIN-HEADER-I"
    if "nesting" in left:
        return "OIP-DATA"
    if send != "json":
        return _attribute_inputs(send, left, role)
    if want not in ("nothing", "json", "no-binary"):
        return _attribute_outputs(want, left, role)
    return "OIP-ANSWER"


def _attribute_raw(unmet: UnmetError, left: Step, role: Role) -> str:
    if not left.keys() - {"send", "want"} and not _is_answered(unmet):
        return "RAW-HEADER-ZERO"
    if role.batching:
        return "RAW-BATCH-OF-ONE"
    is_variable = "count" in left and any(size < 0 for size in role.inputs[0].shape)
    return "RAW-ONE-VARIABLE" if is_variable and not _is_answered(unmet) else "RAW-ENCODING"


def _attribute_inputs(send: str, left: Step, role: Role) -> str:
    if send == "mixed":
        return "BIN-MIXED-I"
    if "order" in left:
        return "BIN-ORDER-I"
    return f"BIN-{_encoding(role.inputs)}-I"


def _attribute_outputs(want: str, left: Step, role: Role) -> str:
    if want == "mixed":
        return "BIN-MIXED-O"
    if "outputs" in left and len(role.outputs) > 1:
        return "BIN-ORDER-O"
    return f"BIN-{_encoding(role.outputs)}-O"


def _encoding(tensors: tuple[object, ...]) -> str:
    """Return which requirement is about the elements of some tensors: that of their one datatype, or that of all."""
    datatypes = {getattr(spec, "datatype", "") for spec in tensors}
    shapes = [getattr(spec, "shape", ()) for spec in tensors]
    if len(datatypes) == 1 and (own := _OF_DATATYPE.get(min(datatypes))):
        return own
    return "ROW-MAJOR" if any(len(shape) > 1 for shape in shapes) else "DATATYPES"


# --- what is nobody's fault -----------------------------------------------------------------------------------------

# With these left, a refusal is an answer: no document makes a server take them.
_REFUSABLE = ("coding", "unknown", "http")
_LENGTH_REQUIRED = 411  # for JSON; binary data want a length, so that in chunks they may be refused anyhow
_TOO_MUCH = (413, 429, 503)
_LARGE = 64 * 1024  # bytes


def is_declined(found: MinimalFailure, role: Role) -> bool:
    """Whether a server may refuse what is left of a step, as it did."""
    reply, left = found.unmet.reply, find_remaining_axes(found.step)
    if reply is None or not reply.is_refusal:
        return False
    if any(axis in left for axis in _REFUSABLE) or left.keys() - _plainest_forms(role) == {"path"}:
        return True
    if left.get("framing", "segments") != "segments" and (
        reply.status == _LENGTH_REQUIRED or found.step["send"] != "json" or reply.is_http_1_0
    ):
        return True
    return reply.status in _TOO_MUCH and (_is_large(reply) or "beside" in left)


def _plainest_forms(role: Role) -> frozenset[str]:
    """Return the axes that no step with a role can be plainer in: FP16 has no JSON."""
    return frozenset({"send", "want"} if "FP16" in {spec.datatype for spec in role.inputs} else ())


def is_possible_limit(found: MinimalFailure) -> bool:
    """Whether a refusal may be for a limit of the server's own: on elements, on an id, or on bytes."""
    reply, left = found.unmet.reply, find_remaining_axes(found.step)
    if reply is None or not reply.is_refusal:
        return False
    if left.keys() == {"id"} and (reply.status or 0) < 500:  # no document says which characters one may have
        return True
    plain = left.keys() <= {"count", "place", "id", "send", "want", "classes"}
    return (plain and ("count" in left or left.get("id") == "long")) or ("count" in left and _is_large(reply))


def _is_large(reply: Reply) -> bool:
    return len(reply.exchange.message.body) >= _LARGE
