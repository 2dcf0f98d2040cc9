"""The pytest plugin's front door: options, and the way in when there is a target. Without a target it does nothing.

`pytest --target-url=URL` collects the installed suite when no path is given, judges the target, and ends with the
verdict and exit status of the contract. What happens during a run is in `hooks`, which is imported for a run alone, so
that pytest starts as fast as before where this package just happens to be installed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import options, target_options

SUITE = str(Path(__file__).parent / "checks")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    options.add(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    """Collect the installed suite when the user names no path, and keep every conftest of the user's out of it."""
    known = early_config.known_args_namespace
    if target_options.target_url(known, early_config.getini) is None:
        return
    if not known.file_or_dir:
        args.append(SUITE)
        known.file_or_dir = [SUITE]
    if known.file_or_dir == [SUITE]:  # also in a worker of pytest-xdist, which is given the path
        known.noconftest = True


def pytest_configure(config: pytest.Config) -> None:
    """Register the hooks of a run when there is a target.

    Raises:
        pytest.UsageError: an option cannot be used.
    """
    url = target_options.target_url(config.option, config.getini)
    if url is not None:
        from conformance.hooks import Hooks

        config.pluginmanager.register(Hooks(config, url), "oip-conformance-run")
