"""Expectations about replies, and the attribution of failures to requirements."""
