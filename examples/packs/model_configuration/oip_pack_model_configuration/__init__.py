"""Judges Triton's model configuration extension over HTTP and gRPC: the configuration says what the model does."""

INTERFACE = 1
