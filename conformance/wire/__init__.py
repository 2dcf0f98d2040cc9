"""The wire, without I/O: datatypes, tensors as bytes and as JSON, requests, and answers taken apart.

Nothing here knows a socket, a client library or pytest: values go in and bytes come out, and back. Faults in what a
server wrote are `Finding` values; only the mistakes of a caller raise ordinary exceptions.
"""
