"""gRPC: the methods of the service, tensors in typed and in raw contents, refusals, and agreement with HTTP."""

ORDER = ("methods", "answers", "tensors", "generated", "order", "golden_calls", "wrong_contents", "isolation")
