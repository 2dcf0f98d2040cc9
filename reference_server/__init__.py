"""A small Open Inference Protocol server that implements the extensions to the letter.

It serves every model role of `roles.toml` over HTTP and gRPC, for the conformance suite to run against and for clients
to learn from. It shares no code with the suite (package `conformance`): an error of both would be seen by nobody.

Read it in the order in which a request passes through:

    __main__        the command line, the listening socket; limits has what it can be given
    uvicorn_server  how the server begins and ends, and what it says when it runs out of descriptors
    http_protocol   what uvicorn answers when the bytes are not HTTP (heads)
    app             paths, methods, errors
    http_body       the body, up to a limit; compressed requests and answers
    workers         what is large goes on beside the event loop, and long bodies are put together
    request         header, JSON and binary data become tensors and wishes (framing, strict_json, members, tensors);
                    sliced_json reads long JSON; the same for a raw binary request
    models          the roles, as metadata describes them, and their statistics; compute holds what they compute
    classification  scores become `value:index:label`
    response        tensors become JSON and binary data
    inference       from request to answer, over either transport

and over gRPC, the same models over another transport:

    grpc_server     the port, and what becomes of a refusal
    grpc_methods    the methods; grpc_request and grpc_response are to them what request and response are above
"""
