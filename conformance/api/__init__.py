"""The Python API of the suite: `conformance.judge(url_or_app)` returns a `Report`. docs/python.md has examples.

The API does not need pytest, and does not affect a surrounding pytest run. `conformance` exports these names and
imports them lazily.
"""

from __future__ import annotations

from conformance.api.arguments import JudgeError
from conformance.api.judging import judge
from conformance.api.report import Report, Robustness, UnmetRequirement, UnmetRow

__all__ = ["JudgeError", "Report", "Robustness", "UnmetRequirement", "UnmetRow", "judge"]
