"""Judges Triton's model configuration extension over HTTP: the configuration says what the model does."""

INTERFACE = 1
