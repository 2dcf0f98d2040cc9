"""Answers of scripted peers to clients under test, correct and wrong, as bytes on the wire.

The answers have an encoder of their own, with explicit arithmetic. This encoder shares no code with the encoder of the
suite's requests, so that a mistake in one of them cannot hide a mistake in the other.
"""
