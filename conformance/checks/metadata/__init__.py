"""Metadata of the server and its models."""
