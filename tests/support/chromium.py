"""Chromium without a window: the one that is installed, or Debian's, driven through Playwright.

Playwright's own browsers come from a server of its own; Debian's comes from where the tests have nginx from, and is a
browser that people use.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.support import debian

PACKAGE = "chromium-headless-shell"  # the smallest: no window, no sound
FONTS = Path("/etc/fonts/fonts.conf")


@contextmanager
def run_browser(cache: Path) -> Iterator[Browser]:
    """Run the browser and stop it afterwards.

    Args:
        cache: a folder that is kept, for a browser that has to be fetched.

    Raises:
        RuntimeError: it can be neither found nor fetched; the message says what to do.
    """
    program, environment = _find(cache)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, env=environment, args=["--no-sandbox"]
        )  # root has no sandbox, and the pages are our own
        try:
            yield browser
        finally:
            browser.close()


def _find(cache: Path) -> tuple[Path, dict[str, str | float | bool]]:
    """Return the program, and the environment that it needs."""
    environment: dict[str, str | float | bool] = dict(os.environ)
    installed = shutil.which(PACKAGE) or shutil.which("chromium")
    if installed:
        return Path(installed), environment
    root = debian.unpack(cache, PACKAGE, needs="the tests of pages in a browser", with_dependencies=True)
    libraries = [folder for folder in root.glob("usr/lib/*-linux-gnu") if folder.is_dir()]
    environment["LD_LIBRARY_PATH"] = os.pathsep.join(
        str(folder) for folder in (*libraries, *(each / "pulseaudio" for each in libraries))
    )
    if not FONTS.exists():
        environment["FONTCONFIG_SYSROOT"] = str(root)
    return root / "usr/lib/chromium" / PACKAGE, environment
