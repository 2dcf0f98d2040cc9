"""A small honest client, written from the documents alone: it shares no code with the suite and none with the server.

`python -m tests.clients.honest` is an adapter: it speaks the lines of schemas/adapter.schema.json over standard input
and output. Where to read: `request` makes a request and `answer` reads what comes back, both without a socket;
`connection` is HTTP/1.1 over sockets and `http_client` brings the three together. `grpc_request`, `grpc_answer` and
`grpc_client` are the same over gRPC. `lines` is the adapter. A fault or a variation replaces one of their functions.
"""
