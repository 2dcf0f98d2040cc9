"""Checks of clients: each performs inferences against a scripted server, over HTTP or gRPC."""
