"""Brings the baselines that runs have written anew to where the fleet keeps them."""

from __future__ import annotations

from conformance.fleet.fleet_file import Fleet
from conformance.fleet.run_folder import RunFolder
from conformance.fleet.unit_runner import BASELINE
from conformance.report.output_files import write_atomically
from conformance.spec import files


def store_baselines(fleet: Fleet, folder: RunFolder) -> None:
    """Write the baseline of each target whose run has left one.

    Raises:
        OSError: one cannot be written.
    """
    for target in fleet.targets:
        if target.baseline is None:
            continue
        try:
            text = files.read_text(folder.of(target.name) / BASELINE)
        except files.UnreadableError:
            continue  # the run came to nothing, and the baseline stays as it is
        target.baseline.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target.baseline, text)
