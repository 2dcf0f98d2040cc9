"""The rules for what clients send: one request at a time, whoever received it."""

from __future__ import annotations

from conformance.clients.rules.judging import judge_request
from conformance.clients.violation import RuleResults, Violation

__all__ = ["RuleResults", "Violation", "judge_request"]
