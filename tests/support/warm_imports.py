"""What a process imports and reads before runs of the suite are forked from it; nothing that a run could change."""

from __future__ import annotations

import gc

import anyio

import conformance.commands.main
import conformance.plugin.hooks
from conformance.judging.selection import collected_rows
from conformance.spec.extensions import TRANSPORTS

__all__ = ["conformance"]

collected_rows("quick", transports=TRANSPORTS)
# A pytest plugin, too, and pytest warns of those that were imported before it came: this is how it can be told not to.
anyio.__doc__ = "PYTEST_DONT_REWRITE"
gc.freeze()
