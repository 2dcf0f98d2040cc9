"""Scripted peers: they answer a client's inferences with the bytes that a script says, and keep what they heard."""
