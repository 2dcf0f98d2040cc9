"""How much longer a plain run of pytest takes, in a project without tests, where this package is installed.

Run `python benchmarks/plain_pytest.py`. With and without are measured in turns, so that a busy machine slows both; the
goal is a ratio of at most 1.05, and at most 50 ms more. Then follows what the plugin imports for it.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time

RUNS = 15
WITHOUT = ("-p", "no:oip_conformance")
IMPORTED = (
    "import sys, conformance.plugin as plugin, pytest; "
    "print(*sorted(name for name in sys.modules if name.partition('.')[0] == 'conformance'))"
)


def seconds(folder: str, *options: str) -> float:
    """Return how long a run takes that collects nothing."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "pytest", "--co", "-q", *options], cwd=folder, capture_output=True, check=False
    )
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        pairs = [(seconds(folder), seconds(folder, *WITHOUT)) for _ in range(RUNS)]
    with_plugin, without = (statistics.median(times) * 1000 for times in zip(*pairs, strict=True))
    print(f"{'with':>10} {'without':>10} {'ratio':>8}   (milliseconds, medians of {RUNS})")
    print(f"{with_plugin:10.1f} {without:10.1f} {with_plugin / without:8.3f}")
    modules = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True).stdout
    print(f"imported: {modules.strip()}")


if __name__ == "__main__":
    main()
