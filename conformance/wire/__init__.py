"""The wire formats, without I/O: datatypes, tensors as bytes and JSON, requests, and parsed answers.

Nothing here depends on sockets, client libraries or pytest. Faults in received bytes are `Finding` values; only
mistakes of the caller raise ordinary exceptions.
"""
