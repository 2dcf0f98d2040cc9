"""gRPC: the methods of the service, tensors in both of their forms, refusals, and the same answers as over HTTP."""
