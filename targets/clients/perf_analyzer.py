"""Measures the server at OIP_TARGET_URL and OIP_TARGET_GRPC with perf_analyzer, over both transports and in each form.

    oip-conformance client watch --grpc-port=0 -- python targets/clients/perf_analyzer.py

The binary is that of the wheel of tritonclient in this interpreter's environment. Exit status 1 where a measurement
ends otherwise than expected: perf_analyzer reads the configuration and the statistics of the model as well.
"""

from __future__ import annotations

import os
import site
import subprocess
import sys
from pathlib import Path

# A few requests for each measurement, whatever their latencies.
MEASURE = "--measurement-mode=count_windows --measurement-request-count=20 --stability-percentage=999 --max-trials=3"
JSON = "--input-tensor-format=json --output-tensor-format=json"
# Arguments, and whether the measurement succeeds. In JSON perf_analyzer sends one element for any shape, and the bytes
# of its random BOOL tensors are any.
MEASUREMENTS = {
    "-m identity_fp32 --shape=INPUT:16": True,
    "-m batching -b 4 --concurrency-range=2": True,
    "-m identity_bytes --shape=INPUT:3": True,
    f"-m identity_int32 --shape=INPUT:1 {JSON}": True,
    f"-m identity_int32 --shape=INPUT:16 {JSON}": False,
    "-i grpc -m identity_fp32 --shape=INPUT:16": True,
    "-i grpc -m batching -b 4 --concurrency-range=2": True,
    "-i grpc -m identity_bool --shape=INPUT:16": False,
}


def main() -> int:
    """Measure in every way and return the exit status."""
    folders = [*site.getsitepackages(), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    libraries = [str(Path(folders[0]) / "nvidia/cuda_runtime/lib"), *folders[1:]]
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries)}
    program, wrong = str(Path(sys.executable).with_name("perf_analyzer")), 0
    for arguments, succeeds in MEASUREMENTS.items():
        address = os.environ["OIP_TARGET_GRPC" if "grpc" in arguments else "OIP_TARGET_URL"].rpartition("://")[2]
        command = [program, *arguments.split(), *MEASURE.split(), "-u", address]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        is_measured = done.returncode == 0 and "Inferences/Second vs. Client" in done.stdout
        if is_measured != succeeds:
            wrong += 1
            print(arguments, done.stdout[-1000:], done.stderr[-1000:], sep="\n")
    print(f"{len(MEASUREMENTS)} measurements, {wrong} not as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
