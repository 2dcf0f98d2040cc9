"""Answers of scripted peers to clients under test, correct and wrong, as bytes on the wire.

A separate encoder with explicit arithmetic builds them. It shares no code with the encoder of the suite's requests, so
that a mistake there cannot hide one here.
"""
