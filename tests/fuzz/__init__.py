"""Fuzzing of all that reads what strangers wrote: `python -m tests.fuzz NAME --seconds 600`, or `all` for every target.

A target is a property of a reader (`target.py`), the table of them is `targets.py`. What fuzzing found worth keeping
is in `corpus/NAME`, one input a file, and an ordinary test replays it, without atheris.
"""
