"""Checks of clients: each has the client perform inferences against a scripted server, over HTTP or gRPC."""
