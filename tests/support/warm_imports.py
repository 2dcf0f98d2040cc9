"""What a process imports and reads before runs of the suite are forked from it; nothing that a run could change."""

from __future__ import annotations

import gc

import anyio
import anyio._backends._asyncio  # for pytest's plugin of anyio
import execnet  # for pytest-xdist

import conformance.commands.main
import conformance.plugin.ending
import conformance.plugin.hooks
from conformance.judging.selection import list_profile_rows
from conformance.report.formats import FORMATS
from conformance.spec.extensions import TRANSPORTS
from reference_server import app, faults, models, steps, uvicorn_server
from tests.support.few_rows import with_few_rows
from tests.support.made_reports import CONFORMANT

__all__ = ["app", "conformance", "execnet", "steps", "uvicorn_server"]

with with_few_rows():
    list_profile_rows("quick", transports=TRANSPORTS)
list_profile_rows("quick", transports=TRANSPORTS)
models.load()
faults.load()
for render in FORMATS.values():  # templates are compiled, and modules imported that a run needs at its end
    render(CONFORMANT)
# A pytest plugin, too, and pytest warns of those that were imported before it came: this is how it can be told not to.
anyio.__doc__ = "PYTEST_DONT_REWRITE"
gc.freeze()
