"""Many targets judged in one go, each by a run of its own as `oip-conformance run` makes it. See docs/fleet.md.

`fleet_file` says what is to be judged, `units` makes a unit of work of each target, `unit_runner` does one, `pools`
hand them out, here or to a Dask cluster, `run_folder` keeps what came of them, `index` puts it together.
"""
