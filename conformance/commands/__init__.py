"""The `oip-conformance` command: one module for each subcommand, combined in `main`."""
