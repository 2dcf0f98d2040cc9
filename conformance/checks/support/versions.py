"""Which of its versions a model answers by, where a request names none."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.roles.model import Model
from conformance.transport.exchange import Reply
from conformance.transport.peer import Peer


def read_named_version(reply: Reply) -> object:
    """Return what an answer has as `model_version`; None where it names none."""
    return (reply.answer.document or {}).get("model_version")


def find_default_version(target: Peer, model: Model, listed: Sequence[str]) -> str:
    """Return the version that a request without one gets: another may take, and compute, something else.

    It is the only one that metadata list, else the one that an answer names; empty where nobody says.
    """
    if len(listed) == 1:
        return listed[0]
    for request in target.good_requests(model) if listed else ():
        reply = target.send(target.message(request), fresh=True)
        if reply.succeeded:
            own = read_named_version(reply)
            return own if isinstance(own, str) and own in listed else ""
    return ""
