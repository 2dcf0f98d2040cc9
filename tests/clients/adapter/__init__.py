"""The way in of a client: its adapter, a run, its reports."""
