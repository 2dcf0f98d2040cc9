"""The `oip-conformance` command: a module for each subcommand, put together in `main`."""
