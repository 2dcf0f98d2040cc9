"""gRPC: the methods of the service, tensors in both of their forms, refusals, and the same answers as over HTTP."""

ORDER = ("methods", "answers", "tensors", "order", "golden_calls", "wrong_contents", "isolation")
