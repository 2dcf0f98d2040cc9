"""Find the requirement that a failing step breaks, from the axes that are not neutral after shrinking.

If an axis of HTTP is not neutral, such as the framing, that axis is the cause. Otherwise the fault in the answer
decides: a fault in its framing, its id or its outputs. If that fault does not name a requirement, the forms of the
tensors decide.
"""

from __future__ import annotations

from collections.abc import Mapping

from conformance.checks.support.covering import Step
from conformance.checks.support.framing import is_body_incomplete
from conformance.checks.support.step_shrinking import MinimalFailure
from conformance.checks.support.usual_headers import USUAL_HEADERS
from conformance.checks.walk.axes import ABANDONED, CANCELLED, CHUNKED, EMPTY_PLACES, NEUTRAL
from conformance.checks.walk.concurrent_requests import REFUSED
from conformance.expect.attribution import LENGTH
from conformance.expect.class_texts import TEXT_REQUIREMENTS
from conformance.expect.transforms import is_byte_swapped
from conformance.expect.unmet import UnmetError
from conformance.roles.roles import Role
from conformance.transport.broken_request import BUSY_STATUSES
from conformance.transport.exchange import Reply

ISOLATION = "OIP-ISOLATION"
_CODING = "HTTP-CODING-O"
# axis -> requirement; the first of these axes that is not neutral decides.
_AXIS_REQUIREMENTS: Mapping[str, str] = {
    "beside": ISOLATION,
    "sender": "OIP-REQUEST-HEADERS",
    "coding": "HTTP-CODING-I",
    "answer_coding": _CODING,
    "framing": "HTTP-CHUNKED",
    "http": "OIP-ANSWER",
    "connection": "OIP-ANSWER",
    "path": "OIP-ENDPOINTS",
    "header_case": "BIN-HEADER-CASE",
}
_AXES_WITHOUT_NEUTRAL = ("role", "corner")  # axes without a neutral value
_WRITTEN_AXES = frozenset({"members", "escapes", "spaces"})  # other ways to write the same JSON
_JSON_SPELLING_AXES = (*_WRITTEN_AXES, "numbers")
_ENCODING_BY_DATATYPE = {"BOOL": "BOOL", "BYTES": "BYTES"}


def find_requirement(found: MinimalFailure, role: Role) -> str | None:
    """Return the requirement that a failing step breaks; None means the first requirement of the check."""
    reply = found.unmet.reply
    if len(found.earlier) == 1 and reply is not None and not reply.succeeded:
        return _attribute_to_earlier_step(found.earlier[0][0], is_refused=reply.status is not None)
    if found.earlier or not found.is_lasting:
        return ISOLATION
    remaining = find_remaining_axes(found.step)
    if "before" in remaining:
        has_no_answer = remaining["before"] in (*REFUSED, *ABANDONED) and not _is_answered(found.unmet)
        return "OIP-ALIVE" if has_no_answer else ISOLATION
    if "http" in remaining and reply is not None and is_body_incomplete(reply):
        return LENGTH
    is_coded = reply is not None and reply.header("Content-Encoding") is not None
    if "sender" in remaining and (is_coded or found.unmet.requirement == _CODING):
        return _CODING
    for axis, named in _AXIS_REQUIREMENTS.items():
        if axis in remaining:
            return _attribute_framing(remaining[axis], found.unmet) if axis == "framing" else named
    if "media" in remaining and (media_requirement := _attribute_media_type(found)):
        return media_requirement
    if _are_only_binary_classes_wrong(found, remaining):
        return "BIN-BYTES-O"
    if "unknown" in remaining and found.unmet.requirement != ISOLATION:
        return "OIP-MEMBERS"
    if remaining.keys() == {"nesting"} and found.unmet.requirement == ISOLATION:
        return _attribute_contents(found, remaining, role)  # flat, the answer is right: it is another's by chance
    return found.unmet.requirement or _attribute_contents(found, remaining, role)


def _are_only_binary_classes_wrong(found: MinimalFailure, remaining: Step) -> bool:
    """Say whether classes are wrong only as binary data.

    Shrinking replaces binary data by JSON if the step still fails. So if the shrunk step still requests binary data,
    the classes are right as JSON.
    """
    if found.step["classes"] == "none" or remaining.get("want") != "binary" or not _is_answered(found.unmet):
        return False
    return (found.unmet.requirement or "CLS-HIGHEST") in TEXT_REQUIREMENTS


def _attribute_to_earlier_step(step: Step, *, is_refused: bool) -> str:
    """Return the requirement that an earlier step breaks, if the next request on the same connection fails.

    If the server refuses the next request, it has read the end of the earlier body as the beginning of this request.
    """
    remaining = find_remaining_axes(step)
    axes = [axis for axis in remaining if axis in _AXIS_REQUIREMENTS]
    if len(axes) != 1:
        return ISOLATION
    if axes == ["framing"] and not is_refused:
        return _attribute_framing(remaining["framing"])
    return _AXIS_REQUIREMENTS[axes[0]]


def _attribute_media_type(found: MinimalFailure) -> str | None:
    """Return the requirement that a media type breaks; None if the fault in the answer decides."""
    send, media = found.step["send"], found.step["media"]
    if send == "json" and media == _JSON_WITH_CHARSET:
        return "OIP-CONTENT-TYPE-JSON"
    if media == "text" or send == "json":
        return "OIP-CONTENT-TYPE-OTHER"
    if _is_answered(found.unmet):
        return None
    return "RAW-CONTENT-TYPE-OTHER" if send == "raw" else "BIN-CONTENT-TYPE-OTHER"


def _attribute_framing(value: str, unmet: UnmetError | None = None) -> str:
    """Return the requirement that an HTTP framing breaks; a wrong answer to trailers counts as misread chunks."""
    if value == "trailers" and (unmet is None or not _is_answered(unmet)):
        return "HTTP-CHUNKED-TRAILER"
    return "HTTP-SEGMENTS" if value == "segments" else _AXIS_REQUIREMENTS["framing"]


def find_remaining_axes(step: Step) -> dict[str, str]:
    """Return the axes of a step that are not neutral, with their values.

    The value `raw` of the axis `want` counts as neutral. The axes `role` and `corner` are left out, since they have no
    neutral value.
    """
    special = {
        axis: value for axis, value in step.items() if axis not in _AXES_WITHOUT_NEUTRAL and NEUTRAL.get(axis) != value
    }
    return {axis: value for axis, value in special.items() if (axis, value) != ("want", "raw")}


def _is_answered(unmet: UnmetError) -> bool:
    return unmet.reply is not None and unmet.reply.succeeded


def _attribute_contents(found: MinimalFailure, remaining: Step, role: Role) -> str | None:
    """Return the requirement that the tensors, their forms or the JSON break; None for that of the check."""
    send, want = found.step["send"], found.step["want"]
    if found.step["classes"] != "none":
        return None if _is_answered(found.unmet) else "CLS-PARAMETER"
    if send == "raw":
        return _attribute_raw(found.unmet, remaining, role)
    if send != "json" and "members" in remaining:
        return "BIN-SIZE-I"
    if send != "json" and any(axis in remaining for axis in (*_JSON_SPELLING_AXES, "id")):
        return "BIN-HEADER-I"
    if "nesting" in remaining:
        return "OIP-DATA"
    if remaining.keys() == {"id"} and found.unmet.tensor is None:  # a wrong tensor is none of the id's requirement
        return "OIP-ID"
    if send != "json":
        return _attribute_inputs(send, remaining, role, found.unmet)
    if want not in ("nothing", "json", "no-binary"):
        return _attribute_outputs(want, remaining, role, found.unmet)
    return "OIP-WRITTEN" if remaining and remaining.keys() <= _WRITTEN_AXES else "OIP-ANSWER"


def _attribute_raw(unmet: UnmetError, remaining: Step, role: Role) -> str:
    if not remaining.keys() - {"send", "want"} and not _is_answered(unmet):
        return "RAW-HEADER-ZERO"
    if role.batching:
        return "RAW-BATCH-OF-ONE"
    is_variable = "count" in remaining and any(size < 0 for size in role.inputs[0].shape)
    return "RAW-ONE-VARIABLE" if is_variable and not _is_answered(unmet) else "RAW-ENCODING"


def _attribute_inputs(send: str, remaining: Step, role: Role, unmet: UnmetError) -> str:
    if send == "mixed":
        return "BIN-MIXED-I"
    if "order" in remaining:
        return "BIN-ORDER-I"
    return f"BIN-{_find_encoding_word(role.inputs, unmet)}-I"


def _attribute_outputs(want: str, remaining: Step, role: Role, unmet: UnmetError) -> str:
    if want == "mixed":
        return "BIN-MIXED-O"
    if "outputs" in remaining and len(role.outputs) > 1:
        return "BIN-ORDER-O"
    return f"BIN-{_find_encoding_word(role.outputs, unmet)}-O"


def _find_encoding_word(tensors: tuple[object, ...], unmet: UnmetError) -> str:
    """Return the word for an encoding in a requirement id: LITTLE-ENDIAN, BOOL, BYTES, ROW-MAJOR or DATATYPES.

    If tensors of several datatypes were sent, the wrong one decides.
    """
    if _is_byte_swapped(unmet):
        return "LITTLE-ENDIAN"
    datatypes = {getattr(spec, "datatype", "") for spec in tensors}
    if unmet.tensor is not None and unmet.tensor.datatype in datatypes:
        datatypes = {unmet.tensor.datatype}
    shapes = [getattr(spec, "shape", ()) for spec in tensors]
    if len(datatypes) == 1 and (special := _ENCODING_BY_DATATYPE.get(min(datatypes))):
        return special
    return "ROW-MAJOR" if any(len(shape) > 1 for shape in shapes) else "DATATYPES"


def _is_byte_swapped(unmet: UnmetError) -> bool:
    """Say whether the wrong tensor of an answer is the expected one with the bytes of each element reversed."""
    output = unmet.reply.answer.output(unmet.tensor.name) if unmet.reply and unmet.tensor else None
    if output is None or output.array is None or unmet.tensor is None:
        return False
    return is_byte_swapped(unmet.tensor.array, output.array)


# --- permitted refusals -----------------------------------------------------------------------------------------------

# If one of these axes is not neutral, a server may refuse: no document requires it to support their other values.
_AXES_THAT_MAY_BE_REFUSED = ("coding", "unknown", "http", "media")
_JSON_WITH_CHARSET = "json-charset"  # media type of JSON, which only binary data may be refused for
_LENGTH_REQUIRED = 411  # status for chunked JSON; binary data in one chunk may be refused with any status
_VERSION_STATUSES = (426, 505)
_LOAD_STATUSES = (413, *BUSY_STATUSES)
_LARGE_BYTES = 64 * 1024  # bytes
_SIZE_AXES = ("count", "place", "id", "send", "want", "classes")
JSON_SPELLING_SIZE_AXES = ("spaces", "escapes", "numbers", "nesting")
# Axes that change the length of JSON with the same number of elements.
_JSON_SIZE_AXES = (*JSON_SPELLING_SIZE_AXES, "values", "outputs")


def is_allowed_refusal(found: MinimalFailure, role: Role) -> bool:
    """Say whether the server refused the shrunk step, and the documents allow this refusal."""
    reply, remaining = found.unmet.reply, find_remaining_axes(found.step)
    if reply is None or not reply.is_refusal:
        return False
    if found.step["send"] == "json" and remaining.get("media") == _JSON_WITH_CHARSET:
        remaining.pop("media")
    if any(axis in remaining for axis in _AXES_THAT_MAY_BE_REFUSED) or remaining.keys() - _list_forced_axes(role) == {
        "path"
    }:
        return True
    if "sender" in remaining and USUAL_HEADERS[remaining["sender"]].is_justified_refusal(reply):
        return True
    if remaining.get("framing", "segments") != "segments" and (
        reply.status == _LENGTH_REQUIRED or _are_chunks_unsupported(found.step) or reply.is_http_1_0
    ):
        return True
    if remaining.get("numbers") == "long":  # a server may limit the digits of numbers (RFC 8259, 6)
        return True
    # A server may still be busy with other requests.
    is_busy = "beside" in remaining or remaining.get("before") in (*ABANDONED, CANCELLED)
    return reply.status in _LOAD_STATUSES and (_is_large_request(reply) or is_busy)


def is_form_refused_in_http_1_0(found: MinimalFailure) -> bool:
    """Say whether the server refused binary data because of HTTP/1.0 alone, without a status that names the version."""
    reply, remaining = found.unmet.reply, find_remaining_axes(found.step)
    if reply is None or not reply.is_refusal or reply.status in _VERSION_STATUSES:
        return False
    return found.step["send"] != "json" and remaining.keys() - {"send", "want", "classes"} == {"http"}


def _are_chunks_unsupported(step: Step) -> bool:
    """Say whether a shrunk step shows that the server refuses binary data in chunks.

    Shrinking replaces several chunks by one chunk if the server refuses one chunk as well.
    """
    return step["send"] != "json" and step["framing"] == CHUNKED[0]


def _list_forced_axes(role: Role) -> frozenset[str]:
    """Return the axes that cannot be neutral for a role, since JSON cannot represent FP16."""
    return frozenset({"send", "want"} if "FP16" in {spec.datatype for spec in role.inputs} else ())


def is_possible_limit(found: MinimalFailure) -> bool:
    """Say whether the server may have refused the step because of a limit on elements, ids or bytes."""
    reply, remaining = found.unmet.reply, find_remaining_axes(found.step)
    if reply is None or not reply.is_refusal:
        return False
    if remaining.keys() == {"id"} and (reply.status or 0) < 500:  # no document specifies the characters of an id
        return True
    is_empty, is_long = remaining.get("place") in EMPTY_PLACES, remaining.get("id") == "long"
    is_size_unusual = "count" in remaining or is_empty or is_long
    has_only_sizes = remaining.keys() <= {*_SIZE_AXES, *(_JSON_SIZE_AXES if found.step["send"] == "json" else ())}
    return (has_only_sizes and is_size_unusual) or ("count" in remaining and _is_large_request(reply))


def _is_large_request(reply: Reply) -> bool:
    return len(reply.exchange.message.body) >= _LARGE_BYTES
