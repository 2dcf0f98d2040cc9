"""The rules for what clients send: one request at a time, whoever received it."""

from __future__ import annotations

from conformance.clients.miss import Judged, Miss
from conformance.clients.rules.judging import judged

__all__ = ["Judged", "Miss", "judged"]
