"""Judges one check on one row, within a session that holds the target, its discovery result and its evidence."""
