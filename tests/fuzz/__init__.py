"""Fuzzing of all that reads what strangers wrote: `python -m tests.fuzz all --seconds 30`.

A target is a property of a reader; the table of them is `targets.py`, the properties are in `subjects`. Hypothesis
changes known inputs and shrinks what breaks a property; with `--guided` atheris looks for inputs that reach new code.
`corpus/NAME` keeps one input a file; an ordinary test replays it.
"""
