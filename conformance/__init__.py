"""Judges a model server's binary tensor data, raw binary request and classification extensions."""

__version__ = "0.1.0"
