"""Judging one check on one row, and its session: target, discovery, evidence and baseline."""
