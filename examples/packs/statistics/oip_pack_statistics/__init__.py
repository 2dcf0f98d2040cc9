"""Judges Triton's statistics extension over HTTP: the counts follow from what was just sent."""

INTERFACE = 1
