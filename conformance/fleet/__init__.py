"""Judges many targets with one command, each in a separate run like `oip-conformance run`. See docs/fleet.md.

`fleet_file` lists the targets, `units` creates a unit of work per target, `unit_runner` runs one, `pools` distribute
them on this machine or a Dask cluster, `run_folder` stores the results, `index` summarises them.
"""
