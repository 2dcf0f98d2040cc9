"""A small Open Inference Protocol server that implements the extensions to the letter.

It serves every model role of `roles.toml` over HTTP and gRPC, for the conformance suite to run against and for clients
to learn from. It shares no code with the suite (package `conformance`): a bug in shared code would go unnoticed.

Read it in the order in which a request is processed:

    __main__        the command line, the listening socket; limits defines the options for size and time limits
    uvicorn_server  startup, shutdown, and the log line when file descriptors run out
    http_protocol   uvicorn's HTTP protocol, with refusals of malformed requests (heads)
    app             paths, methods, errors
    http_body       the body, up to a limit; compressed requests and answers
    workers         large work runs in a thread beside the event loop; long bodies are joined
    request         header, JSON and binary data become tensors and requested outputs (framing, strict_json, members,
                    tensors); sliced_json reads long JSON; raw binary requests are read as well
    models          the roles, as metadata describes them, and their statistics; compute holds their functions
    classification  scores become `value:index:label`
    response        tensors become JSON and binary data
    inference       from request to answer, over either transport

and over gRPC, the same models over another transport:

    grpc_server     the port, and the status of a refusal
    grpc_methods    the methods; grpc_request and grpc_response are the counterparts of request and response
"""
