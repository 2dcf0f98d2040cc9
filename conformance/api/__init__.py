"""The suite as a Python function: `conformance.judge(url_or_app)` returns a `Report`. docs/python.md shows it in use.

It needs no pytest and changes nothing of one that runs around it. `conformance` itself exports these names, and imports
them when they are asked for.
"""

from __future__ import annotations

from conformance.api.arguments import JudgeError
from conformance.api.judging import judge
from conformance.api.report import Report, Robustness, UnmetRequirement, UnmetRow

__all__ = ["JudgeError", "Report", "Robustness", "UnmetRequirement", "UnmetRow", "judge"]
