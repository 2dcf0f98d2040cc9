"""Scripted peers: servers that answer a client's requests with the bytes of a script, and record these requests."""
