"""A small Open Inference Protocol server that implements the extensions to the letter.

It serves every model role of `roles.toml` over HTTP and gRPC, for the conformance suite to run against and for clients
to learn from. It shares no code with the suite (package `conformance`): an error of both would be seen by nobody.

Read it in the order in which a request passes through:

    __main__        the command line, the listening socket
    ending          how the server ends, and what it says when it runs out of descriptors
    http_protocol   what uvicorn answers when the bytes are not HTTP (heads, chunk_frames, stalls)
    app             paths, methods, errors
    http_body       the body, up to a limit; limits has them all, command_line_limits their options
    workers         what is large goes on beside the event loop; joining puts long bodies together
    request         header, JSON and binary data become tensors and wishes (framing, strict_json, members, tensors);
                    sliced_json reads long JSON
    raw             the same for a raw binary request
    models          the roles, as metadata describes them; compute holds what they compute
    classification  scores become `value:index:label`
    response        tensors become JSON and binary data
    codings         compressed requests and answers
    inference       from request to answer, over either transport; counting keeps its statistics

What clients ask beside inference: metadata, and configuration, the same in the words of Triton's ModelConfig.

and over gRPC, the same models over another transport:

    grpc_server     the port, and what becomes of a refusal
    grpc_methods    the methods; grpc_request and grpc_response are to them what request and response are above
"""
