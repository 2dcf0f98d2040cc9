"""Scripted peers: they answer a client's inferences with the bytes of a script, and record its requests."""
