"""The entry point of the pytest plugin: adds the options and starts a run. Without a target it does nothing.

`pytest --target-url=URL` collects the installed suite if no path is given, judges the target, and ends with the
verdict and the documented exit status. pytest imports this module wherever the package is installed, so it imports
nothing heavy. The hooks of a run are in `hooks`, which is imported only if there is a target.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.plugin import options
from conformance.plugin.fixtures import oip_models, oip_options, oip_report, oip_target

__all__ = [  # names that pytest looks for
    "oip_models",
    "oip_options",
    "oip_report",
    "oip_target",
    "pytest_addoption",
    "pytest_configure",
    "pytest_load_initial_conftests",
]

SUITE = str(Path(__file__).parents[1] / "checks")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options to pytest's parser."""
    options.add_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, parser: pytest.Parser, args: list[str]) -> None:
    """Collect the installed suite if the user names no path, and load no conftest of the user for it.

    Raises pytest.UsageError: an option is unknown, and no conftest could define it.
    """
    known = early_config.known_args_namespace
    if not options.has_target(known, early_config.getini):
        return
    if not known.file_or_dir:
        options.reject_unknown_options(parser.parse_known_and_unknown_args(args)[1])
    if not known.file_or_dir:
        args.append(SUITE)
        known.file_or_dir = [SUITE]
    if known.file_or_dir == [SUITE]:  # also in a pytest-xdist worker, which receives the path
        known.noconftest = True


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """If there is a target, turn off pytest's failure output before pytest sets up its terminal.

    The Hypothesis plugin is unregistered unless the run needs it, because it imports all of Hypothesis at the end of a
    run, which takes longer than a short run.
    """
    if not options.has_target(config.option, config.getini):
        return
    options.hide_pytest_failures(config.option)
    is_needed = config.option.conformance_profile == "explore" or config.args != [SUITE]  # user tests may need it
    if not is_needed and config.pluginmanager.has_plugin("hypothesispytest"):
        config.pluginmanager.unregister(name="hypothesispytest")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the hooks of a run if there is a target, after pytest's own hooks so that its header comes first.

    Raises pytest.UsageError: an option cannot be used.
    """
    if options.has_target(config.option, config.getini):
        from conformance.plugin import startup

        startup.skip_assertion_rewriting(config)
        startup.pause_garbage_collection(config)
        with startup.limit_numpy_threads():
            from conformance.plugin.hooks import Hooks

        config.pluginmanager.register(Hooks(config), "oip-conformance-run")
