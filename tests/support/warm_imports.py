"""What a process imports and reads before runs of the suite are forked from it; nothing that a run could change."""

from __future__ import annotations

import gc
import multiprocessing.sharedctypes
import pdb
from importlib import import_module

import anyio
import anyio._backends._asyncio  # for pytest's plugin of anyio
import execnet  # for pytest-xdist
from _pytest.config import default_plugins

import conformance.commands.main
import conformance.judging.process_pool
import conformance.plugin.ending
import conformance.plugin.hooks
from conformance.judging.selection import list_profile_rows
from conformance.report.formats import FORMATS
from conformance.report.json_report import compute_suite_digest
from conformance.spec.extensions import TRANSPORTS
from reference_server import app, faults, models, steps, uvicorn_server
from tests.support.few_rows import with_few_rows
from tests.support.made_reports import CONFORMANT

__all__ = ["app", "conformance", "execnet", "multiprocessing", "pdb", "steps", "uvicorn_server"]

for name in default_plugins:
    import_module(f"_pytest.{name}")
with with_few_rows():
    list_profile_rows("quick", transports=TRANSPORTS)
list_profile_rows("quick", transports=TRANSPORTS)
compute_suite_digest()
models.load()
faults.load()
for render in FORMATS.values():  # templates are compiled, and modules imported that a run needs at its end
    render(CONFORMANT)
# A pytest plugin, too, and pytest warns of those that were imported before it came: this is how it can be told not to.
anyio.__doc__ = "PYTEST_DONT_REWRITE"
gc.freeze()
